//! The extension module of the Python package `tilp`.
//!
//! Every entry releases the interpreter lock while the library works, turns errors into Python
//! exceptions with their one-line messages, and lets no panic out. Names and documentation for
//! users are in `py_src/tilp`; this module is private to that package.

mod allocator;
mod arrays;
mod arrow;
mod decision;
mod envs;
mod errors;
mod federated;
mod method;
mod observation;
mod outcome;
mod plan;
mod run;
mod study;
mod table;
mod twin;
mod work;

use std::ffi::OsString;

use pyo3::prelude::*;

/// The `tilp` command. The first argument is the name of the program.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    work::released(py, || Ok(tilp_cli::run(arguments)))
}

#[pymodule]
fn _tilp(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("TilpError", py.get_type::<errors::TilpError>())?;
    module.add("InputError", py.get_type::<errors::InputError>())?;
    module.add("RunError", py.get_type::<errors::RunError>())?;
    module.add_class::<observation::Observation>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<twin::TwinModel>()?;
    module.add_class::<envs::Envs>()?;
    module.add_class::<federated::TerminalHalf>()?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::tables, module)?)?;
    module.add_function(wrap_pyfunction!(federated::run_federated, module)?)?;
    module.add_function(wrap_pyfunction!(study::compare, module)?)?;
    module.add_function(wrap_pyfunction!(envs::agent_view, module)?)?;
    module.add_function(wrap_pyfunction!(envs::agent_decision, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan, module)?)?;
    module.add_function(wrap_pyfunction!(plan::example, module)?)?;
    module.add_function(wrap_pyfunction!(plan::scenario_text, module)?)?;
    module.add_function(wrap_pyfunction!(plan::method_names, module)?)?;
    Ok(())
}
