//! A process that writes to an engine's files until it is killed: this binary, with `lab recover-writer ...`.

use super::steps::StepKind;
use super::victim::ReportStep;
use super::work::{BATCH, Crash};
use super::{Context, Engine};
use crate::Error;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The stop flag is polled at least this often.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes of a program's stderr that an error repeats at most.
const STDERR_BYTES_MAX: u64 = 1_000;

/// Messages of the program, 24 bytes each on its stdout, little-endian.
///
/// ```text
/// 0 done all       pages of the data file made
/// 1 commits log    commits acknowledged, bytes of log
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Made { done: u64, all: u64 },
    Committed { commits: u64, log_bytes: u64 },
}

impl Message {
    fn to_bytes(self) -> [u8; 24] {
        let numbers = match self {
            Message::Made { done, all } => [0, done, all],
            Message::Committed { commits, log_bytes } => [1, commits, log_bytes],
        };
        let mut bytes = [0; 24];
        bytes
            .chunks_exact_mut(8)
            .zip(numbers)
            .for_each(|(at, number)| at.copy_from_slice(&number.to_le_bytes()));
        bytes
    }

    fn from_bytes(bytes: [u8; 24]) -> Message {
        let number =
            |at: usize| bytes[at..at + 8].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        match number(0) {
            0 => Message::Made { done: number(8), all: number(16) },
            _ => Message::Committed { commits: number(8), log_bytes: number(16) },
        }
    }
}

/// Pages of the data file that the program makes at a time.
const FILL: u64 = 4_096;

/// Makes the data file by `add`, which adds these pages, and reports the progress.
pub(super) fn fill(pages: u64, mut add: impl FnMut(Range<u64>) -> Result<(), Error>) -> Result<(), Error> {
    for done in (0..pages).step_by(FILL as usize) {
        let end = (done + FILL).min(pages);
        add(done..end)?;
        send(Message::Made { done: end, all: pages })?;
    }
    Ok(())
}

pub(super) fn report_commits(commits: u64, log_bytes: u64) -> Result<(), Error> {
    send(Message::Committed { commits, log_bytes })
}

/// Reports the progress of the program on its stdout. It fails, and ends the program, once the reader is gone.
fn send(message: Message) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(&message.to_bytes()).and_then(|()| stdout.flush());
    written.map_err(Error::io("tell", Path::new("stdout")))
}

/// Starts the program in an empty directory, and kills it while it writes, once the log has its length. `None` if the
/// experiment was stopped.
pub(super) fn crash(
    engine: Engine,
    dir: &Path,
    run: &Context,
    report: &mut ReportStep<'_>,
) -> Result<Option<Crash>, Error> {
    let work = run.order.work;
    let mut command = Command::new(&run.plan.program);
    command.args(["lab", "recover-writer", engine.name()]).arg(dir);
    command.args([work.pages, work.data_pages, work.log_bytes, work.seed].map(|number| number.to_string()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    servers::ends_with_thread(&mut command, libc::SIGKILL);
    let mut child = command.spawn().map_err(Error::io("run", &run.plan.program))?;
    let mut stdout = child.stdout.take().expect("piped");
    let (send, received) = channel();
    let listener = thread::spawn(move || {
        let mut bytes = [0; 24];
        while stdout.read_exact(&mut bytes).is_ok() && send.send(Message::from_bytes(bytes)).is_ok() {}
    });
    let mut last = Crash { commits: 0, log_bytes: 0 };
    let mut stopped = false;
    loop {
        match received.recv_timeout(POLL_INTERVAL) {
            Ok(Message::Made { done, all }) => {
                report(StepKind::Making, done as f64 / all.max(1) as f64 / 2.0);
            }
            Ok(Message::Committed { commits, log_bytes }) => {
                last = Crash { commits, log_bytes };
                report(StepKind::Making, 0.5 + log_bytes as f64 / work.log_bytes.max(1) as f64 / 2.0);
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
    // Messages that it had sent before it died.
    let _ = listener.join();
    for message in received.try_iter() {
        if let Message::Committed { commits, log_bytes } = message {
            last = Crash { commits, log_bytes };
        }
    }
    match killed {
        _ if stopped => Ok(None),
        Ok(()) if last.commits * BATCH >= 2 => Ok(Some(last)),
        Ok(()) => Err(lost(engine, "was killed before it had committed anything")),
        Err(why) => Err(lost(engine, &why)),
    }
}

fn lost(engine: Engine, why: &str) -> Error {
    Error::Writer { engine: engine.name(), why: why.into() }
}

/// Kills it with SIGKILL; the error is how it had ended before.
fn kill(child: &mut Child) -> Result<(), String> {
    let _ = child.kill();
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.signal() == Some(libc::SIGKILL) {
        return Ok(());
    }
    let mut text = String::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(STDERR_BYTES_MAX).read_to_string(&mut text);
    }
    Err(format!("ended by itself ({status}): {}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for message in
            [Message::Made { done: 3, all: 1 << 40 }, Message::Committed { commits: u64::MAX, log_bytes: 7 }]
        {
            assert_eq!(Message::from_bytes(message.to_bytes()), message);
        }
    }
}
