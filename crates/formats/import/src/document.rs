use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use workload::{RunLength, RunResult};

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Its format.
    pub format: Format,
    /// Its results, in their order.
    pub documents: Vec<Document>,
}

/// The output of one call of the other tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The line it begins at, from 1.
    pub line: usize,
    /// The tool and, where it is known, its version: "fio-3.33", "diskspd 2.0.17".
    pub tool: String,
    /// A fingerprint of the text, independent of its line ends and its place in the file.
    pub fingerprint: String,
    /// Its phases, which ran sequentially.
    pub phases: Vec<Phase>,
    /// Notes on skipped or unusual parts.
    pub notes: Vec<Note>,
}

/// Workloads that ran in parallel.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// "timespan 1", "reads"; bench_fio's path.
    pub name: String,
    /// How long it was to run, where reported.
    pub length: Option<RunLength>,
    /// One result for each workload.
    pub results: Vec<RunResult>,
}

/// Something a reader of the result should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The line it is about, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The note.
    pub text: String,
}

/// Format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// diskspd's report for people.
    DiskspdText,
    /// diskspd `-Rxml`.
    DiskspdXml,
    /// fio `--output-format=json` or `json+`.
    FioJson,
    /// Output of blkparse in its default format.
    Blkparse,
    /// Headroom's trace, comma separated.
    TraceCsv,
    /// Headroom's trace, a JSON object a line.
    TraceJson,
    /// `headroom.file_stats`, which `headroom sources capture-script` keeps on a SQL Server, as CSV.
    FileStats,
    /// sp_BlitzFirst's table of file statistics, as CSV.
    BlitzFirst,
    /// DBA Dash's `dbo.DBIOStats`, as CSV.
    DbaDash,
    /// A counter log of PerfMon, as CSV.
    Perfmon,
}

/// The names on the command line and in results.
const NAMES: [(&str, Format); 10] = [
    ("diskspd", Format::DiskspdText),
    ("diskspd-xml", Format::DiskspdXml),
    ("fio", Format::FioJson),
    ("blkparse", Format::Blkparse),
    ("trace-csv", Format::TraceCsv),
    ("trace-json", Format::TraceJson),
    ("file-stats", Format::FileStats),
    ("blitzfirst", Format::BlitzFirst),
    ("dbadash", Format::DbaDash),
    ("perfmon", Format::Perfmon),
];

/// A name that is no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a format; give diskspd, diskspd-xml, fio, file-stats, blitzfirst, dbadash or perfmon")]
pub struct UnknownFormat(pub String);

impl Format {
    /// Format of the text, judged by its content; `None` where it is none of them.
    pub fn detect(text: &str) -> Option<Format> {
        // A result says in its first lines what it is; messages may come before.
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES_LOOKED_AT);
        if lines().any(|line| line.starts_with("Input parameters:") || line.starts_with("Command Line:")) {
            return Some(Format::DiskspdText);
        }
        if lines().any(|line| line.starts_with("<Results") || line.starts_with("<Profile")) {
            return Some(Format::DiskspdXml);
        }
        if lines().any(crate::trace::is_csv_header) {
            return Some(Format::TraceCsv);
        }
        if lines().next().is_some_and(crate::trace::is_json_line) {
            return Some(Format::TraceJson);
        }
        if lines().any(|line| line.contains("\"fio version\"")) {
            return Some(Format::FioJson);
        }
        if lines().any(crate::trace::is_blkparse_line) {
            return Some(Format::Blkparse);
        }
        crate::counters::detect(text)
    }

    /// Whether it is a trace, for [`crate::trace()`], and not a result.
    fn is_trace(self) -> bool {
        matches!(self, Format::Blkparse | Format::TraceCsv | Format::TraceJson)
    }

    /// Whether it is a history of counters, for [`crate::counters()`], and not a result.
    pub fn is_counters(self) -> bool {
        matches!(self, Format::FileStats | Format::BlitzFirst | Format::DbaDash | Format::Perfmon)
    }
}

/// A diskspd that warns of each of its targets prints some dozens of lines before its report.
const LINES_LOOKED_AT: usize = 1000;

/// The fingerprint of a text: FNV-1a of 128 bits over its lines without the blanks at their ends.
pub(crate) fn fingerprint(text: &str) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut hash = BASIS;
    for line in text.trim().lines() {
        for byte in line.trim_end().bytes().chain([b'\n']) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
    format!("{hash:032x}")
}

impl Imported {
    /// All results.
    pub fn results(&self) -> impl Iterator<Item = &RunResult> {
        self.documents.iter().flat_map(|document| &document.phases).flat_map(|phase| &phase.results)
    }
}

impl Note {
    pub(crate) fn new(text: impl Into<String>) -> Note {
        Note { line: None, text: text.into() }
    }

    pub(crate) fn at(line: usize, text: impl Into<String>) -> Note {
        Note { line: Some(line), text: text.into() }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, format)| format == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let named = NAMES.iter().find(|(name, format)| *name == text && !format.is_trace());
        named.map(|(_, format)| *format).ok_or_else(|| UnknownFormat(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_that_of_the_words_not_of_the_line_ends() {
        assert_eq!(fingerprint("\na \r\nb\r\n\r\n"), fingerprint("a\nb"));
        assert_ne!(fingerprint("a\nb"), fingerprint("a\nc"));
    }

    #[test]
    fn a_format_is_told_by_what_the_text_says() {
        assert_eq!(Format::detect("\nCommand Line: diskspd -b8K x\n"), Some(Format::DiskspdText));
        assert_eq!(Format::detect("<Results>\n<System>"), Some(Format::DiskspdXml));
        assert_eq!(Format::detect("fio: odd\n{\n \"fio version\" : \"fio-3.33\""), Some(Format::FioJson));
        assert_eq!(Format::detect("at_ns,kind,offset_bytes,bytes\n0,read,0,512\n"), Some(Format::TraceCsv));
        assert_eq!(Format::detect("{\"at_ns\":0,\"kind\":\"sync\"}"), Some(Format::TraceJson));
        let blkparse = "  8,0    1        1     0.000000000  1  Q   R 8 + 8 [fio]";
        assert_eq!(Format::detect(blkparse), Some(Format::Blkparse));
        assert_eq!(Format::detect("dear diary"), None);
    }
}
