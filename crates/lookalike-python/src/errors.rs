//! Errors of the library → exceptions, which `python/lookalike/_errors.py` defines.
//!
//! Settings are keyword arguments in Python, and have the names that the library's messages have.

use lookalike::Error;
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(lookalike._errors, CorruptFile);
import_exception!(lookalike._errors, InputError);
import_exception!(lookalike._errors, InputNotFound);
import_exception!(lookalike._errors, InternalError);
import_exception!(lookalike._errors, InvalidSetting);
import_exception!(lookalike._errors, Locked);
import_exception!(lookalike._errors, OutputExists);
import_exception!(lookalike._errors, StorageError);

/// The exception for an error of the library.
pub(crate) fn exception(error: &Error) -> PyErr {
    let message = error.message(|setting| format!("`{setting}`"));
    match error {
        Error::InvalidSetting { setting, value, expected } => invalid(setting, value, expected),
        Error::Conflict { .. } | Error::MemoryFloor { .. } => InvalidSetting::new_err(message),
        Error::BadInput { .. }
        | Error::UnknownFormat { .. }
        | Error::NoPages { .. }
        | Error::Strict(_)
        | Error::InputChanged { .. } => InputError::new_err(message),
        Error::NotFound { .. } => InputNotFound::new_err(message),
        Error::Corrupt { .. } => CorruptFile::new_err(message),
        Error::OutputNotOurs { .. } | Error::OtherResult { .. } | Error::Complete { .. } => {
            OutputExists::new_err(message)
        }
        Error::Locked { .. } | Error::IndexLocked { .. } => Locked::new_err(message),
        Error::Remote { .. }
        | Error::StoreFull { .. }
        | Error::Store { .. }
        | Error::ReadOnly { .. }
        | Error::Overloaded
        | Error::Io { .. } => StorageError::new_err(message),
        _ => InternalError::new_err(message),
    }
}

/// A keyword argument that has a value that it cannot have.
pub(crate) fn invalid(setting: &str, value: impl std::fmt::Display, expected: &str) -> PyErr {
    InvalidSetting::new_err(format!("{setting}={value}: {expected}"))
}

/// A keyword argument whose text stands for nothing; `expected` is what the library says of it.
pub(crate) fn misspelt(setting: &str, text: &str, expected: impl std::fmt::Display) -> PyErr {
    let expected = expected.to_string();
    let must_be = if expected.starts_with("must") { "" } else { "must be " };
    invalid(setting, format_args!("{text:?}"), &format!("{must_be}{expected}"))
}

/// Shortens `map_err`.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for lookalike::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(&error))
    }
}
