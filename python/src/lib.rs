//! `tensilo._native`: the functions behind the Python package. Private; `tensilo/__init__.py` lists what is public.
//!
//! What is special to Python is here and nowhere else: exceptions (`errors`), signals (`signals`), selections
//! as Python objects (`index`), and arrays in NumPy's memory (`reading`).

mod errors;
mod index;
mod reading;
mod signals;

use pyo3::prelude::*;

/// The native half of the package.
#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_function(wrap_pyfunction!(reading::read, m)?)
}
