//! `process:[PID,...][,cgroup=DIR][,layer=block]` and `process:pid-file=PATH`.

use super::restarts::{ProcessMark, RestartingProcess};
use super::{Process, Selection};
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::redaction::quote_unless_secret;
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Processes of this host.
pub static KIND: SourceKind = SourceKind {
    schemes: &["process"],
    help: "process: (all), process:PID,..., process:pid-file=PATH, process:cgroup=DIR, process:layer=block",
    forms: "process:, process:PID, process:pid-file=PATH, process:cgroup=DIR",
    discovery: Discovery::Always,
    parse,
};

enum ProcessArgument {
    Selection(Selection),
    /// The processes of the server that writes its pid into that file, across its restarts.
    PidFile(PathBuf),
}

fn parse(text: &str) -> Result<Arc<dyn SourceArgument>, ArgumentError> {
    let argument = match text.strip_prefix("pid-file=") {
        Some("") => Err("pid-file= names no file; give process:pid-file=/run/mysqld/mysqld.pid".into()),
        Some(path) => Ok(ProcessArgument::PidFile(path.into())),
        None => parse_selection(text).map(ProcessArgument::Selection),
    };
    Ok(Arc::new(argument.map_err(ArgumentError::Invalid)?))
}

/// "", "812,813", "cgroup=/sys/fs/cgroup/x", "layer=block", or several, separated by commas.
fn parse_selection(text: &str) -> Result<Selection, String> {
    let mut selection = Selection::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("cgroup", dir)) => selection.cgroup = Some(dir.into()),
            Some(("layer", "block")) => selection.block_only = true,
            _ => selection.pids.push(part.parse().map_err(|_| {
                format!(
                    "{} is no process number; give process:, process:PID,..., process:cgroup=DIR or \
                     process:layer=block",
                    quote_unless_secret(part)
                )
            })?),
        }
    }
    Ok(selection)
}

impl SourceArgument for ProcessArgument {
    fn open(&self, files: &[PathBuf], names: &FileNames) -> Result<Box<dyn Source + Send>, SourceError> {
        let (selection, mark) = match self {
            ProcessArgument::Selection(selection) => {
                (selection.clone(), selection.cgroup.clone().map(ProcessMark::ControlGroup))
            }
            ProcessArgument::PidFile(path) => {
                (Selection::default(), Some(ProcessMark::PidFile(path.clone())))
            }
        };
        let selection = Selection { files: files.to_vec(), ..selection };
        Ok(match mark {
            None => Box::new(Process::open(&selection)?.using_names(names)),
            Some(mark) => Box::new(RestartingProcess::open(mark, selection, names)?),
        })
    }

    fn counts_only_while_open(&self) -> bool {
        true
    }
}

impl fmt::Display for ProcessArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessArgument::Selection(selection) => write!(f, "process:{}", selection.argument()),
            ProcessArgument::PidFile(path) => write!(f, "process:pid-file={}", path.display()),
        }
    }
}
