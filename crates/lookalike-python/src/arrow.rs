//! What comes in through the Arrow C data interface.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType, Field};
use pyo3::prelude::*;
use pyo3_arrow::ffi::ArrayReader;
use pyo3_arrow::input::AnyArray;

use crate::errors::InputError;

/// Whether an object offers the Arrow C data interface.
pub(crate) fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")?)
}

/// The arrays of an object, one after the other.
pub(crate) fn arrays(object: &Bound<'_, PyAny>) -> PyResult<Box<dyn ArrayReader + Send>> {
    object.extract::<AnyArray>()?.into_reader()
}

/// What went wrong in whatever makes the arrays.
pub(crate) fn broken(error: &ArrowError) -> PyErr {
    InputError::new_err(format!("the Arrow stream cannot be read: {error}"))
}

/// Says that a column of another type is needed.
pub(crate) fn not_text(field: &Field) -> PyErr {
    let name = if field.name().is_empty() { "the array".to_owned() } else { format!("'{}'", field.name()) };
    InputError::new_err(format!(
        "{name} is of the type {}, and texts are strings; cast it to strings, or choose the column with the texts",
        field.data_type()
    ))
}

/// The texts of an array; none where it is null.
pub(crate) fn texts<'a>(array: &'a ArrayRef, field: &Field) -> PyResult<Vec<Option<&'a str>>> {
    Ok(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().collect(),
        DataType::Utf8View => array.as_string_view().iter().collect(),
        _ => return Err(not_text(field)),
    })
}
