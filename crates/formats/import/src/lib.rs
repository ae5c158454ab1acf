//! Reads results of other load generators, recorded traces and counter histories into the types of Headroom. Pure: text in,
//! values out.
//!
//! ```text
//! bytes ── decode ── text ── Format::detect ─┬─ diskspd text   2.0.15 to 2.2, several in one file
//!                                            ├─ diskspd XML    with its profile
//!                                            ├─ fio JSON       normal and json+, messages in between
//!                                            └─ traces         blkparse's text, Headroom's CSV and JSON lines
//!
//! read(text)        -> Imported { documents: [Document { phases: [name, length, RunResult ...], notes }] }
//! bench_fio(files)  -> the same, for a folder of fio-plot's bench_fio
//! trace(text)       -> Trace
//! counters(text)    -> CounterLog { series: [source, captures], disks }, see `counters/mod.rs`
//! ```
//!
//! A document is the output of one call of the other tool. Its phases ran sequentially, the results of a phase in parallel.
//! Figures that the tool does not report stay unknown: diskspd without `-L` has no latencies, fio without `json+` has some
//! percentiles but no histogram. A note reports what was skipped or is unusual. A text that cannot be read is refused with
//! line, reason and remedy; no text makes this crate panic.

mod bench_fio;
mod counters;
mod decode;
mod diskspd;
mod document;
mod error;
mod fio;
mod summary;
mod trace;
mod unreadable;

pub use bench_fio::{BenchName, bench_fio};
pub use counters::{
    Capture, Chain, CounterLog, Disk, DiskInterval, DiskLog, DiskOps, DiskTotals, Increment, Kept, Points,
    SQLSERVER_CAPTURE_SCRIPT, Series, counters,
};
pub use decode::decode;
pub use document::{Document, Format, Imported, Note, Phase, UnknownFormat};
pub use error::ImportError;
pub use trace::trace;

/// Reads a text, in the format it has or the one that is named.
///
/// # Errors
/// Line, reason and remedy where the text is no result, or damaged.
pub fn read(text: &str, format: Option<Format>) -> Result<Imported, ImportError> {
    let format = match format {
        Some(format) => format,
        None => Format::detect(text).ok_or_else(|| unreadable::explain(text))?,
    };
    let documents = match format {
        Format::DiskspdText => diskspd::text::read(text)?,
        Format::DiskspdXml => diskspd::xml::read(text)?,
        Format::FioJson => fio::read(text)?,
        Format::Blkparse | Format::TraceCsv | Format::TraceJson => {
            return Err(ImportError::new(format!("this is a trace ({format}), not a result"))
                .remedy("replay it: headroom run --replay FILE"));
        }
        Format::FileStats | Format::BlitzFirst | Format::DbaDash | Format::Perfmon => {
            return Err(ImportError::new(format!("this is a history of counters ({format}), not a result"))
                .remedy("headroom history import FILE, which reads it"));
        }
    };
    Ok(Imported { format, documents })
}
