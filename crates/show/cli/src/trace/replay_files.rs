//! Traces written for replay.

use filestats::{TracedIo, TracedOp};
use report::TraceSummary;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use terminal::{Failure, page};
use workload::format_count;

/// Traces for `headroom run --replay`, one for each traced file: FILE for the first, then FILE with a number before its
/// extension.
pub struct ReplayFiles {
    base: PathBuf,
    traces: HashMap<Rc<str>, Trace>,
    /// I/Os that cannot be replayed: of too many files, or without an offset.
    omitted: u64,
}

struct Trace {
    path: PathBuf,
    file: BufWriter<File>,
}

/// The most traced files with a trace.
const TRACES_MAX: usize = 64;
const HEADING: &str = "at_ns,kind,offset_bytes,bytes";

impl ReplayFiles {
    /// Checks that the path may be written.
    pub fn new(path: &Path) -> Result<ReplayFiles, Failure> {
        page::check_marked("trace", path, HEADING.as_bytes())?;
        Ok(ReplayFiles { base: path.into(), traces: HashMap::new(), omitted: 0 })
    }

    /// Appends an I/O.
    pub fn add(&mut self, io: &TracedIo) -> Result<(), Failure> {
        let (kind, offset, bytes) = match (io.op, io.offset_bytes) {
            (TracedOp::Sync, _) => ("sync", 0, 0),
            // An I/O without bytes, such as a read at the end of its file, is not replayed.
            (_, Some(_)) if io.bytes == 0 => return Ok(()),
            (TracedOp::Read | TracedOp::Fault, Some(offset)) => ("read", offset, io.bytes),
            (TracedOp::Write, Some(offset)) => ("write", offset, io.bytes),
            (_, None) => {
                self.omitted += 1;
                return Ok(());
            }
        };
        let Some(trace) = self.trace_of(&io.file)? else {
            self.omitted += 1;
            return Ok(());
        };
        let written = writeln!(trace.file, "{},{kind},{offset},{bytes}", io.at_ns);
        written.map_err(|error| failed(&trace.path, &error))
    }

    /// Ends the traces and adds their paths to the summary.
    pub fn finish(mut self, summary: &mut TraceSummary) -> Result<(), Failure> {
        for (file, trace) in &mut self.traces {
            trace.file.flush().map_err(|error| failed(&trace.path, &error))?;
            if let Some(entry) = summary.files.iter_mut().find(|one| one.path == *file) {
                entry.trace = Some(trace.path.display().to_string());
            }
        }
        if self.omitted > 0 {
            summary.notes.push(format!(
                "{} I/Os are not in the traces that were written: they have no place, or are of more than {TRACES_MAX} files",
                format_count(self.omitted)
            ));
        }
        Ok(())
    }

    fn trace_of(&mut self, file: &Rc<str>) -> Result<Option<&mut Trace>, Failure> {
        if !self.traces.contains_key(file) {
            if self.traces.len() >= TRACES_MAX {
                return Ok(None);
            }
            let path = numbered(&self.base, self.traces.len() + 1);
            page::check_marked("trace", &path, HEADING.as_bytes())?;
            let mut made = BufWriter::new(File::create(&path).map_err(|error| failed(&path, &error))?);
            // A line break in a name must not begin a row.
            let name = file.replace(['\n', '\r'], " ");
            writeln!(made, "{HEADING}\n# {name}").map_err(|error| failed(&path, &error))?;
            self.traces.insert(Rc::clone(file), Trace { path, file: made });
        }
        Ok(self.traces.get_mut(file))
    }
}

/// "shop.trace", "shop.2.trace", ...
fn numbered(base: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return base.into();
    }
    let mut name = base.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(ending) = base.extension() {
        name.push(".");
        name.push(ending);
    }
    base.with_file_name(name)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format_args!("cannot write the trace {}: {error}", path.display()))
        .with_remedy("name a file where there is room and this user may write")
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::IoFlags;

    fn io(op: TracedOp, file: &str, offset_bytes: Option<u64>, bytes: u64) -> TracedIo {
        TracedIo {
            at_ns: 7,
            latency_ns: 1,
            pid: 1,
            tid: 1,
            comm: "x".into(),
            op,
            file: file.into(),
            offset_bytes,
            bytes,
            flags: IoFlags::default(),
            served: None,
            n: 1,
        }
    }

    #[test]
    fn each_file_has_a_trace_that_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("shop.trace");
        let mut written = ReplayFiles::new(&base).unwrap();
        let mut traced = TraceSummary::default();
        for one in [
            io(TracedOp::Write, "/a\n0,read,0,1", Some(4096), 512),
            io(TracedOp::Sync, "/a\n0,read,0,1", None, 0),
            io(TracedOp::Read, "/b", Some(0), 8192),
            io(TracedOp::Read, "/b", Some(8192), 0),
            io(TracedOp::Read, "/b", None, 1),
        ] {
            traced.add(&one);
            written.add(&one).unwrap();
        }
        written.finish(&mut traced).unwrap();
        let read = |path: &Path| import::trace(&std::fs::read_to_string(path).unwrap()).unwrap().ios.len();
        assert_eq!((read(&base), read(&directory.path().join("shop.2.trace"))), (2, 1));
        assert!(traced.files[1].trace.as_deref().unwrap().ends_with("shop.2.trace"));
        assert!(traced.notes[0].starts_with("1 I/Os are not in the traces"));
        std::fs::write(&base, "mine").unwrap();
        assert!(ReplayFiles::new(&base).is_err(), "not over a file that is no trace");
    }
}
