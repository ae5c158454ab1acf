//! A server's process: start, wait, end.

use crate::Error;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longest startup and longest orderly shutdown of a server.
const READY_MAX: Duration = Duration::from_secs(120);
const POLL_EVERY: Duration = Duration::from_millis(20);
/// An error shows so much of the end of a program's output.
const OUTPUT_BYTES_MAX: usize = 1_000;
/// Most that is read of a server's log or pid file. Both are smaller, unless the server's user has replaced them.
const READ_BYTES_MAX: u64 = 64 << 20;

/// Makes the kernel send the signal to the program when the thread that starts it ends, however it ends: a killed experiment
/// or test leaves no process.
pub fn ends_with_thread(command: &mut Command, signal: libc::c_int) {
    let with_thread = move || Ok(set_parent_process_death_signal(Signal::from_named_raw(signal))?);
    // SAFETY: what runs between fork and exec makes one system call and touches no memory of others.
    unsafe { command.pre_exec(with_thread) };
}

/// Makes the log of a server: a new file of this program's user, never an existing one or one that a link names.
pub(crate) fn make_log(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(|source| Error::Io { doing: "make", path: path.into(), source })
}

/// Starts it with its standard error in the log.
pub(crate) fn spawn(command: &mut Command, log: &File) -> Result<Child, Error> {
    let program = command.get_program().to_owned();
    let spawn = |log: File| command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
    log.try_clone().and_then(spawn).map_err(|source| Error::Io { doing: "run", path: program.into(), source })
}

/// The text of a file that the server's user may have replaced: a link is not followed, a pipe does not block.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut text = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Waits until `is_ready`, or the server has ended.
pub(crate) fn wait_until_ready(
    what: &'static str,
    child: &mut Child,
    home: &Path,
    log: &File,
    is_ready: impl Fn() -> bool,
) -> Result<(), Error> {
    let start = Instant::now();
    let failed = |why: String| Error::NotReady { what, home: home.into(), why, output: end_of(log) };
    while !is_ready() {
        if let Ok(Some(_)) = child.try_wait() {
            return Err(failed("ended".into()));
        }
        if start.elapsed() > READY_MAX {
            return Err(failed(format!("was not ready within {} s", READY_MAX.as_secs())));
        }
        thread::sleep(POLL_EVERY);
    }
    Ok(())
}

fn end_of(log: &File) -> String {
    let mut end = vec![0; OUTPUT_BYTES_MAX];
    let from = log.metadata().map_or(0, |log| log.len()).saturating_sub(OUTPUT_BYTES_MAX as u64);
    let read = log.read_at(&mut end, from).unwrap_or(0);
    tail(&String::from_utf8_lossy(&end[..read]))
}

/// Sends it the signal and waits; kills it if it has not ended in time.
pub(crate) fn end(child: &mut Child, signal: libc::c_int) {
    let start = Instant::now();
    send(child.id(), signal);
    while matches!(child.try_wait(), Ok(None)) {
        if start.elapsed() > READY_MAX {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        thread::sleep(POLL_EVERY / 4);
    }
}

/// Does nothing if the process has ended.
pub(crate) fn send(pid: u32, signal: libc::c_int) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
    }
}

/// Waits for killed processes that are not children of this one. A zombie writes nothing any more.
pub(crate) fn wait_until_gone(pids: &[u32]) {
    let start = Instant::now();
    while pids.iter().any(|pid| host::start_ticks(*pid).is_some()) && start.elapsed() < READY_MAX {
        thread::sleep(POLL_EVERY / 4);
    }
}

/// Runs a program to its end; returns its output.
pub(crate) fn run(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output();
    let done =
        done.map_err(|error| Error::Program { program: program.clone(), output: error.to_string() })?;
    let output = String::from_utf8_lossy(&done.stdout);
    if done.status.success() {
        return Ok(output.into_owned());
    }
    let output = [output, String::from_utf8_lossy(&done.stderr)].concat();
    Err(Error::Program { program, output: tail(&output) })
}

fn tail(output: &str) -> String {
    let text = output.trim();
    let mut from = text.len().saturating_sub(OUTPUT_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_output_is_cut_between_characters() {
        let end = tail(&format!("{}end", "é".repeat(1_000)));
        assert!(end.ends_with("éend") && end.len() <= OUTPUT_BYTES_MAX);
    }

    #[test]
    fn a_killed_process_that_is_not_reaped_is_gone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(host::children_of(std::process::id()).contains(&child.id()));
        send(child.id(), libc::SIGKILL);
        // Dead and not yet reaped.
        wait_until_gone(&[child.id()]);
        child.wait().unwrap();
        assert!(!host::children_of(std::process::id()).contains(&child.id()));
    }

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let started = thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("60");
            ends_with_thread(&mut command, libc::SIGKILL);
            command.spawn().unwrap()
        });
        let mut child = started.join().unwrap();
        let start = Instant::now();
        assert!(!child.wait().unwrap().success() && start.elapsed() < Duration::from_secs(30));
    }
}
