//! A child process that answers lines with lines.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::exchange::{ExchangeError, MOST_BYTES};

/// Bytes kept of what the program wrote on its standard error, for the message if it fails.
const KEPT_BYTES: usize = 4096;
/// How long a program may take to end after its input was closed.
const END: Duration = Duration::from_secs(2);

/// Why a program outside did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The command has no words, or a quote is open.
    #[error("method = exec:{command}, expected exec:PROGRAM with arguments, quotes in pairs")]
    Command {
        /// The command.
        command: String,
    },
    /// It could not be started.
    #[error("{program} cannot be started: {reason}; expected an executable file{hint}")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        reason: String,
        /// What may help.
        hint: &'static str,
    },
    /// It took too long.
    #[error("{program} gave no answer to `{question}` within {seconds} s")]
    Timeout {
        /// The program.
        program: String,
        /// What was asked.
        question: &'static str,
        /// How long it had.
        seconds: f64,
    },
    /// It ended.
    #[error("{program} ended instead of answering `{question}`: {how}")]
    Ended {
        /// The program.
        program: String,
        /// What was asked.
        question: &'static str,
        /// Exit status, and the last line of its standard error.
        how: String,
    },
    /// Its answer is none.
    #[error("{program} answered `{question}` with what is no {expected}: {reason}")]
    Answer {
        /// The program.
        program: String,
        /// What was asked.
        question: &'static str,
        /// The type of reply that was expected.
        expected: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// It answered with an error.
    #[error("{program} answered `{question}` with an error: {reason}")]
    Refused {
        /// The program.
        program: String,
        /// What was asked.
        question: &'static str,
        /// The answer of the program.
        reason: String,
    },
}

impl ProgramError {
    /// Whether the command is wrong, rather than the behaviour of the program.
    pub fn is_bad_command(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Start { .. })
    }
}

/// The words of a command: divided by spaces, quotes keep together.
pub(super) fn words(command: &str) -> Result<Vec<String>, ProgramError> {
    let wrong = || ProgramError::Command { command: command.to_owned() };
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) if c.is_control() => return Err(wrong()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quote.is_some() || words.first().is_none_or(String::is_empty) {
        return Err(wrong());
    }
    Ok(words)
}

/// A running program.
pub(super) struct Process {
    program: String,
    child: Child,
    /// Closing it ends the thread that writes, and with it the program's input.
    questions: Option<Sender<String>>,
    answers: Receiver<io::Result<Vec<u8>>>,
    complaints: Arc<Mutex<VecDeque<u8>>>,
    /// Disconnected when the standard error has been read to its end.
    complained: Receiver<()>,
}

