//! Recorded traces, to be replayed: blkparse's text, and Headroom's own as CSV or JSON lines.
//!
//! ```text
//! at_ns,kind,offset_bytes,bytes          {"at_ns":0,"kind":"read","offset_bytes":8192,"bytes":4096}
//! 0,read,8192,4096                       {"at_ns":51000,"kind":"sync"}
//! 51000,sync,0,0
//! ```
//! `kind` is read, write or sync. Times count from wherever they began; the trace begins with its first I/O.

use crate::{Format, ImportError};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use workload::{Trace, TraceIo, TraceKind};

/// Reads a trace of one device.
///
/// # Errors
/// Line and reason where the text is no trace, or holds I/Os of several devices.
pub fn trace(text: &str) -> Result<Trace, ImportError> {
    let mut ios = match Format::detect(text) {
        Some(Format::TraceCsv) => csv(text)?,
        Some(Format::TraceJson) => json(text)?,
        Some(Format::Blkparse) => blkparse(text)?,
        _ => {
            return Err(ImportError::new("this is no trace").remedy(
                "give blkparse's text, or lines of at_ns,kind,offset_bytes,bytes under that heading",
            ));
        }
    };
    ios.sort_by_key(|io| io.at_ns);
    let first_ns = ios.first().map_or(0, |io| io.at_ns);
    ios.iter_mut().for_each(|io| io.at_ns -= first_ns);
    if ios.is_empty() {
        return Err(ImportError::new("the trace holds no I/O"));
    }
    Ok(Trace { ios })
}

pub(crate) fn is_csv_header(line: &str) -> bool {
    let names: Vec<&str> = line.split(',').map(str::trim).collect();
    matches!(names.as_slice(), ["at_ns", "kind", "offset_bytes" | "offset", "bytes"])
}

pub(crate) fn is_json_line(line: &str) -> bool {
    line.starts_with('{') && line.contains("\"at_ns\"")
}

pub(crate) fn is_blkparse_line(line: &str) -> bool {
    Event::read(line).is_some()
}

fn csv(text: &str) -> Result<Vec<TraceIo>, ImportError> {
    let rows = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let rows = rows.filter(|(_, line)| !line.is_empty() && !line.starts_with('#') && !is_csv_header(line));
    let io = |(number, line): (usize, &str)| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [at_ns, kind, offset, bytes] = cells.as_slice() else {
            return Err(ImportError::at(number, format!("{} cells, not four", cells.len()))
                .remedy("write at_ns,kind,offset_bytes,bytes"));
        };
        let wrong =
            |what: &str, value: &str| ImportError::at(number, format!("{what} '{value}' is not a number"));
        Ok(TraceIo {
            at_ns: at_ns.parse().map_err(|_| wrong("at_ns", at_ns))?,
            kind: kind_of(kind).map_err(|_| {
                ImportError::at(number, format!("'{kind}' is not a kind of I/O"))
                    .remedy("write read, write or sync")
            })?,
            offset_bytes: offset.parse().map_err(|_| wrong("offset_bytes", offset))?,
            bytes: bytes.parse().map_err(|_| wrong("bytes", bytes))?,
        })
    };
    rows.map(io).collect()
}

fn kind_of(word: &str) -> Result<TraceKind, Error> {
    TraceKind::deserialize(word.into_deserializer())
}

/// A line of the JSON form; a sync need not say where.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonIo {
    at_ns: u64,
    kind: TraceKind,
    #[serde(default)]
    offset_bytes: u64,
    #[serde(default)]
    bytes: u32,
}

fn json(text: &str) -> Result<Vec<TraceIo>, ImportError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let io = |(index, line): (usize, &str)| {
        let wrong = |error: serde_json::Error| {
            ImportError::at(index + 1, error.to_string())
                .column(error.column())
                .remedy(r#"write {"at_ns":0,"kind":"read","offset_bytes":0,"bytes":4096}, one object a line"#)
        };
        let JsonIo { at_ns, kind, offset_bytes, bytes } = serde_json::from_str(line).map_err(wrong)?;
        Ok(TraceIo { at_ns, kind, offset_bytes, bytes })
    };
    lines.map(io).collect()
}

/// A line of blkparse's default form:
/// `  8,0    3     1     0.000000000   697  Q   W 223490 + 8 [kjournald]`
struct Event<'a> {
    device: &'a str,
    at_ns: u64,
    action: &'a str,
    /// Kind of I/O: R read, W write, D discard, F flush before and, again, after; S A M are hints.
    rwbs: &'a str,
    /// Sector and sectors of 512 bytes, where the action has them.
    place: Option<(u64, u64)>,
}

