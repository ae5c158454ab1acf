//! The folder that fio-plot's bench_fio leaves: the parameters of a run are in the names of its file and of the
//! folders above it.
//!
//! ```text
//! OUT/<device>/4k/randread-16-8.json               rw, iodepth 16, numjobs 8
//! OUT/<device>/randrw75/4k/randrw-16-8.json        75 % reads
//! OUT/<device>/4k/run-2/randread-16-8.json         the second of several loops
//! ```

use crate::fio::{self, Options};
use crate::{Document, Format, ImportError, Imported, Note};

/// Parameters in the name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchName {
    /// Device of the run.
    pub device: String,
    /// fio's rw.
    pub mode: String,
    /// Share of reads, where the mode is a mix.
    pub read_percent: Option<u8>,
    /// Bytes of an I/O.
    pub block_bytes: u64,
    /// Outstanding I/Os of a thread.
    pub outstanding: u32,
    /// Threads.
    pub threads: u32,
}

impl BenchName {
    /// Parses the path of a file below bench_fio's output folder; `None` for other files.
    pub fn parse(path: &str) -> Option<BenchName> {
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let file = parts.pop()?.strip_suffix(".json")?;
        let (rest, threads) = file.rsplit_once('-')?;
        let (mode, outstanding) = rest.rsplit_once('-')?;
        if !mode.bytes().all(|b| b.is_ascii_lowercase()) || mode.is_empty() {
            return None;
        }
        parts.pop_if(|part| part.strip_prefix("run-").is_some_and(|run| run.parse::<u32>().is_ok()));
        let block = parts.pop()?;
        let read_percent =
            parts.last().and_then(|part| part.strip_prefix(mode)).and_then(|share| share.parse().ok());
        if read_percent.is_some() {
            parts.pop();
        }
        Some(BenchName {
            device: parts.pop()?.into(),
            mode: mode.into(),
            read_percent,
            block_bytes: workload::parse_bytes(block).ok()?,
            outstanding: outstanding.parse().ok()?,
            threads: threads.parse().ok()?,
        })
    }

    fn options(&self) -> Options {
        let mut options = Options::default();
        options.set("filename", self.device.clone());
        options.set("rw", self.mode.clone());
        options.set("bs", self.block_bytes.to_string());
        options.set("iodepth", self.outstanding.to_string());
        options.set("numjobs", self.threads.to_string());
        if let Some(reads) = self.read_percent {
            options.set("rwmixread", reads.to_string());
        }
        options
    }

    /// Where the options of the run say something else than its name, the options hold, and a note says so.
    fn check(&self, document: &mut Document) {
        let results = document.phases.iter().flat_map(|phase| &phase.results);
        let mut notes = Vec::new();
        for result in results {
            let asked = &result.workload;
            let random = if self.mode.starts_with("rand") { "random" } else { "sequential" };
            let ran = if asked.shape.pattern == workload::Pattern::Random { "random" } else { "sequential" };
            let writes = match (self.read_percent, self.mode.trim_start_matches("rand")) {
                (Some(reads), _) => 100_u8.saturating_sub(reads),
                (None, "write") => 100,
                (None, "read") => 0,
                _ => asked.shape.write_percent,
            };
            let mut compare = |what: &str, named: String, ran: String| {
                if named != ran {
                    notes.push(Note::new(format!(
                        "the file's name says {what} {named}, its job options {ran}: the options are kept"
                    )));
                }
            };
            compare("access", random.into(), ran.into());
            compare("writes %", writes.to_string(), asked.shape.write_percent.to_string());
            compare("block bytes", self.block_bytes.to_string(), asked.shape.block_bytes.to_string());
            compare("threads", self.threads.to_string(), asked.threads.to_string());
            // A synchronous engine does one I/O at a time whatever the name says; the job has a note about it.
            if asked.outstanding > 1 {
                compare("iodepth", self.outstanding.to_string(), asked.outstanding.to_string());
            }
        }
        document.notes.extend(notes);
    }
}

/// Reads the files of a folder, given as (path below the folder, text), sorted by path. Returns errors of files that
/// cannot be read beside the results of the others.
pub fn bench_fio(files: &[(String, String)]) -> (Imported, Vec<(String, ImportError)>) {
    let mut sorted: Vec<&(String, String)> = files.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut imported = Imported { format: Format::FioJson, documents: Vec::new() };
    let mut failed = Vec::new();
    for (path, text) in sorted {
        let name = BenchName::parse(path);
        let options = name.as_ref().map(BenchName::options).unwrap_or_default();
        match fio::read_with(text, &options) {
            Err(error) => failed.push((path.clone(), error)),
            Ok(documents) => imported.documents.extend(documents.into_iter().map(|mut document| {
                match &name {
                    Some(name) => name.check(&mut document),
                    None => document.notes.push(Note::new(format!("{path} has no name of bench_fio's"))),
                }
                document.phases.iter_mut().for_each(|phase| phase.name = path.clone());
                document
            })),
        }
    }
    (imported, failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_parameters() {
        let name = BenchName::parse("nvme0n1/randrw75/4k/randrw-16-8.json").unwrap();
        assert_eq!(
            (name.device.as_str(), name.mode.as_str(), name.read_percent),
            ("nvme0n1", "randrw", Some(75))
        );
        assert_eq!((name.block_bytes, name.outstanding, name.threads), (4096, 16, 8));
        let name = BenchName::parse("out/sdb/16k/run-2/randread-1-2.json").unwrap();
        assert_eq!((name.device.as_str(), name.read_percent, name.block_bytes), ("sdb", None, 16384));
        for other in ["", "x.json", "4k/randread-1-1.json", "d/4k/rand-x-1.json", "d/4k/randread-1-1.log"] {
            assert_eq!(BenchName::parse(other), None, "{other}");
        }
    }
}
