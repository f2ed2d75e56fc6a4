//! Plans the rounds of a user's cell with the planner crate alone: reports of the terminals
//! in, an order out, measurements of the executed round back in.
//!
//! `cargo run -p tilp-plan --example plan_a_cell`
//!
//! The cell is made up: six robots with two tasks. The channel of each robot is 6 dB worse than that
//! of the one before, and all are 30 % slower than their data sheet says. In a real cell `report`
//! holds what a terminal sends, and `execute` sends the order and measures.

use tilp_plan::prelude::*;

/// What a terminal reports before a round. Layers are aggregated in every round, so it holds none.
fn report(n: u32) -> TerminalReport {
    let (clock, operations_per_cycle) = (Hertz(1.5e9), 0.2);
    let (energy_coefficient, noise_w_per_hz) = (1e-28, 3.2e-20);
    TerminalReport {
        id: TerminalId(n),
        hardware: Hardware { clock, operations_per_cycle, energy_coefficient, noise_w_per_hz },
        memory: Bytes(2_000_000),
        n_samples: 400,
        task: n as usize % 2,
        gain: Gain::from_loss_db(96.0 + 6.0 * f64::from(n)),
        fading_power: 1.0,
        held_layers: 0,
        owed_layers: 0,
    }
}

/// Executes an order and measures it. The round closes at the deadline.
fn execute(cost: &CostModel, order: &RoundOrder, reports: &[TerminalReport]) -> Outcome {
    let slower = |one: &TerminalReport| Hardware { operations_per_cycle: 0.15, ..one.hardware };
    let hardware: Vec<Hardware> = reports.iter().map(slower).collect();
    let closes = cost.limits.deadline;
    let inputs = RoundInputs::of(order, reports, &hardware, closes);
    let costs = cost.round_costs(&order.plan, &inputs).costs;
    let measure = |(&id, one): (&TerminalId, &Cost)| match one.delay() {
        Seconds(0.0) => TerminalOutcome::idle(id),
        delay if delay > closes => TerminalOutcome::cut_off(id, closes),
        delay => TerminalOutcome::trained(id, delay, one.computation, one.energy(), 0.3),
    };
    Outcome::of(order.round, order.terminals.iter().zip(&costs).map(measure).collect())
}

/// Plans and executes eight rounds.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cuts = vec![
        CutProfile::new(1, 512, Operations(4e6), Bytes(20_000), Bytes(160_000)),
        CutProfile::new(2, 128, Operations(12e6), Bytes(80_000), Bytes(640_000)),
    ];
    let (deadline, bandwidth, power) = (Seconds(1.0), Hertz(2e6), Watts(0.2));
    let limits = Limits { deadline, bandwidth, power, compression: 0.9, cuts: vec![1, 2] };
    let mut cell = CellDescription::new(limits, Profile { batch: 32, action: 7, cuts }, 2);
    cell.training.aggregate_every = 1;
    let reports: Vec<TerminalReport> = (0..6).map(report).collect();
    let mut station = cell.station(&reports, 0)?;
    for round in 1..=8 {
        let seen = station.observe(&reports);
        let order = station.decide(&seen)?;
        let mut outcome = execute(&cell.cost, &order, &reports);
        station.learn(&seen, &order.plan, &mut outcome, None);
        let robots: Vec<usize> = order.plan.decision().scheduled().collect();
        println!("round {round}: robots {robots:?}, {:.2} s", outcome.duration.0);
    }
    Ok(())
}
