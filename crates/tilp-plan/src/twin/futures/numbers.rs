//! The numbers behind imagined rounds, for other implementations that are compared with this one.

use super::{COMPRESSION_LEVELS, CutTables, MAX_CUTS, RolloutTables, Terminal};

impl RolloutTables {
    /// Everything that a rollout reads, by name; tables row by row.
    pub fn numbers(&self) -> Vec<(&'static str, Vec<f32>)> {
        let start = &self.start;
        let first = |rows: &[[f32; 16]]| rows.iter().map(|row| row[0]).collect();
        let aggregates = |step: usize| f32::from(u8::from(self.aggregates(step)));
        let each = |value: fn(&Terminal) -> f32| self.terminals.iter().map(value).collect();
        let n_cuts = self.sizes.len() / COMPRESSION_LEVELS;
        let cuts = |value: fn(&CutTables) -> &[f32; MAX_CUTS]| -> Vec<f32> {
            self.terminals.iter().flat_map(|one| &value(&one.cuts)[..n_cuts]).copied().collect()
        };
        let column = |at: usize| -> Vec<f32> { self.sizes.iter().map(|row| row[at]).collect() };
        vec![
            ("deadline", vec![self.deadline, self.closes, self.give_up]),
            ("most", vec![self.band, self.power]),
            ("aggregates", (0..self.n_steps()).map(aggregates).collect()),
            ("drops_late", vec![f32::from(u8::from(self.drops_late))]),
            ("snr", self.snr.clone()),
            ("safe_snr", self.safe_snr.clone()),
            ("usual", self.usual.clone()),
            ("group", each(|one| one.group as f32)),
            ("samples", each(|one| one.samples)),
            ("push", each(|one| one.push)),
            ("own_weight", each(|one| one.own_weight)),
            ("raw_own_weight", each(|one| one.raw_own_weight)),
            ("radio_factor", each(|one| one.radio_factor)),
            ("line", self.terminals.iter().flat_map(|one| one.line).collect()),
            ("seconds", cuts(|one| &one.seconds)),
            ("safe_seconds", cuts(|one| &one.safe_seconds)),
            ("joules", cuts(|one| &one.joules)),
            ("excess", cuts(|one| &one.excess)),
            ("depth", cuts(|one| &one.depth)),
            ("up", column(0)),
            ("down", column(1)),
            ("model_bits", self.model_bits.clone()),
            ("header", vec![self.header]),
            ("layers", self.layers[..n_cuts].to_vec()),
            ("noise", column(2)[..COMPRESSION_LEVELS].to_vec()),
            ("weights", self.weights.to_vec()),
            ("tempo", self.tempo.to_vec()),
            ("rates", self.rates.to_vec()),
            ("caution", vec![self.caution]),
            ("doubt", self.doubt.to_vec()),
            ("reward", self.reward.to_vec()),
            ("scale", self.scale.to_vec()),
            ("log_loss", first(&start.log_loss)),
            ("variance", first(&start.variance)),
            ("advantage", first(&start.advantage)),
            ("held", first(&start.held)),
            ("pending", first(&start.pending)),
            ("success", vec![start.success[0]]),
        ]
    }
}
