//! Decisions between Python and Rust.

use numpy::{IntoPyArray, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use tilp::exchange::{DecisionMessage, TerminalDecisionMessage, TiersMessage, read_decision};
use tilp::round::{Decision, Tiers};

use crate::errors::Failure;

/// The columns of a batch of decisions, a row per decision.
type Columns<'py> = (
    PyReadonlyArray2<'py, bool>,
    PyReadonlyArray2<'py, f64>,
    PyReadonlyArray2<'py, f64>,
    PyReadonlyArray2<'py, i64>,
    PyReadonlyArray2<'py, f64>,
);

/// The user's decisions, for this number of terminals and layers: a `Decision`, whose arrays may
/// have a leading axis for a batch, or one decision as a dict.
pub(crate) fn read(
    given: &Bound<'_, PyAny>,
    n_terminals: usize,
    n_layers: usize,
) -> PyResult<Vec<Decision>> {
    let py = given.py();
    if given.is_instance_of::<PyDict>() {
        let text: String = py.import("json")?.call_method1("dumps", (given,))?.extract()?;
        let one = read_decision(text.as_bytes(), n_terminals, n_layers).map_err(Failure::from)?;
        return Ok(vec![one]);
    }
    if !given.hasattr("_columns")? {
        let found = given.get_type().name()?;
        let line = format!("decision is of type {found}, expected a tilp.Decision or a dict");
        return Err(Failure::Input(line).into());
    }
    let columns: Columns<'_> = given.call_method0("_columns")?.extract()?;
    let rest = Rest::read(given)?;
    let n_decisions = columns.0.as_array().nrows();
    let one = |row: usize| {
        let message = message(&columns, row, &rest);
        message.checked("decision", n_terminals, n_layers).map_err(Failure::from)
    };
    Ok((0..n_decisions).map(one).collect::<Result<_, _>>()?)
}

/// Fields of a decision other than its columns.
struct Rest {
    fallback: bool,
    order: Vec<usize>,
    tiers: Option<(usize, bool, usize, bool)>,
}

impl Rest {
    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            fallback: given.getattr("fallback")?.extract()?,
            order: given.getattr("order")?.extract()?,
            tiers: given.getattr("tiers")?.extract()?,
        })
    }
}

fn message(columns: &Columns<'_>, row: usize, rest: &Rest) -> DecisionMessage {
    let (scheduled, bandwidth, power, cut, compression) = columns;
    let (scheduled, cut) = (scheduled.as_array(), cut.as_array());
    let [bandwidth, power, compression] = [bandwidth, power, compression].map(|one| one.as_array());
    let terminal = |n: usize| TerminalDecisionMessage {
        scheduled: scheduled[(row, n)],
        bandwidth_hz: Some(bandwidth[(row, n)]),
        power_w: Some(power[(row, n)]),
        // One below zero is as far out of range as one beyond the last layer.
        cut: Some(usize::try_from(cut[(row, n)]).unwrap_or(usize::MAX)),
        compression: Some(compression[(row, n)]),
    };
    let tiers = rest.tiers.map(|(own, average_own, edge, average_edge)| TiersMessage {
        own,
        average_own,
        edge,
        average_edge,
    });
    DecisionMessage {
        terminals: (0..scheduled.ncols()).map(terminal).collect(),
        fallback: rest.fallback,
        order: rest.order.clone(),
        tiers,
    }
}

/// A decision for Python.
pub(crate) fn write<'py>(py: Python<'py>, decision: &Decision) -> PyResult<Bound<'py, PyAny>> {
    let terminals = &decision.terminals;
    let reals = |of: fn(&tilp::round::TerminalDecision) -> f64| {
        terminals.iter().map(of).collect::<Vec<f64>>().into_pyarray(py)
    };
    let scheduled: Vec<bool> = terminals.iter().map(|one| one.scheduled).collect();
    let cuts: Vec<i64> = terminals.iter().map(|one| one.cut as i64).collect();
    let columns = (
        scheduled.into_pyarray(py),
        reals(|one| one.bandwidth.0),
        reals(|one| one.power.0),
        cuts.into_pyarray(py),
        reals(|one| one.compression),
    );
    let rest = PyDict::new(py);
    rest.set_item("fallback", decision.fallback)?;
    rest.set_item("order", PyList::new(py, &decision.training.order)?)?;
    let tiers = decision.training.tiers;
    let tiers = tiers.map(|Tiers { own, average_own, edge, average_edge }| {
        (own, average_own, edge, average_edge)
    });
    rest.set_item("tiers", tiers)?;
    py.import("tilp._decision")?.getattr("Decision")?.call(columns, Some(&rest))
}
