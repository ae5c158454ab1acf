//! The command of `headroom trace -- COMMAND`.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use terminal::Failure;

/// A command whose process exists but waits before `exec`, so that it is traced from its first instruction.
pub struct WaitingCommand {
    name: String,
    /// The process number, which `exec` does not change.
    pub pid: u32,
    release: PipeWriter,
    /// Ends when the command runs, or fails to start.
    starting: JoinHandle<io::Result<Child>>,
}

impl WaitingCommand {
    /// Creates the process.
    pub fn start(words: &[OsString]) -> Result<WaitingCommand, Failure> {
        let name = words.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let failed = |error: io::Error| Failure::new(format_args!("cannot start {name}: {error}"));
        let (mut pid_from, pid_to) = io::pipe().map_err(failed)?;
        let (wait, release) = io::pipe().map_err(failed)?;
        let mut command = Command::new(words.first().map(OsString::as_os_str).unwrap_or_default());
        // Its output is not headroom's answer, so it goes to stderr.
        let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
        command.args(words.iter().skip(1)).stdout(Stdio::from(stderr));
        let parents_end = release.as_raw_fd();
        // SAFETY: between fork and exec the closure only reads, writes and closes pipes, which is async-signal-safe.
        unsafe { command.pre_exec(move || in_child(&pid_to, &wait, parents_end)) };
        let starting = std::thread::spawn(move || command.spawn());
        let mut pid = [0; 4];
        match pid_from.read_exact(&mut pid) {
            Ok(()) => Ok(WaitingCommand { name, pid: u32::from_ne_bytes(pid), release, starting }),
            Err(_) => match joined(starting) {
                Err(error) => Err(failed(error)),
                Ok(_) => Err(failed(io::Error::other("its process did not report its pid"))),
            },
        }
    }

    /// Lets the process run the command.
    pub fn release(mut self) -> Result<Child, Failure> {
        let begun = self.release.write_all(&[1]).and_then(|()| joined(self.starting));
        begun.map_err(|error| {
            let failure = Failure::new(format_args!("cannot start {}: {error}", self.name));
            match error.kind() {
                io::ErrorKind::NotFound => {
                    failure.with_remedy("give the path of a program, or the name of one in PATH")
                }
                _ => failure,
            }
        })
    }
}

/// Runs in the new process before `exec`: sends its number and waits. It ends if headroom ends meanwhile.
fn in_child(mut pid_to: &PipeWriter, mut wait: &PipeReader, parents_end: i32) -> io::Result<()> {
    // SAFETY: closes this process's copy of the pipe's end, which nothing here uses. While it is open, the read below would
    // not notice the end of headroom.
    unsafe { libc::close(parents_end) };
    pid_to.write_all(&std::process::id().to_ne_bytes())?;
    wait.read_exact(&mut [0])
}

fn joined(starting: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    starting.join().unwrap_or_else(|_| Err(io::Error::other("a fault of headroom's own")))
}

/// Whether the command has ended.
pub fn has_ended(child: &mut Child) -> Result<bool, Failure> {
    child.try_wait().map(|status| status.is_some()).map_err(|error| not_waited(&error))
}

/// Waits for the command to end. Returns how it failed, if it did.
pub fn wait(mut child: Child) -> Result<Option<String>, Failure> {
    let status = child.wait().map_err(|error| not_waited(&error))?;
    Ok((!status.success()).then(|| format!("the command ended with {status}")))
}

fn not_waited(error: &io::Error) -> Failure {
    Failure::new(format_args!("cannot wait for the command: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_command_waits_until_it_is_released() {
        let directory = tempfile::tempdir().unwrap();
        let made = directory.path().join("made");
        let waiting = WaitingCommand::start(&words(&["touch", made.to_str().unwrap()])).unwrap();
        let pid = waiting.pid;
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists() && !made.exists());
        let child = waiting.release().unwrap();
        assert_eq!(child.id(), pid);
        assert_eq!(wait(child).unwrap(), None);
        assert!(made.exists());
    }

    #[test]
    fn a_command_that_cannot_start_or_fails_is_reported() {
        let missing = WaitingCommand::start(&words(&["no-such-program"])).unwrap().release().unwrap_err();
        assert!(missing.to_string().contains("cannot start no-such-program"), "{missing}");
        let child = WaitingCommand::start(&words(&["false"])).unwrap().release().unwrap();
        assert!(wait(child).unwrap().unwrap().contains("exit status: 1"));
    }
}
