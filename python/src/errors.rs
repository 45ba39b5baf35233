//! Errors as Python exceptions: one class for each kind, all beneath `tensilo.TensiloError`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tensilo::{Error, ErrorKind};

/// The class in `tensilo.errors` for a kind of error.
fn class_name(e: &Error) -> &'static str {
    match e.kind() {
        ErrorKind::Io => "InputOutputError",
        ErrorKind::Corrupt => "CorruptError",
        ErrorKind::NotFound if from_system(e) => "MissingFileError",
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::AlreadyExists => "AlreadyExistsError",
        ErrorKind::Locked => "LockedError",
        ErrorKind::InvalidArgument => "InvalidArgumentError",
        ErrorKind::Limit => "LimitError",
        ErrorKind::InsufficientMemory => "InsufficientMemoryError",
        ErrorKind::InsufficientDisk => "InsufficientDiskError",
        ErrorKind::SourceChanged => "SourceChangedError",
        ErrorKind::Cancelled => "Cancelled",
        _ => "UnsupportedError",
    }
}

/// Did the operating system say so?
fn from_system(e: &Error) -> bool {
    std::error::Error::source(e).is_some_and(|s| s.is::<std::io::Error>())
}

/// The exception for an error.
pub fn exception(py: Python<'_>, e: &Error) -> PyErr {
    with_class(py, class_name(e), e)
}

/// The exception for an error about an index.
pub fn index_exception(py: Python<'_>, e: &Error) -> PyErr {
    with_class(py, "OutOfBoundsError", e)
}

fn with_class(py: Python<'_>, class: &str, e: &Error) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let made = || -> PyResult<PyErr> {
        let module =
            MODULE.get_or_try_init(py, || PyModule::import(py, "tensilo.errors").map(Bound::unbind))?;
        let value = module.bind(py).getattr(class)?.call1((e.to_string(),))?;
        value.setattr(intern!(py, "kind"), e.kind().name())?;
        value.setattr(intern!(py, "file"), e.file().map(|f| f.display().to_string()))?;
        value.setattr(intern!(py, "object"), e.object())?;
        value.setattr(intern!(py, "offset"), e.offset())?;
        value.setattr(intern!(py, "hint"), e.hint_text())?;
        Ok(PyErr::from_value(value))
    };
    made().unwrap_or_else(|failure| failure)
}
