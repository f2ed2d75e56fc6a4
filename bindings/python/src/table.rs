//! Tables: columns that NumPy views and that the Arrow C interface hands out.

use std::sync::Arc;

use numpy::ndarray::ArrayView1;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use tilp::record::{Column, Values};

use crate::arrays::view;
use crate::arrow;

/// A table of a run. `table["name"]` is a NumPy array; `pyarrow.table(table)`, `polars.DataFrame(table)`
/// and whatever else reads Arrow's C stream take the whole.
#[pyclass(frozen, module = "tilp")]
pub(crate) struct Table {
    columns: Arc<Vec<TableColumn>>,
    n_rows: usize,
}

/// A column in memory.
pub(crate) struct TableColumn {
    pub name: &'static str,
    pub data: Data,
}

/// Values of a column.
pub(crate) enum Data {
    Counts(Vec<u64>),
    Numbers(Vec<f64>),
    /// NaN where there is none; the flags say where there is one.
    Optional(Vec<f64>, Vec<bool>),
    Flags(Vec<bool>),
    Words(Vec<String>),
}

impl From<Values> for Data {
    fn from(values: Values) -> Self {
        match values {
            Values::Counts(all) => Self::Counts(all),
            Values::Numbers(all) => Self::Numbers(all),
            Values::Flags(all) => Self::Flags(all),
            Values::Words(all) => Self::Words(all),
            Values::Optional(all) => Self::Optional(
                all.iter().map(|one| one.unwrap_or(f64::NAN)).collect(),
                all.iter().map(Option::is_some).collect(),
            ),
        }
    }
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::Counts(all) => all.len(),
            Self::Numbers(all) | Self::Optional(all, _) => all.len(),
            Self::Flags(all) => all.len(),
            Self::Words(all) => all.len(),
        }
    }
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        let column = |one: Column| TableColumn { name: one.name, data: one.values.into() };
        let columns: Vec<TableColumn> = columns.into_iter().map(column).collect();
        let n_rows = columns.first().map_or(0, |one| one.data.len());
        Self { columns: Arc::new(columns), n_rows }
    }
}

/// A cell of a row that has just been made, for callbacks.
pub(crate) fn row_dict<'py>(py: Python<'py>, columns: Vec<Column>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for Column { name, values } in columns {
        match values {
            Values::Counts(all) => dict.set_item(name, all.first())?,
            Values::Numbers(all) => dict.set_item(name, all.first())?,
            Values::Optional(all) => dict.set_item(name, all.first().copied().flatten())?,
            Values::Flags(all) => dict.set_item(name, all.first())?,
            Values::Words(all) => dict.set_item(name, all.first())?,
        }
    }
    Ok(dict)
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&'static str> {
        self.columns.iter().map(|one| one.name).collect()
    }

    fn __len__(&self) -> usize {
        self.n_rows
    }

    fn __contains__(&self, name: &str) -> bool {
        self.columns.iter().any(|one| one.name == name)
    }

    fn __getitem__<'py>(this: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let (own, owner) = (this.get(), this.clone().into_any());
        let Some(column) = own.columns.iter().find(|one| one.name == name) else {
            let line = format!("no column {name:?}, expected one of {:?}", own.column_names());
            return Err(PyKeyError::new_err(line));
        };
        // SAFETY: the class is frozen and owns the columns.
        Ok(match &column.data {
            Data::Counts(all) => unsafe { view(ArrayView1::from(all), owner) }.into_any(),
            Data::Numbers(all) | Data::Optional(all, _) => {
                unsafe { view(ArrayView1::from(all), owner) }.into_any()
            }
            Data::Flags(all) => unsafe { view(ArrayView1::from(all), owner) }.into_any(),
            Data::Words(all) => PyList::new(this.py(), all)?.into_any(),
        })
    }

    /// The columns by name.
    fn to_dict<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(this.py());
        for name in this.get().column_names() {
            dict.set_item(name, Self::__getitem__(this, name)?)?;
        }
        Ok(dict)
    }

    /// The table as an Arrow stream, by Arrow's capsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A reader may ask for other types; giving what there is is allowed.
        drop(requested_schema);
        arrow::stream(py, self.columns.clone(), self.n_rows)
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows, {} columns)", self.n_rows, self.columns.len())
    }
}