impl<'a> Event<'a> {
    fn read(line: &'a str) -> Option<Event<'a>> {
        let mut words = line.split_whitespace();
        let device = words.next()?;
        let (major, minor) = device.split_once(',')?;
        let _: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        let _cpu: u32 = words.next()?.parse().ok()?;
        let _sequence: u64 = words.next()?.parse().ok()?;
        let at_ns = seconds_ns(words.next()?)?;
        let _pid: i64 = words.next()?.parse().ok()?;
        let action = words.next()?;
        let rwbs = words.next().unwrap_or("");
        let place = match (words.next(), words.next(), words.next()) {
            (Some(sector), Some("+"), Some(sectors)) => sector.parse().ok().zip(sectors.parse().ok()),
            _ => None,
        };
        Some(Event { device, at_ns, action, rwbs, place })
    }
}

/// "12.000051000": seconds and nanoseconds, kept exactly.
fn seconds_ns(text: &str) -> Option<u64> {
    let (seconds, nanos) = text.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let nanos: u64 = if nanos.len() == 9 { nanos.parse().ok()? } else { return None };
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Queued events are when an I/O was issued; merges and delays of the scheduler come after.
fn blkparse(text: &str) -> Result<Vec<TraceIo>, ImportError> {
    let mut ios = Vec::new();
    let mut devices: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(event) = Event::read(line).filter(|event| event.action == "Q") else { continue };
        if !devices.contains(&event.device) {
            devices.push(event.device);
        }
        ios.extend(queued(index + 1, &event)?);
    }
    match devices.as_slice() {
        [] => Err(ImportError::new("the trace holds no queued I/O (Q)")
            .remedy("record with blktrace -a queue, or without -a")),
        [_] => Ok(ios),
        [first, ..] => {
            Err(ImportError::new(format!("the trace holds I/Os of several devices: {}", devices.join(" ")))
                .remedy(format!("keep those of one: grep '^ *{first} ' FILE")))
        }
    }
}

/// I/Os that a queued event requests: a flush, an I/O, or both; none for a discard.
fn queued(line: usize, event: &Event<'_>) -> Result<Vec<TraceIo>, ImportError> {
    const SECTOR: u64 = 512;
    let io = |kind, offset_bytes, bytes| TraceIo { at_ns: event.at_ns, kind, offset_bytes, bytes };
    let flush = event.rwbs.starts_with('F').then(|| io(TraceKind::Sync, 0, 0));
    let what = event.rwbs.trim_start_matches('F');
    let kind = match what.chars().next() {
        Some('R') => TraceKind::Read,
        Some('W') => TraceKind::Write,
        // A bare flush, a discard, or none of a kind that is issued to a file.
        _ => return Ok(flush.into_iter().collect()),
    };
    let (sector, sectors) = match event.place {
        Some(place) => place,
        // An empty write carries a flush.
        None if flush.is_some() => return Ok(flush.into_iter().collect()),
        None => return Err(ImportError::at(line, "a queued I/O without 'sector + sectors'")),
    };
    let offset_bytes = sector.checked_mul(SECTOR);
    let bytes = sectors.checked_mul(SECTOR).and_then(|bytes| u32::try_from(bytes).ok());
    let (Some(offset_bytes), Some(bytes)) = (offset_bytes, bytes) else {
        return Err(ImportError::at(line, format!("sector {sector} + {sectors} is beyond any device")));
    };
    let io = (bytes > 0).then(|| io(kind, offset_bytes, bytes));
    Ok(flush.into_iter().chain(io).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]
  8,0    3        3     0.000009829   697  G   W 223490 + 8 [kjournald]
  8,0    3        4     0.000012000   697  P   N [kjournald]
  8,0    3        5     0.000020000   697  D   W 223490 + 8 [kjournald]
  8,0    1        6     0.000018000   698  Q  RA 16 + 16 [fio]
  8,0    3        7     1.000001829     0  C   W 223490 + 8 [0]
  8,0    3        8     1.000002829   697  Q FWS 64 + 8 [kjournald]
  8,0    3        9     1.000003829   697  Q  FN [kjournald]
  8,0    3       10     1.000004829   697  Q   D 64 + 8 [fstrim]
CPU3 (sda):
 Reads Queued:           1,        8KiB\t Writes Queued:           2,        8KiB
";

    #[test]
    fn queued_events_are_the_trace_in_the_order_of_their_times() {
        use TraceKind::{Read, Sync, Write};
        let trace = trace(BLKPARSE).unwrap();
        let ios: Vec<_> = trace.ios.iter().map(|io| (io.at_ns, io.kind, io.offset_bytes, io.bytes)).collect();
        let second = 1_000_000_000;
        assert_eq!(
            ios,
            [
                (0, Write, 223_490 * 512, 4096),
                (16_171, Read, 8192, 8192),
                (second + 1_000, Sync, 0, 0),
                (second + 1_000, Write, 64 * 512, 4096),
                (second + 2_000, Sync, 0, 0),
            ]
        );
    }

    #[test]
    fn of_several_devices_one_must_be_chosen() {
        let two = format!("{BLKPARSE}  8,16   1   1     2.000000000   1  Q   R 8 + 8 [fio]\n");
        let error = trace(&two).unwrap_err();
        assert_eq!(error.to_string(), "the trace holds I/Os of several devices: 8,0 8,16");
        assert_eq!(error.remedy.as_deref(), Some("keep those of one: grep '^ *8,0 ' FILE"));
    }

    #[test]
    fn both_forms_of_our_own_say_the_same() {
        let csv = "at_ns,kind,offset_bytes,bytes\n1000,write,4096,512\n51000,sync,0,0\n";
        let json = "{\"at_ns\":51000,\"kind\":\"sync\"}\n\
                    {\"at_ns\":1000,\"kind\":\"write\",\"offset_bytes\":4096,\"bytes\":512}\n";
        let (csv, json) = (trace(csv).unwrap(), trace(json).unwrap());
        assert_eq!(csv, json);
        assert_eq!(csv.ios[1], TraceIo { at_ns: 50_000, kind: TraceKind::Sync, offset_bytes: 0, bytes: 0 });
    }

    #[test]
    fn a_wrong_line_is_named() {
        let say = |text: &str| trace(text).unwrap_err().to_string();
        assert_eq!(
            say("at_ns,kind,offset_bytes,bytes\n0,read,0,512\n1,trim,0,512\n"),
            "line 3: 'trim' is not a kind of I/O"
        );
        assert_eq!(say("at_ns,kind,offset_bytes,bytes\n0,read,0\n"), "line 2: 3 cells, not four");
        assert!(
            say("{\"at_ns\":0,\"kind\":\"read\",\"size\":1}").starts_with("line 1, column 31: unknown field")
        );
        assert_eq!(say("hello"), "this is no trace");
    }
}
