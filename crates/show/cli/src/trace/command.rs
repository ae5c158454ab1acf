use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use terminal::Failure;

/// A command whose process is there and waits: it is traced from its first instruction on.
pub struct Waiting {
    name: String,
    pid: u32,
    go: PipeWriter,
    /// Ends when the command runs, or cannot.
    starting: JoinHandle<io::Result<Child>>,
}

impl Waiting {
    /// Makes the process.
    pub fn start(words: &[OsString]) -> Result<Waiting, Failure> {
        let name = words.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let failed = |error: io::Error| Failure::new(format_args!("cannot start {name}: {error}"));
        let (mut told, tell) = io::pipe().map_err(failed)?;
        let (wait, go) = io::pipe().map_err(failed)?;
        let mut command = Command::new(words.first().map(OsString::as_os_str).unwrap_or_default());
        // What it prints is not the answer.
        let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
        command.args(words.iter().skip(1)).stdout(Stdio::from(stderr));
        let parents_end = go.as_raw_fd();
        // SAFETY: between fork and exec it only writes to and reads from pipes of ours and closes one of them.
        unsafe { command.pre_exec(move || in_child(&tell, &wait, parents_end)) };
        let starting = std::thread::spawn(move || command.spawn());
        let mut pid = [0; 4];
        match told.read_exact(&mut pid) {
            Ok(()) => Ok(Waiting { name, pid: u32::from_ne_bytes(pid), go, starting }),
            Err(_) => match joined(starting) {
                Err(error) => Err(failed(error)),
                Ok(_) => Err(failed(io::Error::other("its process did not tell its number"))),
            },
        }
    }

    /// Its number, which it keeps.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it go on.
    pub fn go(mut self) -> Result<Child, Failure> {
        let begun = self.go.write_all(&[1]).and_then(|()| joined(self.starting));
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

/// In the new process, before it becomes the command: tells its number and waits. Should we end meanwhile, it ends.
fn in_child(mut tell: &PipeWriter, mut wait: &PipeReader, parents_end: i32) -> io::Result<()> {
    // SAFETY: this process's copy, which nothing here uses; else the end of ours would not be seen.
    unsafe { libc::close(parents_end) };
    tell.write_all(&std::process::id().to_ne_bytes())?;
    wait.read_exact(&mut [0])
}

fn joined(starting: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    starting.join().unwrap_or_else(|_| Err(io::Error::other("a fault of headroom's own")))
}

/// Whether it ended.
pub fn ended(child: &mut Child) -> Result<bool, Failure> {
    child.try_wait().map(|status| status.is_some()).map_err(|error| not_waited(&error))
}

/// Waits for its end; how it ended, where that was not well.
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
    fn a_command_waits_until_it_may_go() {
        let directory = tempfile::tempdir().unwrap();
        let made = directory.path().join("made");
        let waiting = Waiting::start(&words(&["touch", made.to_str().unwrap()])).unwrap();
        let pid = waiting.pid();
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists() && !made.exists());
        let child = waiting.go().unwrap();
        assert_eq!(child.id(), pid);
        assert_eq!(wait(child).unwrap(), None);
        assert!(made.exists());
    }

    #[test]
    fn one_that_cannot_start_or_fails_says_so() {
        let missing = Waiting::start(&words(&["no-such-program"])).unwrap().go().unwrap_err();
        assert!(missing.to_string().contains("cannot start no-such-program"), "{missing}");
        let child = Waiting::start(&words(&["false"])).unwrap().go().unwrap();
        assert!(wait(child).unwrap().unwrap().contains("exit status: 1"));
    }
}
