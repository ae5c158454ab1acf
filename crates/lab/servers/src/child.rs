//! A server's process: start, wait, end.

use crate::Error;
use std::fs::{self, File};
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

/// Makes the kernel send the signal to the program when the thread that starts it ends, however it ends: a killed experiment
/// or test leaves no process.
pub fn ends_with_thread(command: &mut Command, signal: libc::c_int) {
    let with_thread = move || {
        // SAFETY: prctl is a system call and takes no pointers here.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: what runs between fork and exec makes one system call and touches no memory of others.
    unsafe { command.pre_exec(with_thread) };
}

/// Starts it with its standard error in a log.
pub(crate) fn spawn(command: &mut Command, log: &Path) -> Result<Child, Error> {
    let io = |doing, path: &Path| {
        let path = path.into();
        move |source| Error::Io { doing, path, source }
    };
    let file = File::create(log).map_err(io("make", log))?;
    let program = command.get_program().to_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    command.spawn().map_err(io("run", Path::new(&program)))
}

/// Waits until `is_ready`, or the server has ended.
pub(crate) fn wait_until_ready(
    what: &'static str,
    child: &mut Child,
    home: &Path,
    log: &Path,
    is_ready: impl Fn() -> bool,
) -> Result<(), Error> {
    let start = Instant::now();
    let failed = |why: String| {
        let output = fs::read_to_string(log).unwrap_or_default();
        Error::NotReady { what, home: home.into(), why, output: tail(&output) }
    };
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
    if let Ok(pid) = libc::pid_t::try_from(pid)
        && pid > 0
    {
        // SAFETY: it takes two numbers.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Waits for killed processes that are not children of this one. A zombie writes nothing any more.
pub(crate) fn wait_until_gone(pids: &[u32]) {
    let start = Instant::now();
    while pids.iter().any(|pid| host::start_ticks(*pid).is_some()) && start.elapsed() < READY_MAX {
        thread::sleep(POLL_EVERY / 4);
    }
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output();
    let done =
        done.map_err(|error| Error::Program { program: program.clone(), output: error.to_string() })?;
    if done.status.success() {
        return Ok(());
    }
    let output = [String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)].concat();
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
