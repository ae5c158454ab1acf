//! `pagestore:DIR`.

use super::Live;
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A page store that a program has open.
pub static KIND: SourceKind = SourceKind {
    schemes: &["pagestore"],
    help: "pagestore:DIR",
    forms: "pagestore:DIR",
    discovery: Discovery::Never,
    parse,
};

struct PagestoreArgument {
    directory: PathBuf,
}

fn parse(text: &str) -> Result<Arc<dyn SourceArgument>, ArgumentError> {
    match text {
        "" => Err(ArgumentError::Missing),
        path => Ok(Arc::new(PagestoreArgument { directory: path.into() })),
    }
}

impl SourceArgument for PagestoreArgument {
    fn open(&self, _: &[PathBuf], _: &FileNames) -> Result<Box<dyn Source + Send>, SourceError> {
        Ok(Box::new(Live::open(&self.directory)?))
    }
}

impl fmt::Display for PagestoreArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pagestore:{}", self.directory.display())
    }
}
