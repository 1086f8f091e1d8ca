//! The extension module of the Python package: shims around the library, no logic of finding near-duplicates.
//!
//! `python/lookalike/` is what people call; it has the signatures, the documentation and the defaults. What it hands over
//! arrives here as plain values, and becomes a [`Config`](lookalike::Config) and a call of the library.

mod arrow;
mod errors;
mod index;
mod job;
mod pages;
mod parts;
mod settings;
mod sketch;
mod spool;
mod table;

use std::ffi::OsString;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The command line: the arguments, the name of the program first, and the exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| lookalike_cli::main(arguments))
}

/// The module.
#[pymodule]
#[pyo3(name = "_lookalike")]
fn extension(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<index::HammingIndex>()?;
    module.add_class::<sketch::Sketcher>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(job::dedup, module)?)?;
    module.add_function(wrap_pyfunction!(job::recluster, module)?)?;
    module.add_function(wrap_pyfunction!(pages::compare, module)?)?;
    module.add_function(wrap_pyfunction!(pages::compare_in, module)?)?;
    module.add_function(wrap_pyfunction!(pages::explain, module)?)?;
    module.add_function(wrap_pyfunction!(pages::refine, module)?)?;
    module.add_class::<parts::PartRows>()?;
    module.add_function(wrap_pyfunction!(parts::job_input, module)?)?;
    module.add_function(wrap_pyfunction!(parts::part_columns, module)?)?;
    module.add_function(wrap_pyfunction!(parts::run_part, module)?)?;
    module.add_function(wrap_pyfunction!(parts::learn_frames, module)?)?;
    module.add_function(wrap_pyfunction!(parts::connected, module)?)?;
    module.add_function(wrap_pyfunction!(parts::transfer_input, module)?)?;
    module.add_function(wrap_pyfunction!(parts::transfer_judged, module)?)?;
    module.add_function(wrap_pyfunction!(parts::transfer_finish, module)?)?;
    module.add_function(wrap_pyfunction!(spool::spool_arrow, module)?)?;
    module.add_function(wrap_pyfunction!(spool::spool_items, module)?)?;
    module.add_function(wrap_pyfunction!(table::read_table, module)?)?;
    module.add_function(wrap_pyfunction!(table::keep_mask, module)?)?;
    Ok(())
}
