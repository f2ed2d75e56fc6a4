//! Methods that a user names or gives as a class.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::{Value, json};

use tilp::exchange::{Declaration, Setup, SetupParts};
use tilp::record::RunFolder;
use tilp::round::Allocator;
use tilp::scenario::{Method, MethodInputs, Registry, Scenario, suite_of};
use tilp_cli::host;

use crate::allocator::{PyAllocator, Raised, describe};
use crate::errors::Failure;
use crate::twin::TwinModel;

/// A registry with what users give, and the names under which they are known.
pub(crate) struct Methods {
    pub registry: Registry,
    pub raised: Arc<Raised>,
    /// Digests of the code of classes, by the names of their methods.
    digests: BTreeMap<String, String>,
}

/// Where manifests have the digests.
const DIGESTS: &str = "python_methods";

impl Methods {
    /// The methods of the library.
    pub(crate) fn new() -> Self {
        Self { registry: Registry::builtin(), raised: Arc::default(), digests: BTreeMap::new() }
    }

    /// Adds a method that is given as a class and returns its name; a name is its own.
    pub(crate) fn add(
        &mut self,
        given: &Bound<'_, PyAny>,
        scenario: &Scenario,
    ) -> PyResult<String> {
        if let Ok(name) = given.cast::<PyString>() {
            return Ok(name.to_cow()?.into_owned());
        }
        let helper = given.py().import("tilp._allocator")?.getattr("_declaration")?;
        let text: String = helper.call1((given,))?.extract()?;
        let declared = Declaration::read(text.as_bytes()).map_err(Failure::from)?;
        let name = declared.name.clone();
        let class = Class {
            class: Arc::new(given.clone().unbind()),
            scenario: scenario.clone(),
            declared: declared.clone(),
            raised: self.raised.clone(),
        };
        let build = move |inputs| Box::new(class.start(inputs)) as Box<dyn Allocator>;
        let method = Method::own(name.clone(), "a Python class", build).declared(declared);
        self.registry.add(method).map_err(Failure::from)?;
        let digest = given.py().import("tilp._allocator")?.getattr("_digest")?;
        self.digests.insert(name.clone(), digest.call1((given,))?.extract()?);
        Ok(name)
    }

    /// Versions and host for manifests, and which code the classes have.
    pub(crate) fn about(&self) -> Value {
        let mut about = host::about();
        if !self.digests.is_empty() {
            about[DIGESTS] = json!(self.digests);
        }
        about
    }

    /// Refuses a run that another version of a class has begun.
    pub(crate) fn check(&self, run: &Path, method: &str) -> Result<(), Failure> {
        let Some(own) = self.digests.get(method) else { return Ok(()) };
        let Ok(folder) = RunFolder::open(run) else { return Ok(()) };
        if folder.read_manifest()?[DIGESTS][method] == json!(own) {
            return Ok(());
        }
        Err(Failure::Input(format!(
            "{}: begun by another version of the class {method}, expected the same, or another folder",
            run.display()
        )))
    }

    /// The method that was given.
    pub(crate) fn method(
        &mut self,
        given: &Bound<'_, PyAny>,
        scenario: &Scenario,
    ) -> PyResult<Method> {
        let name = self.add(given, scenario)?;
        Ok(self.registry.method(&name).map_err(Failure::from)?)
    }
}

/// A class that is started anew for every run.
struct Class {
    class: Arc<Py<PyAny>>,
    scenario: Scenario,
    declared: Declaration,
    raised: Arc<Raised>,
}

impl Class {
    fn start(&self, inputs: MethodInputs) -> PyAllocator {
        let (suite, n_layers) = (suite_of(&self.scenario), inputs.problem.cost.profile.cuts.len());
        let setup = Setup::from(SetupParts {
            scenario: self.scenario.name(),
            rounds: inputs.rounds,
            seed: inputs.seed_number(),
            aggregate_every: self.scenario.aggregate_every(),
            cost: &inputs.problem.cost,
            tasks: suite.tasks,
            fading_correlation: inputs.nominal.rho,
            hardware: &inputs.nominal.hardware,
        });
        let made = Python::attach(|py| {
            let made = self.object(py, &setup, inputs);
            made.map_err(|error| {
                let reason = describe(py, &error);
                self.raised.set(error);
                reason
            })
        });
        let (object, twin) = match made {
            Ok((object, twin)) => (Ok(object), twin),
            Err(reason) => (Err(reason), None),
        };
        PyAllocator {
            object,
            n_layers,
            suite,
            state_use: self.declared.state,
            twin,
            raised: self.raised.clone(),
            learned: 0,
            state: String::new(),
            failed: None,
        }
    }

    fn object(
        &self,
        py: Python<'_>,
        setup: &Setup,
        inputs: MethodInputs,
    ) -> PyResult<(Py<PyAny>, Option<Py<TwinModel>>)> {
        let module = py.import("tilp._allocator")?;
        let class = self.class.bind(py);
        let uses_twin: bool = module.getattr("_uses_twin")?.call1((class,))?.extract()?;
        let twin = match uses_twin {
            true => Some(Py::new(py, TwinModel::of_method(inputs, &self.scenario))?),
            false => None,
        };
        let text = serde_json::to_string(setup).expect("a setup is plain data");
        let given = twin.as_ref().map(|twin| twin.clone_ref(py));
        let object = module.getattr("_start")?.call1((class, text, given))?;
        Ok((object.unbind(), twin))
    }
}
