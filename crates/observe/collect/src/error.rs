use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An error of one kind of source, which its folder defines. Its `Display` is one line and holds no password.
pub trait SourceFault: Error + Send + Sync + 'static {
    /// Known facts about the case, a line each.
    fn facts(&self) -> Vec<String> {
        Vec::new()
    }

    /// The remedy; `None` where none is known.
    fn remedy(&self) -> Option<&'static str> {
        None
    }

    /// Whether the source refuses, and will until a user changes that: not because it is busy or does not answer.
    fn is_refusal(&self) -> bool {
        false
    }
}

/// Why a source gives no snapshot. Its `Display` is the first line of a message; [`facts`](Self::facts) and
/// [`remedy`](Self::remedy) are the lines below.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// An error of one kind of source.
    #[error("{0}")]
    Source(Box<dyn SourceFault>),
    /// An error of one kind of source that does not name its server itself.
    #[error("cannot watch {name}: {fault}")]
    Server {
        /// "mysql HOST:PORT".
        name: String,
        /// Why not.
        fault: Box<dyn SourceFault>,
    },
    /// The source hangs.
    #[error("it has not answered for {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// The source panicked.
    #[error("a fault of headroom's own: what it printed says where")]
    Fault,
    /// A system file that is always there cannot be read.
    #[error("cannot read {path}: {error}")]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl<F: SourceFault> From<F> for SourceError {
    fn from(fault: F) -> SourceError {
        SourceError::Source(Box::new(fault))
    }
}

impl SourceError {
    /// Adds the name of a server to its error.
    pub(crate) fn of_server(name: &str, fault: impl SourceFault) -> SourceError {
        SourceError::Server { name: name.into(), fault: Box::new(fault) }
    }

    fn fault(&self) -> Option<&dyn SourceFault> {
        match self {
            SourceError::Source(fault) | SourceError::Server { fault, .. } => Some(fault.as_ref()),
            _ => None,
        }
    }

    /// The error of a kind of source, if it is of this type.
    pub fn downcast_ref<F: SourceFault>(&self) -> Option<&F> {
        let fault: &(dyn Error + 'static) = self.fault()?;
        fault.downcast_ref()
    }

    /// Whether the source refuses, and will until a user changes that.
    pub fn is_refusal(&self) -> bool {
        self.fault().is_some_and(SourceFault::is_refusal)
    }

    /// Known facts about the case, a line each.
    pub fn facts(&self) -> Vec<String> {
        self.fault().map(SourceFault::facts).unwrap_or_default()
    }

    /// The remedy; `None` where none is known.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            SourceError::Fault => Some("report it, with what was printed"),
            _ => self.fault()?.remedy(),
        }
    }
}
