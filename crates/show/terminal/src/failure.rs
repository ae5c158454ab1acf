use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// What is told to the person once, at the top: what failed on what and why, facts, and what to do.
#[derive(Debug)]
pub struct Failure {
    message: String,
    facts: Vec<String>,
    remedy: Option<String>,
    code: u8,
}

impl Failure {
    /// Something could not be done.
    pub fn new(message: impl Display) -> Failure {
        Failure { message: message.to_string(), facts: Vec::new(), remedy: None, code: 3 }
    }

    /// An argument is wrong.
    pub fn usage(message: impl Display) -> Failure {
        Failure { code: 2, ..Failure::new(message) }
    }

    /// With something that is known about it: "free: 2 GiB".
    #[must_use]
    pub fn with_fact(mut self, fact: impl Display) -> Failure {
        self.facts.push(fact.to_string());
        self
    }

    /// With what to do about it.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Display) -> Failure {
        Failure { remedy: Some(remedy.to_string()), ..self }
    }

    /// With other names for what its remedy tells to do: (ours, theirs).
    #[must_use]
    pub fn in_words_of(mut self, words: &[(&str, &str)]) -> Failure {
        if let Some(remedy) = &mut self.remedy {
            words.iter().for_each(|(ours, theirs)| *remedy = remedy.replace(ours, theirs));
        }
        self
    }

    /// Prints it on stderr.
    pub fn print(&self) {
        let mut text = format!("error: {}\n", self.message);
        self.facts.iter().for_each(|fact| text.push_str(&format!("  {fact}\n")));
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("  try: {remedy}\n"));
        }
        // Nobody is left to tell that stderr is closed.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// The exit code that goes with it.
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

/// What to do where I/Os fail.
pub const DMESG: &str = "read the kernel's log (dmesg): the storage itself fails";

impl From<storage::StorageError> for Failure {
    fn from(error: storage::StorageError) -> Failure {
        Failure { facts: error.facts(), remedy: error.remedy(), ..Failure::new(&error) }
    }
}

impl From<history::Error> for Failure {
    fn from(error: history::Error) -> Failure {
        Failure { remedy: error.remedy().map(Into::into), ..Failure::new(&error) }
    }
}

impl From<collect::SourceError> for Failure {
    fn from(error: collect::SourceError) -> Failure {
        Failure { facts: error.facts(), remedy: error.remedy().map(Into::into), ..Failure::new(&error) }
    }
}

impl From<::measure::MeasureError> for Failure {
    fn from(error: ::measure::MeasureError) -> Failure {
        let failure = Failure::new(&error);
        match error {
            ::measure::MeasureError::Load(load::LoadError::AllFailed { .. }) => failure.with_remedy(DMESG),
            _ => failure,
        }
    }
}

impl From<load::LoadError> for Failure {
    fn from(error: load::LoadError) -> Failure {
        let failure = Failure::new(&error);
        match &error {
            load::LoadError::AllFailed { error, .. } if error.raw_os_error() == Some(libc::ENOSPC) => {
                failure.with_remedy("free some space, or name another target")
            }
            load::LoadError::AllFailed { .. } => failure.with_remedy(DMESG),
            load::LoadError::Workload(_) => Failure { code: 2, ..failure },
            load::LoadError::Memory { .. } => {
                failure.with_remedy("fewer --outstanding, or a smaller --block")
            }
            load::LoadError::HugePages { needed, pages } => {
                // The setting is the size of the pool, which others use as well.
                let all = pages.total + (needed - pages.free);
                failure.with_remedy(format_args!("sysctl vm.nr_hugepages={all}, or ordinary pages"))
            }
            load::LoadError::Threads { .. } => failure.with_remedy("fewer --threads or --outstanding"),
            load::LoadError::Pool { .. } => failure.with_remedy(
                "outstanding I/Os for each thread, or allow io_uring: sysctl kernel.io_uring_disabled=0",
            ),
            load::LoadError::Trace { .. } => failure.with_remedy("a larger target, or another trace"),
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

/// What to do where threads, memory or rings are not to be had.
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

impl From<lab::Error> for Failure {
    fn from(error: lab::Error) -> Failure {
        Failure { facts: error.facts(), remedy: error.remedy(), ..Failure::new(&error) }
    }
}
