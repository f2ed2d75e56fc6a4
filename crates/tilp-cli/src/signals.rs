//! Ctrl-C, SIGTERM and SIGUSR1 (what a scheduler may send before it takes the machine away): finish the round, write a checkpoint, say how to resume.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};

/// Stores the first signal that asks to stop.
#[derive(Clone)]
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Starts listening. A second signal of the same kind ends the program at once.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let asked = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGUSR1] {
            let again = Arc::clone(&asked);
            // SAFETY: an atomic swap and an immediate exit are all a signal handler may do.
            unsafe {
                signal_hook::low_level::register(signal, move || {
                    if again.swap(signal as usize, Ordering::SeqCst) == signal as usize {
                        signal_hook::low_level::exit(128 + signal);
                    }
                })?;
            }
        }
        Ok(Self(asked))
    }

    /// The signal that asked to stop, if one did.
    pub(crate) fn asked(&self) -> Option<i32> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(signal as i32),
        }
    }
}