impl Process {
    /// Starts a program in the current folder. Its standard error is kept for messages.
    pub(super) fn start(words: &[String]) -> Result<Self, ProgramError> {
        let program = words[0].clone();
        let spawn = |name: &Path| {
            let mut command = Command::new(name);
            command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
            // Ctrl-C is for the base station, which ends the round and then the program.
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            command.stderr(Stdio::piped()).spawn()
        };
        let here = Path::new(".").join(&program);
        let child = match spawn(Path::new(&program)) {
            Err(error) if error.kind() == ErrorKind::NotFound && here.is_file() => spawn(&here),
            spawned => spawned,
        };
        let mut child = child.map_err(|error| ProgramError::Start {
            program: program.clone(),
            reason: error.to_string(),
            hint: match error.kind() {
                ErrorKind::PermissionDenied => ", or its interpreter in front of it",
                _ => "",
            },
        })?;
        let (questions, asked) = mpsc::channel();
        let (answer, answers) = mpsc::sync_channel(4);
        let complaints = Arc::new(Mutex::new(VecDeque::new()));
        let (complaining, complained) = mpsc::channel();
        if let Some(input) = child.stdin.take() {
            thread::spawn(move || write_all(input, &asked));
        }
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || read_lines(BufReader::new(output), &answer));
        }
        if let Some(errors) = child.stderr.take() {
            let kept = complaints.clone();
            thread::spawn(move || {
                keep_last(errors, &kept);
                drop(complaining);
            });
        }
        Ok(Self { program, child, questions: Some(questions), answers, complaints, complained })
    }

    /// The name of the program.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Writes a line and waits for the next one that the program writes.
    pub(super) fn ask(
        &mut self,
        question: &'static str,
        line: String,
        seconds: f64,
    ) -> Result<Vec<u8>, ProgramError> {
        let program = self.program.clone();
        if let Some(questions) = &self.questions {
            // A program that has ended is found out by its missing answer.
            let _ = questions.send(line);
        }
        match self.answers.recv_timeout(Duration::from_secs_f64(seconds)) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(ProgramError::Answer {
                program,
                question,
                expected: "line",
                reason: error.to_string(),
            }),
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                Err(ProgramError::Timeout { program, question, seconds })
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = self.last_words();
                Err(ProgramError::Ended { program, question, how })
            }
        }
    }

    /// How it ended, and the last line that it wrote on its standard error.
    fn last_words(&mut self) -> String {
        let status = match self.wait() {
            Some(status) => status.to_string(),
            None => "it closed its output".to_owned(),
        };
        // The thread that reads the standard error may be behind the one that reads the answers. A child of
        // the program may hold the stream open, so the wait has an end.
        let _ = self.complained.recv_timeout(END);
        let kept = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        match text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
            Some(line) => format!("{status}: {line}"),
            None => status,
        }
    }

    /// Its exit status, if it ends in time.
    fn wait(&mut self) -> Option<ExitStatus> {
        const STEP: Duration = Duration::from_millis(5);
        for _ in 0..END.as_millis() / STEP.as_millis() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            thread::sleep(STEP);
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(questions) = self.questions.take() {
            let _ = questions.send(crate::exchange::Question::End.line());
        }
        if self.wait().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn write_all(mut input: ChildStdin, lines: &Receiver<String>) {
    for line in lines {
        if input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// Sends every line; a line that is too long is the last.
fn read_lines(mut output: impl BufRead, lines: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut line = Vec::new();
        let most = MOST_BYTES as u64 + 1;
        let read = (&mut output).take(most).read_until(b'\n', &mut line);
        let too_long = line.len() > MOST_BYTES && line.last() != Some(&b'\n');
        let answer = match read {
            Ok(0) => return,
            Ok(_) if too_long => Err(io::Error::other(ExchangeError::TooLong { what: "line" })),
            Ok(_) => Ok(line),
            Err(error) => Err(error),
        };
        let is_last = answer.is_err();
        if lines.send(answer).is_err() || is_last {
            return;
        }
    }
}

/// Keeps the last bytes of a stream.
fn keep_last(mut errors: impl Read, kept: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(n @ 1..) = errors.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..n]);
        let excess = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        Process::start(&["sh".to_owned(), "-c".to_owned(), script.to_owned()]).unwrap()
    }

    #[test]
    fn words_are_divided_by_spaces_and_kept_together_by_quotes() {
        let split = |text: &str| words(text).unwrap();
        assert_eq!(split("python3 mine.py --k 2"), ["python3", "mine.py", "--k", "2"]);
        assert_eq!(split(" 'my method.py'  \"a 'b\" '' "), ["my method.py", "a 'b", ""]);
        for wrong in ["", "  ", "'", "python3 \"a", "''", "a\nb"] {
            assert!(words(wrong).is_err() || wrong == "a\nb", "{wrong}");
        }
    }

    #[test]
    fn a_line_is_answered_with_a_line() {
        let mut echo = shell("while read line; do echo \"got $line\"; done");
        for text in ["one", "two"] {
            let answer = echo.ask("observe", format!("{text}\n"), 20.0).unwrap();
            assert_eq!(String::from_utf8(answer).unwrap(), format!("got {text}\n"));
        }
    }

    #[test]
    fn a_program_that_ends_says_how_and_a_silent_one_is_given_up() {
        let said = shell("read line; echo first >&2; echo worst >&2; exit 3")
            .ask("observe", "x\n".into(), 20.0)
            .unwrap_err()
            .to_string();
        assert!(said.contains("exit status: 3: worst"), "{said}");
        let said = shell("exec sleep 60").ask("observe", "x\n".into(), 0.05).unwrap_err();
        assert!(said.to_string().contains("within 0.05 s"), "{said}");
        let absent = Process::start(&["./no-such-program".to_owned()]).err().unwrap();
        assert!(absent.is_bad_command() && absent.to_string().contains("no-such-program"));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let (lines, answers) = mpsc::sync_channel(4);
        read_lines(BufReader::new(io::repeat(b'x').take(2 * MOST_BYTES as u64)), &lines);
        assert!(answers.recv().unwrap().is_err());
    }
}
