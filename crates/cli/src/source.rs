use crate::failure::Failure;
use collect::Source;
use std::path::{Path, PathBuf};

/// Whose counters to read: `sqlite:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// A database that running programs have open with the extension loaded.
    Sqlite(PathBuf),
}

impl SourceName {
    /// Opens it.
    pub fn open(&self) -> Result<Box<dyn Source>, Failure> {
        match self {
            SourceName::Sqlite(path) => Ok(Box::new(collect::sqlite::Live::open(path)?)),
        }
    }

    /// The directory whose storage is asked.
    pub fn directory(&self) -> &Path {
        match self {
            SourceName::Sqlite(path) => match path.parent() {
                Some(dir) if !dir.as_os_str().is_empty() => dir,
                _ => Path::new("."),
            },
        }
    }
}

impl std::str::FromStr for SourceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(SourceName::Sqlite(path.into())),
            _ => Err(format!("'{text}' is no source; give sqlite:PATH, as in sqlite:/data/shop.db")),
        }
    }
}

impl std::fmt::Display for SourceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SourceName::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}
