//! A server's process: started, waited for, ended.

use crate::Error;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that a server may take to be there, or to end in good order.
const READY_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Of what a program said, this much of the end is told.
const SAID_BYTES_MAX: usize = 1_000;

/// The signal is sent to the program when the thread that started it ends, however it ends: a killed experiment or
/// test leaves no server, and no other process of its own.
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

/// Starts it, its words going to a log.
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

/// Waits until `ready` says so.
pub(crate) fn wait_until_ready(
    what: &'static str,
    child: &mut Child,
    home: &Path,
    log: &Path,
    ready: impl Fn() -> bool,
) -> Result<(), Error> {
    let began = Instant::now();
    let failed = |why: String| {
        let said = fs::read_to_string(log).unwrap_or_default();
        Error::NotReady { what, home: home.into(), why, said: end_of(&said) }
    };
    while !ready() {
        if let Ok(Some(_)) = child.try_wait() {
            return Err(failed("ended".into()));
        }
        if began.elapsed() > READY_MAX {
            return Err(failed(format!("was not ready within {} s", READY_MAX.as_secs())));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Ends it, in good order if that is what the signal says and it does so in time.
pub(crate) fn end(child: &mut Child, signal: libc::c_int) {
    let began = Instant::now();
    send(child.id(), signal);
    while matches!(child.try_wait(), Ok(None)) {
        if began.elapsed() > READY_MAX {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        thread::sleep(LOOK_EVERY / 4);
    }
}

/// It may be gone already.
pub(crate) fn send(pid: u32, signal: libc::c_int) {
    if let Ok(pid) = libc::pid_t::try_from(pid)
        && pid > 0
    {
        // SAFETY: it takes two numbers.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Waits for processes that are not this one's children and were killed. What was reaped, and what only waits to be,
/// writes nothing any more.
pub(crate) fn wait_until_gone(pids: &[u32]) {
    let began = Instant::now();
    while pids.iter().any(|pid| host::start_ticks(*pid).is_some()) && began.elapsed() < READY_MAX {
        thread::sleep(LOOK_EVERY / 4);
    }
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|error| Error::Program { program: program.clone(), said: error.to_string() })?;
    if done.status.success() {
        return Ok(());
    }
    let said = [String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)].concat();
    Err(Error::Program { program, said: end_of(&said) })
}

fn end_of(said: &str) -> String {
    let said = said.trim();
    let mut from = said.len().saturating_sub(SAID_BYTES_MAX);
    while !said.is_char_boundary(from) {
        from += 1;
    }
    said[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_complaint_is_told_in_whole_letters() {
        let said = end_of(&format!("{}end", "é".repeat(1_000)));
        assert!(said.ends_with("éend") && said.len() <= SAID_BYTES_MAX);
    }

    #[test]
    fn the_children_of_a_process_are_found_and_seen_to_go() {
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
        let began = Instant::now();
        assert!(!child.wait().unwrap().success() && began.elapsed() < Duration::from_secs(30));
    }
}
