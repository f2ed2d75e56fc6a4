//! What is computed: chains of digests, in which a step that is lost, repeated or swapped changes
//! the result.

use rand::RngExt;
use sha2::{Digest, Sha256};
use tilp_core::rng::Seed;
use tilp_testbed::contract::PART_BYTES;
use tilp_testbed::terminal::{Worked, Worker};

/// Rounds and steps of a run.
#[derive(Clone, Debug)]
pub struct Program {
    pub terminals: usize,
    pub rounds: u64,
    /// Steps of each terminal in each round.
    pub steps: Vec<Vec<u32>>,
    pub checkpoint_every: u64,
    /// Bytes of the payload of every request of a round.
    pub sizes: Vec<usize>,
}

impl Program {
    pub fn drawn(seed: u64) -> Self {
        let mut rng = Seed::new(seed).stream("program");
        let (terminals, rounds) = (rng.random_range(1..=4), rng.random_range(2..=6));
        let steps = |_| (0..terminals).map(|_| rng.random_range(0..=4)).collect();
        let steps = (0..rounds).map(steps).collect();
        let mut rng = Seed::new(seed).stream("sizes");
        let size = |_| match rng.random_range(0..12) {
            0 => 2 * PART_BYTES + 7,
            1 => PART_BYTES,
            _ => rng.random_range(1..200),
        };
        let sizes = (0..rounds).map(size).collect();
        let checkpoint_every = Seed::new(seed).stream("checkpoints").random_range(1..=3);
        Self { terminals, rounds, steps, checkpoint_every, sizes }
    }

    pub fn n_requests(&self, terminal: usize) -> u64 {
        self.steps.iter().map(|round| u64::from(round[terminal])).sum()
    }

    /// The payload of a request, from all that was answered before.
    pub fn payload(&self, round: u64, chain: &[u8; 32]) -> Vec<u8> {
        let size = self.sizes[round as usize - 1];
        chain.iter().copied().cycle().take(size.max(32)).collect()
    }
}

pub fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// The work of a terminal.
#[derive(Clone, Debug, Default)]
pub struct Accumulator {
    state: [u8; 32],
    worked: u64,
}

impl Accumulator {
    pub fn worked(&self) -> u64 {
        self.worked
    }
}

impl Worker for Accumulator {
    fn prepare(&mut self, _work: &[u8]) -> Result<(), String> {
        *self = Self::default();
        Ok(())
    }

    fn reset(&mut self, _membership: u64) -> Result<(), String> {
        *self = Self::default();
        Ok(())
    }

    fn handle(&mut self, round: u64, message: &[u8]) -> Result<Worked, String> {
        self.state = digest(&[&self.state, &round.to_le_bytes(), message]);
        self.worked += 1;
        let message = self.state.iter().copied().cycle().take(message.len()).collect();
        Ok(Worked { message, ..Worked::default() })
    }

    fn save(&self) -> Vec<u8> {
        [&self.state[..], &self.worked.to_le_bytes()].concat()
    }

    fn restore(&mut self, _round: u64, bytes: &[u8]) -> Result<(), String> {
        let (state, worked) = bytes.split_at(32);
        self.state = state.try_into().map_err(|_| "length")?;
        self.worked = u64::from_le_bytes(worked.try_into().map_err(|_| "length")?);
        Ok(())
    }
}

/// The result of a run without network.
pub fn expected(program: &Program) -> [u8; 32] {
    let mut workers = vec![Accumulator::default(); program.terminals];
    let mut whole = [0; 32];
    for round in 1..=program.rounds {
        let mut chains = vec![whole; program.terminals];
        for (terminal, chain) in chains.iter_mut().enumerate() {
            for _ in 0..program.steps[round as usize - 1][terminal] {
                let payload = program.payload(round, chain);
                let answer = workers[terminal].handle(round, &payload).unwrap().message;
                *chain = digest(&[chain, &answer]);
            }
        }
        whole = digest(&chains.iter().map(|chain| &chain[..]).collect::<Vec<_>>());
    }
    whole
}
