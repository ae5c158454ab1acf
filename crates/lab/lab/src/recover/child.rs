//! A program that works on an engine's files until it is killed: this binary, told `lab recover-writer ...`.

use super::steps::Doing;
use super::victim::Tell;
use super::work::{BATCH, Crash, Order};
use super::{Engine, Run};
use crate::Error;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// How long nothing may be heard before somebody looks whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Of what a program complained about, this much is told.
const SAID_BYTES_MAX: u64 = 1_000;

/// What the program tells, 24 bytes each on its stdout.
///
/// ```text
/// 0 done all       pages of the data file made
/// 1 commits log    commits acknowledged, bytes of log
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Made { done: u64, all: u64 },
    Committed { commits: u64, log_bytes: u64 },
}

impl Word {
    fn bytes(self) -> [u8; 24] {
        let words = match self {
            Word::Made { done, all } => [0, done, all],
            Word::Committed { commits, log_bytes } => [1, commits, log_bytes],
        };
        let mut bytes = [0; 24];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(at, word)| at.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    fn from(bytes: [u8; 24]) -> Word {
        let word =
            |at: usize| bytes[at..at + 8].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        match word(0) {
            0 => Word::Made { done: word(8), all: word(16) },
            _ => Word::Committed { commits: word(8), log_bytes: word(16) },
        }
    }
}

/// How the program tells how far it is. Nobody who listens any more is the end of it.
pub(super) struct Teller(());

impl Teller {
    pub(super) fn new() -> Teller {
        Teller(())
    }

    pub(super) fn made(&mut self, done: u64, all: u64) -> Result<(), Error> {
        self.say(Word::Made { done, all })
    }

    pub(super) fn committed(&mut self, commits: u64, log_bytes: u64) -> Result<(), Error> {
        self.say(Word::Committed { commits, log_bytes })
    }

    fn say(&mut self, word: Word) -> Result<(), Error> {
        let mut stdout = std::io::stdout().lock();
        let told = stdout.write_all(&word.bytes()).and_then(|()| stdout.flush());
        told.map_err(|source| Error::Io { doing: "tell", path: "stdout".into(), source })
    }
}

/// Starts the program in an empty directory, and kills it in the middle of its writing once the log has its length.
/// `None` where the experiment was ended.
pub(super) fn crash(
    engine: Engine,
    dir: &Path,
    run: &Run,
    tell: &mut Tell<'_>,
) -> Result<Option<Crash>, Error> {
    let work = run.order.work;
    let mut command = Command::new(&run.plan.program);
    command.args(["lab", "recover-writer", engine.name()]).arg(dir);
    command.args([work.pages, work.data_pages, work.log_bytes, work.seed].map(|number| number.to_string()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    servers::ends_with_thread(&mut command, libc::SIGKILL);
    let failed = |source| Error::Io { doing: "run", path: run.plan.program.clone(), source };
    let mut child = command.spawn().map_err(failed)?;
    let mut told = child.stdout.take().expect("piped");
    let (send, heard) = channel();
    let listener = thread::spawn(move || {
        let mut bytes = [0; 24];
        while told.read_exact(&mut bytes).is_ok() && send.send(Word::from(bytes)).is_ok() {}
    });
    let mut last = Crash { commits: 0, log_bytes: 0 };
    let mut stopped = false;
    loop {
        match heard.recv_timeout(LOOK_EVERY) {
            Ok(Word::Made { done, all }) => tell(Doing::Making, done as f64 / all.max(1) as f64 / 2.0),
            Ok(Word::Committed { commits, log_bytes }) => {
                last = Crash { commits, log_bytes };
                tell(Doing::Making, 0.5 + log_bytes as f64 / work.log_bytes.max(1) as f64 / 2.0);
                if log_bytes >= work.log_bytes {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if run.stop.load(Relaxed) {
            stopped = true;
            break;
        }
    }
    let killed = kill(&mut child);
    // What it had told before it died.
    let _ = listener.join();
    for word in heard.try_iter() {
        if let Word::Committed { commits, log_bytes } = word {
            last = Crash { commits, log_bytes };
        }
    }
    match killed {
        _ if stopped => Ok(None),
        Ok(()) if last.commits * BATCH >= 2 => Ok(Some(last)),
        Ok(()) => Err(lost(engine, "was killed before it had committed anything")),
        Err(said) => Err(lost(engine, &said)),
    }
}

fn lost(engine: Engine, why: &str) -> Error {
    Error::Writer { engine: engine.name(), why: why.into() }
}

/// With SIGKILL; what it said where it had ended by itself.
fn kill(child: &mut Child) -> Result<(), String> {
    let _ = child.kill();
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.signal() == Some(libc::SIGKILL) {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(SAID_BYTES_MAX).read_to_string(&mut said);
    }
    Err(format!("ended by itself ({status}): {}", said.trim()))
}

/// The whole life of the program: it ends by being killed.
///
/// # Errors
/// What an engine refuses.
pub(super) fn work(engine: Engine, dir: &Path, order: &Order) -> Result<std::convert::Infallible, Error> {
    match engine.files() {
        Some(files) => (files.write)(dir, order, &mut Teller::new()),
        None => Err(lost(engine, "has a server of its own that is killed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_is_heard() {
        for word in
            [Word::Made { done: 3, all: 1 << 40 }, Word::Committed { commits: u64::MAX, log_bytes: 7 }]
        {
            assert_eq!(Word::from(word.bytes()), word);
        }
    }
}
