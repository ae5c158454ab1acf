//! `sqlite:PATH`.

use super::Live;
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind, SqlTarget};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A database that running programs have open with the extension loaded.
pub static KIND: SourceKind = SourceKind {
    schemes: &["sqlite"],
    help: "sqlite:PATH",
    forms: "sqlite:PATH",
    discovery: Discovery::Never,
    parse,
};

struct SqliteArgument {
    database: PathBuf,
}

fn parse(text: &str) -> Result<Arc<dyn SourceArgument>, ArgumentError> {
    match text {
        "" => Err(ArgumentError::Missing),
        path => Ok(Arc::new(SqliteArgument { database: path.into() })),
    }
}

impl SourceArgument for SqliteArgument {
    fn open(&self, _: &[PathBuf], _: &FileNames) -> Result<Box<dyn Source + Send>, SourceError> {
        Ok(Box::new(Live::open(&self.database)?))
    }

    fn sql_target(&self) -> Option<SqlTarget<'_>> {
        Some(SqlTarget::Sqlite(&self.database))
    }
}

impl fmt::Display for SqliteArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqlite:{}", self.database.display())
    }
}
