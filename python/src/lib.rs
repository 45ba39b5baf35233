//! `tensilo._native`: the functions behind the Python package. Private; `tensilo/__init__.py` lists what is public.
//!
//! What is special to Python is here and nowhere else: exceptions (`errors`), signals (`signals`), selections
//! as Python objects (`index`), arrays in NumPy's memory (`reading`, `writing`), packs (`pack`), record stores
//! (`records`),
//! arrays that are windows of a mapped store (`lanes`), NumPy's arrays as records (`array_source`, `source`), and
//! batches whose memory is used again (`loader`), record stores of loaderx's format (`zrecord`).

mod array_source;
mod errors;
mod filling;
mod index;
mod lanes;
mod loader;
mod pack;
mod pack_v2;
mod reading;
mod records;
mod signals;
mod source;
mod writing;
mod zrecord;

use pyo3::prelude::*;
// Linked for their functions for C, which `tensilo.loaderx._lib` shows to cffi.
use ::{sampler as _, zrecord as _};

/// The native half of the package.
#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<writing::Hdf5Writer>()?;
    m.add_class::<lanes::LaneStore>()?;
    m.add_class::<lanes::LaneView>()?;
    m.add_class::<lanes::LaneWriter>()?;
    m.add_class::<pack::PackInspection>()?;
    m.add_class::<pack::PackPlan>()?;
    m.add_class::<pack::PackFile>()?;
    m.add_class::<zrecord::ZrecordStore>()?;
    m.add_class::<pack_v2::Pack2Inspection>()?;
    m.add_class::<pack_v2::Pack2Plan>()?;
    m.add_class::<pack_v2::Pack2File>()?;
    m.add_class::<pack_v2::Pack2Detector>()?;
    m.add_class::<pack_v2::Pack2Planes>()?;
    m.add_function(wrap_pyfunction!(pack_v2::pack2_is, m)?)?;
    m.add_function(wrap_pyfunction!(pack_v2::pack2_inspect, m)?)?;
    m.add_function(wrap_pyfunction!(pack_v2::pack2_plan, m)?)?;
    m.add_function(wrap_pyfunction!(pack_v2::pack2_produce, m)?)?;
    m.add_function(wrap_pyfunction!(pack_v2::pack2_verify, m)?)?;
    m.add_function(wrap_pyfunction!(pack::pack_inspect, m)?)?;
    m.add_function(wrap_pyfunction!(pack::pack_plan, m)?)?;
    m.add_function(wrap_pyfunction!(pack::pack_produce, m)?)?;
    m.add_function(wrap_pyfunction!(pack::pack_verify, m)?)?;
    m.add_class::<records::RecordStore>()?;
    m.add_class::<records::RecordWriter>()?;
    m.add_function(wrap_pyfunction!(records::records_salvage, m)?)?;
    m.add_function(wrap_pyfunction!(records::records_dictionary, m)?)?;
    loader::register(m)?;
    m.add_function(wrap_pyfunction!(reading::read, m)?)
}
