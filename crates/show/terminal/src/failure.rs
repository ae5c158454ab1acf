//! The message that a program prints once when it cannot do what was requested.

use crate::escape::escape_part;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// A failure as its user sees it: what failed on what and why, facts, what to do, and the exit code.
#[derive(Debug)]
pub struct Failure {
    message: String,
    facts: Vec<String>,
    remedy: Option<String>,
    code: u8,
}

impl Failure {
    /// Something could not be done: exit code 3.
    pub fn new(message: impl Display) -> Failure {
        Failure { message: message.to_string(), facts: Vec::new(), remedy: None, code: 3 }
    }

    /// An argument is wrong: exit code 2.
    pub fn usage(message: impl Display) -> Failure {
        Failure { code: 2, ..Failure::new(message) }
    }

    /// From an error that knows facts and a remedy.
    pub fn from_parts(message: impl Display, facts: Vec<String>, remedy: Option<String>) -> Failure {
        Failure { facts, remedy, ..Failure::new(message) }
    }

    /// Adds a fact: "free: 2 GiB".
    #[must_use]
    pub fn with_fact(mut self, fact: impl Display) -> Failure {
        self.facts.push(fact.to_string());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Display) -> Failure {
        Failure { remedy: Some(remedy.to_string()), ..self }
    }

    /// Replaces the names of options in the remedy: (ours, theirs).
    #[must_use]
    pub fn with_option_names(mut self, words: &[(&str, &str)]) -> Failure {
        if let Some(remedy) = &mut self.remedy {
            words.iter().for_each(|(ours, theirs)| *remedy = remedy.replace(ours, theirs));
        }
        self
    }

    /// Prints it on stderr.
    pub fn print(&self) {
        let mut text = format!("error: {}\n", escape_part(&self.message));
        self.facts.iter().for_each(|fact| text.push_str(&format!("  {}\n", escape_part(fact))));
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("  try: {}\n", escape_part(remedy)));
        }
        // A closed stderr cannot be reported.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

/// In one line: what failed, and what to do.
impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        self.remedy.iter().try_for_each(|remedy| write!(f, " (try: {remedy})"))
    }
}

/// Remedy for I/Os that fail.
pub const DMESG: &str = "read the kernel's log (dmesg): the storage itself fails";

impl From<storage::StorageError> for Failure {
    fn from(error: storage::StorageError) -> Failure {
        Failure::from_parts(&error, error.facts(), error.remedy())
    }
}

impl From<history::Error> for Failure {
    fn from(error: history::Error) -> Failure {
        Failure::from_parts(&error, Vec::new(), error.remedy().map(Into::into))
    }
}

impl From<collect::SourceError> for Failure {
    fn from(error: collect::SourceError) -> Failure {
        Failure::from_parts(&error, error.facts(), error.remedy().map(Into::into))
    }
}

impl From<measure::MeasureError> for Failure {
    fn from(error: measure::MeasureError) -> Failure {
        match error {
            measure::MeasureError::Load(error @ load::LoadError::AllFailed { .. }) => error.into(),
            error => Failure::new(&error),
        }
    }
}

impl From<load::LoadError> for Failure {
    fn from(error: load::LoadError) -> Failure {
        let mut failure = Failure::new(&error);
        if let load::LoadError::AllFailed { changes, .. } = &error {
            failure = changes.iter().fold(failure, Failure::with_fact);
        }
        match &error {
            load::LoadError::AllFailed { error, .. } if error.raw_os_error() == Some(libc::ENOSPC) => {
                failure.with_remedy("free some space, or name another target")
            }
            load::LoadError::AllFailed { .. } => failure.with_remedy(DMESG),
            load::LoadError::Workload(_) => Failure { code: 2, ..failure },
            load::LoadError::Memory { used_by, .. } => failure.with_remedy(match used_by {
                load::MemoryUse::Outstanding { .. } => "fewer --outstanding, or a smaller --block",
                load::MemoryUse::Content => A_SMALLER_BUFFER,
                load::MemoryUse::Ledger => "a smaller part of the target (--length), or a larger --block",
            }),
            load::LoadError::HugePages { needed, pages } => {
                // The setting is the size of the whole pool, other programs' pages included.
                let all = pages.total + (needed - pages.free);
                failure.with_remedy(format_args!("sysctl vm.nr_hugepages={all}, or ordinary pages"))
            }
            load::LoadError::Threads { .. } => failure.with_remedy("fewer --threads or --outstanding"),
            load::LoadError::Pool { .. } => failure.with_remedy(
                "outstanding I/Os for each thread, or allow io_uring: sysctl kernel.io_uring_disabled=0",
            ),
            load::LoadError::Trace { .. } => failure.with_remedy("a larger target, or another trace"),
            load::LoadError::Source { error, .. } if error.kind() == std::io::ErrorKind::OutOfMemory => {
                failure.with_remedy(A_SMALLER_BUFFER)
            }
            load::LoadError::Source { .. } => {
                failure.with_remedy("name another file to fill the buffer from")
            }
            load::LoadError::TooSmall { .. } => failure.with_remedy("a smaller --block, or a larger target"),
            load::LoadError::Unaligned { align_bytes, .. } => {
                failure.with_remedy(format_args!("a multiple of {align_bytes} bytes, or --buffered"))
            }
            load::LoadError::Start { error, .. } => match start_remedy(error) {
                Some(remedy) => failure.with_remedy(remedy),
                None => failure,
            },
            _ => failure,
        }
    }
}

const A_SMALLER_BUFFER: &str = "a smaller buffer: --set buffer=SIZE";

/// Remedy where threads, memory or rings are unavailable.
fn start_remedy(error: &std::io::Error) -> Option<&'static str> {
    match error.kind() {
        std::io::ErrorKind::OutOfMemory => Some("fewer --outstanding or --threads, or a smaller --block"),
        std::io::ErrorKind::WouldBlock => Some("fewer --threads, or a higher limit of processes (ulimit -u)"),
        _ if error.raw_os_error().is_some_and(|code| code == libc::EMFILE || code == libc::ENFILE) => {
            Some("fewer --threads, or a higher limit of open files (ulimit -n)")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_in_one_line_names_the_remedy_with_the_options_of_the_program() {
        let failure = Failure::usage("too much").with_fact("free: 2 GiB").with_remedy("fewer --outstanding");
        let failure = failure.with_option_names(&[("--outstanding", "-o")]);
        assert_eq!(failure.to_string(), "too much (try: fewer -o)");
        assert_eq!(Failure::new("none").to_string(), "none");
    }

    #[test]
    fn a_full_disk_has_another_remedy_than_a_failing_one() {
        let error = std::io::Error::from_raw_os_error(libc::ENOSPC);
        let failure = Failure::from(load::LoadError::AllFailed {
            path: "/data".into(),
            count: 1,
            error,
            changes: Vec::new(),
        });
        assert!(failure.to_string().contains("free some space"), "{failure}");
    }
}
