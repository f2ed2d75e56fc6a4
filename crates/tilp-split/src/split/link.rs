//! A terminal as the server reaches it.

use super::model::SplitModel;
use super::terminal::TerminalHalf;
use super::wire::WireError;

/// The way from the server to one terminal and back.
///
/// In a simulation the terminal is in the same process ([`LocalLink`]); in a testbed it is behind
/// a network. Only the bytes of messages pass through a link.
pub trait TerminalLink: Send {
    /// Delivers one message and returns the terminal's answer.
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError>;
}

/// Why an exchange with a terminal failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// No answer.
    #[error("no answer: {0}")]
    Lost(String),
    /// The terminal cannot use the message.
    #[error("message refused: {0}")]
    Refused(WireError),
    /// The server cannot use the answer.
    #[error("answer not usable: {0}")]
    Answer(#[from] WireError),
}

/// A terminal in the same process.
pub struct LocalLink<M: SplitModel>(TerminalHalf<M>);

impl<M: SplitModel> LocalLink<M> {
    /// The link to a terminal.
    pub fn new(terminal: TerminalHalf<M>) -> Self {
        Self(terminal)
    }

    /// The terminal at the other end, for the experimenter and for snapshots.
    pub fn terminal(&self) -> &TerminalHalf<M> {
        &self.0
    }

    /// The same, to be changed.
    pub fn terminal_mut(&mut self) -> &mut TerminalHalf<M> {
        &mut self.0
    }
}

impl<M: SplitModel> TerminalLink for LocalLink<M> {
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
        self.0.handle(message).map_err(LinkError::Refused)
    }
}
