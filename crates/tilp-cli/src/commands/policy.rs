//! `tilp policy`.

use tilp::experiment::{Pretraining, pretrain};
use tilp::scenario::Scenario;

use crate::arguments::{Policy, PolicyVerb};
use crate::failure::Failure;

/// Makes policies.
pub fn policy(arguments: Policy) -> Result<(), Failure> {
    match arguments.verb {
        PolicyVerb::Pretrain { scenario, overrides, out } => {
            let scenario = Scenario::load(&scenario, &overrides).map_err(Failure::input)?;
            let file = pretrain(&scenario, &Pretraining::SHIPPED).map_err(Failure::input)?;
            std::fs::write(&out, file)
                .map_err(|error| Failure::input(format!("cannot write {}: {error}", out.display())))
        }
    }
}
