use std::fmt::Display;
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

    /// With what to do about it.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Display) -> Failure {
        Failure { remedy: Some(remedy.to_string()), ..self }
    }

    /// Prints it on stderr.
    pub fn print(&self) {
        eprintln!("error: {}", self.message);
        self.facts.iter().for_each(|fact| eprintln!("  {fact}"));
        if let Some(remedy) = &self.remedy {
            eprintln!("  try: {remedy}");
        }
    }

    /// The exit code that goes with it.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<storage::StorageError> for Failure {
    fn from(error: storage::StorageError) -> Failure {
        Failure { facts: error.facts(), remedy: error.remedy(), ..Failure::new(&error) }
    }
}

impl From<history::Error> for Failure {
    fn from(error: history::Error) -> Failure {
        Failure::new(error)
    }
}

impl From<collect::SourceError> for Failure {
    fn from(error: collect::SourceError) -> Failure {
        Failure::new(error)
    }
}

impl From<::measure::MeasureError> for Failure {
    fn from(error: ::measure::MeasureError) -> Failure {
        Failure::new(error)
    }
}

impl From<lab::Error> for Failure {
    fn from(error: lab::Error) -> Failure {
        Failure::new(error)
    }
}
