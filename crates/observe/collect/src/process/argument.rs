//! `process:[PID,...][,cgroup=DIR][,layer=block|storage]` and `process:pid-file=PATH`.

use super::restarts::{ProcessMark, RestartingProcess};
use super::{Coverage, Process, Selection};
use crate::redaction::quote_unless_secret;
use crate::source::{ArgumentError, Discovery, SourceArgument, SourceKind};
use std::path::PathBuf;

/// Processes of this host.
pub static KIND: SourceKind = SourceKind {
    schemes: &["process"],
    help: "process: (all), process:PID,..., process:pid-file=PATH, process:cgroup=DIR, process:layer=block or storage",
    forms: "process:, process:PID, process:pid-file=PATH, process:cgroup=DIR",
    discovery: Discovery::Always,
    parse,
    find: super::discover::find,
};

fn parse(text: &str) -> Result<SourceArgument, ArgumentError> {
    let (selection, mark) = match text.strip_prefix("pid-file=") {
        Some("") => {
            let why = "pid-file= names no file; give process:pid-file=/run/mysqld/mysqld.pid";
            return Err(ArgumentError::Invalid(why.into()));
        }
        // The processes of the server that writes its pid into that file, across its restarts.
        Some(path) => (Selection::default(), Some(ProcessMark::PidFile(path.into()))),
        None => {
            let selection = parse_selection(text).map_err(ArgumentError::Invalid)?;
            let mark = selection.cgroup.clone().map(ProcessMark::ControlGroup);
            (selection, mark)
        }
    };
    let shown = match &mark {
        Some(ProcessMark::PidFile(_)) => format!("process:{text}"),
        _ => format!("process:{}", selection.argument()),
    };
    let chosen = move |files: &[PathBuf]| Selection { files: files.to_vec(), ..selection.clone() };
    let argument = match mark {
        None => SourceArgument::new(shown, move |files, names| {
            Ok(Process::open(&chosen(files))?.using_names(names))
        }),
        Some(mark) => SourceArgument::new(shown, move |files, names| {
            RestartingProcess::open(mark.clone(), chosen(files), names)
        }),
    };
    Ok(SourceArgument { counts_only_while_open: true, ..argument })
}

/// "", "812,813", "cgroup=/sys/fs/cgroup/x", "layer=block", or several, separated by commas.
fn parse_selection(text: &str) -> Result<Selection, String> {
    let mut selection = Selection::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("cgroup", dir)) => selection.cgroup = Some(dir.into()),
            Some(("layer", "block")) => selection.coverage = Coverage::Block,
            Some(("layer", "storage")) => selection.coverage = Coverage::Storage,
            _ => selection.pids.push(part.parse().map_err(|_| {
                format!(
                    "{} is not a process number; give process:, process:PID,..., process:cgroup=DIR, \
                     process:layer=block or process:layer=storage",
                    quote_unless_secret(part)
                )
            })?),
        }
    }
    Ok(selection)
}
