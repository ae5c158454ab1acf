//! `headroom log dump`: each record is printed when it is read, so that a log of any length takes no more memory.

use pagestore::Error;
use pagestore::inspect::RecordInfo;
use serde_json::{Value, json};
use std::io::{self, BufWriter, Stdout, Write};
use std::ops::ControlFlow;
use terminal::escape::{escape, escape_line};
use terminal::{Failure, is_read};

const HEADING: &str = "LSN                              tx  kind              bytes  what";

/// Records on stdout: one line each, or one element each of a JSON list.
pub struct Dump {
    json: bool,
    left: u64,
    stdout: BufWriter<Stdout>,
    begun: bool,
    written: io::Result<()>,
}

impl Dump {
    /// Prints at most `limit` records.
    pub fn new(json: bool, limit: u64) -> Dump {
        Dump { json, left: limit, stdout: BufWriter::new(io::stdout()), begun: false, written: Ok(()) }
    }

    /// Prints a record; breaks after the last one.
    pub fn record(&mut self, record: &RecordInfo) -> ControlFlow<()> {
        self.left -= 1;
        self.written = self.write(record);
        if self.left == 0 || self.written.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn write(&mut self, record: &RecordInfo) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.begun, true);
        if self.json {
            let before = if first { "{\"records\": [\n" } else { ",\n" };
            return write!(self.stdout, "{before}  {}", escape(&value(record).to_string()));
        }
        if first {
            writeln!(self.stdout, "{HEADING}")?;
        }
        let RecordInfo { lsn, tx, kind, bytes, text, .. } = record;
        writeln!(self.stdout, "{lsn} {tx:10}  {kind:16} {bytes:6}  {}", escape_line(text))
    }

    /// Ends the answer. If `read` failed on damage, the records before it are printed and the failure reports it.
    pub fn finish(mut self, read: Result<(), Error>) -> Result<(), Failure> {
        let end = match (self.json, self.begun) {
            (true, true) => "\n]}\n",
            (true, false) => "{\"records\": []}\n",
            (false, false) if read.is_ok() => "the active log has no such record\n",
            (false, _) => "",
        };
        let written =
            self.written.and_then(|()| write!(self.stdout, "{end}")).and_then(|()| self.stdout.flush());
        is_read(written)?;
        read.map_err(|error| match error {
            Error::CorruptLog { lsn, why } => Failure::new(format_args!(
                "the log is damaged at {lsn}: {why}; this is not a torn end, for what was there had been acknowledged"
            ))
            .with_fact("printed: all records before it")
            .with_remedy("restore a copy"),
            other => super::store_failure(other),
        })
    }
}

fn value(record: &RecordInfo) -> Value {
    json!({
        "lsn": record.lsn.to_string(),
        "tx": record.tx,
        "kind": record.kind,
        "page": record.page.map(|page| page.0),
        "commit": record.sequence,
        "bytes": record.bytes,
        "text": record.text,
    })
}
