//! Threads that step the copies of an environment.
//!
//! Twins are plain data: they are stepped where the caller is, or by a pool of threads. A cell stays
//! in the thread that made it, so each thread keeps its share of the cells.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use rayon::prelude::*;

use super::imagined::Imagined;
use super::simulator::{Simulator, Step};
use super::view::{Form, decode};
use crate::errors::Failure;

/// Observation and result of a step.
type Stepped = (Vec<f32>, Step);

/// Makes a copy. Called in the thread that steps it.
type Make = Arc<dyn Fn() -> Box<dyn Simulator> + Send + Sync>;

pub(crate) enum Pool {
    Direct { copies: Vec<Imagined>, threads: Option<rayon::ThreadPool> },
    Threads(Vec<Worker>),
}

impl Pool {
    /// Copies of a twin.
    pub(crate) fn direct(copies: Vec<Imagined>, threads: usize) -> Result<Self, Failure> {
        let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let threads = (threads > 1).then(pool).transpose();
        let failed = |error: rayon::ThreadPoolBuildError| Failure::Run(error.to_string());
        Ok(Self::Direct { copies, threads: threads.map_err(failed)? })
    }

    /// Copies of a cell, divided among threads.
    pub(crate) fn threads(n: usize, threads: usize, make: Make) -> Self {
        let threads = threads.clamp(1, n.max(1));
        let share = |first: usize| (first..n).step_by(threads).count();
        Self::Threads((0..threads).map(|first| Worker::start(share(first), make.clone())).collect())
    }

    /// Starts episodes and returns what is seen.
    pub(crate) fn reset(
        &mut self,
        places: &[usize],
        seeds: &[u64],
        length: usize,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        match self {
            Self::Direct { copies, .. } => {
                let one = |(&place, &seed): (&usize, &u64)| {
                    copies[place].reset(seed)?;
                    Ok(looked(&copies[place], length))
                };
                places.iter().zip(seeds).map(one).collect()
            }
            Self::Threads(workers) => {
                let n = workers.len();
                for (&place, &seed) in places.iter().zip(seeds) {
                    workers[place % n].ask(Order::Reset { place: place / n, seed, length })?;
                }
                let answer = |place: &usize| Ok(workers[place % n].answer()?.0);
                places.iter().map(answer).collect()
            }
        }
    }

    /// Steps the copies that have an action.
    pub(crate) fn step(
        &mut self,
        actions: Vec<Option<Vec<f64>>>,
        form: Form,
        length: usize,
    ) -> Result<Vec<Stepped>, Failure> {
        match self {
            Self::Direct { copies, threads: None } => {
                let pairs = copies.iter_mut().zip(actions);
                pairs.map(|(copy, action)| stepped(copy, action, form, length)).collect()
            }
            Self::Direct { copies, threads: Some(threads) } => threads.install(|| {
                let pairs = copies.par_iter_mut().zip(actions);
                pairs.map(|(copy, action)| stepped(copy, action, form, length)).collect()
            }),
            Self::Threads(workers) => {
                let (n, n_copies) = (workers.len(), actions.len());
                for (place, action) in actions.into_iter().enumerate() {
                    let order = Order::Step { place: place / n, action, form, length };
                    workers[place % n].ask(order)?;
                }
                (0..n_copies).map(|place| workers[place % n].answer()).collect()
            }
        }
    }
}

fn looked(copy: &dyn Simulator, length: usize) -> Vec<f32> {
    let mut row = vec![0.0; length];
    copy.look(&mut row);
    row
}

fn stepped(
    copy: &mut dyn Simulator,
    action: Option<Vec<f64>>,
    form: Form,
    length: usize,
) -> Result<Stepped, Failure> {
    let Some(action) = action else {
        return Ok((vec![0.0; length], Step::default()));
    };
    let decision = decode(&action, form, &copy.ids(), copy.limits());
    let step = copy.step(decision)?;
    Ok((looked(copy, length), step))
}

/// A request to a thread.
enum Order {
    Reset { place: usize, seed: u64, length: usize },
    Step { place: usize, action: Option<Vec<f64>>, form: Form, length: usize },
}

/// A thread with its share of the copies. It ends when it is dropped.
pub(crate) struct Worker {
    orders: Option<Sender<Order>>,
    answers: Receiver<Result<Stepped, Failure>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(n: usize, make: Make) -> Self {
        let (orders, asked) = channel::<Order>();
        let (answer, answers) = channel();
        let thread = thread::spawn(move || {
            let mut copies: Vec<Box<dyn Simulator>> = (0..n).map(|_| make()).collect();
            for order in asked {
                if answer.send(performed(&mut copies, order)).is_err() {
                    return;
                }
            }
        });
        Self { orders: Some(orders), answers, thread: Some(thread) }
    }

    fn ask(&self, order: Order) -> Result<(), Failure> {
        let sent = self.orders.as_ref().map(|orders| orders.send(order).is_ok());
        if sent == Some(true) { Ok(()) } else { Err(ended()) }
    }

    fn answer(&self) -> Result<Stepped, Failure> {
        self.answers.recv().unwrap_or_else(|_| Err(ended()))
    }
}

fn ended() -> Failure {
    Failure::Run("the thread of the environment has ended, expected it to answer".to_owned())
}

fn performed(copies: &mut [Box<dyn Simulator>], order: Order) -> Result<Stepped, Failure> {
    match order {
        Order::Reset { place, seed, length } => {
            copies[place].reset(seed)?;
            Ok((looked(&*copies[place], length), Step::default()))
        }
        Order::Step { place, action, form, length } => {
            stepped(&mut *copies[place], action, form, length)
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}
