use super::style::{Ink, Style};
use super::wrap::{clean, clip, clip_start, wrap};
use crate::{TraceSummary, number};
use filestats::{IoFlags, Served, TracedIo, TracedOp};
use std::fmt::Write;

/// The lines of a trace, an I/O each, as wide as the terminal.
#[derive(Clone, Copy, Debug)]
pub struct TraceLines {
    style: Style,
    /// Columns of the thread's number and name, and of the file.
    who: usize,
    comm: usize,
    file: usize,
}

/// Terminals at least this wide have space for whole names.
const WIDE: usize = 110;
/// Time, operation, place, bytes, latency, N, how: with the spaces between.
const FIXED: usize = 10 + 1 + 1 + 1 + 6 + 1 + 9 + 1 + 6 + 1 + 6 + 1 + 3 + 1 + 4 + 1;
/// Files that are listed at the end.
const FILES_SHOWN: usize = 5;

const LETTERS: &str = "how: D direct, S write-through (O_DSYNC, O_SYNC, RWF_DSYNC), A append, U io_uring, \
    L libaio, M mapped, C copied, N nowait, H polled; c from the page cache, d waited for the device";

/// The key of the letters in the lines.
pub fn trace_letters(style: &Style) -> String {
    style.paragraph(Ink::Dim, LETTERS, 2, 4).join("\n") + "\n"
}

impl TraceLines {
    /// Lines in a style.
    pub fn new(style: &Style) -> TraceLines {
        let wide = style.width >= WIDE;
        let (who, comm) = if wide { (15, 15) } else { (7, 7) };
        // Lines are cut, not wrapped, so that there is no limit of width.
        let width = style.width.max(80);
        TraceLines { style: *style, who, comm, file: width - FIXED - who - comm }
    }

    /// The titles of the columns.
    pub fn heading(&self) -> String {
        let who = if self.who > 7 { "pid/tid" } else { "tid" };
        let text = format!(
            "{:>10} {who:>w$} {:<c$} {:<6} {:>9} {:>6} {:>6} {:>3} {:<4} file",
            "seconds",
            "name",
            "op",
            "offset",
            "bytes",
            "took",
            "N",
            "how",
            w = self.who,
            c = self.comm
        );
        self.style.paint(Ink::Dim, &text)
    }

    /// One I/O.
    pub fn line(&self, io: &TracedIo) -> String {
        let who = match io.pid == io.tid || self.who == 7 {
            true => io.tid.to_string(),
            false => format!("{}/{}", io.pid, io.tid),
        };
        let mut line = String::with_capacity(self.style.width + 16);
        // Writing into a string cannot fail.
        let _ = write!(
            line,
            "{:>10.6} {who:>w$} {:<c$} {:<6} {:>9} {:>6} {:>6} {:>3} {:<4} {}",
            io.at_ns as f64 / 1e9,
            clip(&clean(&io.comm), self.comm),
            op(io),
            io.offset_bytes.map_or_else(|| number::NONE.into(), exact),
            if io.op == TracedOp::Sync { number::NONE.into() } else { exact(io.bytes) },
            short_time(io.latency_ns),
            io.n,
            letters(io),
            clip_start(&clean(&io.file), self.file),
            w = self.who,
            c = self.comm
        );
        line
    }
}

/// "read", "fdsync": of a sync, which.
fn op(io: &TracedIo) -> &'static str {
    match io.op {
        TracedOp::Sync if io.flags.has(IoFlags::FDATASYNC) => "fdsync",
        TracedOp::Sync if io.flags.has(IoFlags::RANGE) => "range",
        TracedOp::Sync if io.flags.has(IoFlags::MSYNC) => "msync",
        TracedOp::Sync => "fsync",
        op => op.word(),
    }
}

/// Bytes without loss: "4096" is 4K, "4097" is itself.
fn exact(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{}M", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{}K", b >> 10),
        b => b.to_string(),
    }
}

/// "85.3us".
fn short_time(ns: u64) -> String {
    let text = number::time(ns as f64);
    text.split_once(' ').map_or_else(|| text.clone(), |(value, unit)| format!("{value}{unit}"))
}

fn letters(io: &TracedIo) -> String {
    let through = IoFlags::DSYNC.with(IoFlags::OSYNC).with(IoFlags::RWF_DSYNC).with(IoFlags::RWF_SYNC);
    let all = [
        (IoFlags::URING, 'U'),
        (IoFlags::AIO, 'L'),
        (IoFlags::MMAP, 'M'),
        (IoFlags::COPY, 'C'),
        (IoFlags::DIRECT, 'D'),
        (through, 'S'),
        (IoFlags::APPEND.with(IoFlags::RWF_APPEND), 'A'),
        (IoFlags::NOWAIT, 'N'),
        (IoFlags::HIPRI, 'H'),
    ];
    let mut text: String =
        all.iter().filter(|(flag, _)| io.flags.has(*flag)).map(|(_, letter)| letter).collect();
    match io.served {
        Some(Served::Cache) => text.push('c'),
        // Direct I/O always does.
        Some(Served::Device) if !io.flags.has(IoFlags::DIRECT) => text.push('d'),
        _ => {}
    }
    text
}

/// The totals of a trace, below its lines.
pub fn trace(traced: &TraceSummary, style: &Style) -> String {
    let seconds = number::duration(traced.elapsed_ns as f64 / 1e9);
    let ios = traced.ios();
    let plural = if ios == 1 { "I/O" } else { "I/Os" };
    let heading =
        format!("{} {plural}, {} in {seconds}", number::count(ios), number::bytes(traced.bytes() as f64));
    let mut lines = vec![style.heading(&heading)];
    for (op, totals) in traced.by_op() {
        let at = |percent: f64| totals.percentile_ns(percent).map_or(number::NONE.into(), number::time);
        let bytes = match op {
            TracedOp::Sync => String::new(),
            _ => format!(" of {}", number::bytes(totals.bytes as f64 / totals.ios as f64)),
        };
        lines.push(format!(
            "  {:<6} {:>10}{bytes:<14} mean {:>8}  p50 {:>8}  p99 {:>8}  max {:>8}",
            op.word(),
            number::count(totals.ios),
            number::time(totals.mean_ns()),
            at(50.0),
            at(99.0),
            number::time(totals.max_ns as f64)
        ));
    }
    let mut files: Vec<_> = traced.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.ios));
    for file in files.iter().take(FILES_SHOWN) {
        let of =
            format!("  {:>10} I/Os {:>9} of ", number::count(file.ios), number::bytes(file.bytes as f64));
        let room = style.columns().saturating_sub(of.chars().count());
        lines.push(format!("{of}{}", clip_start(&clean(&file.path), room)));
    }
    let more = traced.files.len().saturating_sub(FILES_SHOWN);
    if more > 0 || traced.other_files_ios > 0 {
        let others = if traced.other_files_ios > 0 { " and others" } else { "" };
        lines.push(style.paint(Ink::Dim, &format!("  {more} more files{others}")));
    }
    for file in &traced.files {
        if let Some(trace) = &file.trace {
            lines.extend(wrap(&format!("  written: {trace}, of {}", file.path), style.columns(), 3));
        }
    }
    if traced.lost > 0 {
        let lost = format!(
            "{} more were lost, because the buffer was full: this trace is not complete",
            number::count(traced.lost)
        );
        lines.push(style.paint(Ink::Tone(crate::Tone::Bad), &lost));
    }
    for note in &traced.notes {
        lines.extend(wrap(&format!("note: {note}"), style.columns(), 4));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_summary::tests::{io, trace as traced};

    #[test]
    fn every_line_fits_eighty_columns_with_an_exact_offset() {
        let lines = TraceLines::new(&Style { color: false, width: 80 });
        let mut one = io(1_234_567_890, TracedOp::Write, 12_345_678_901_234, 85_312);
        one.n = 17;
        one.flags = IoFlags::URING.with(IoFlags::DIRECT).with(IoFlags::DSYNC);
        let small = TracedIo { offset_bytes: Some(4097), bytes: 1 << 20, ..one.clone() };
        let sync = io(99_000_000_000, TracedOp::Sync, 0, 2_300_000);
        assert_eq!(
            lines.line(&small),
            "  1.234568     812 postgr… write       4097     1M 85.3us  17 UDS  …base/5/16384"
        );
        assert_eq!(
            lines.line(&sync),
            " 99.000000     812 postgr… fsync          -      - 2.30ms   1 D    …base/5/16384"
        );
        assert!(lines.line(&one).contains(" 12345678901234 "));
        assert!(lines.heading().chars().count() <= 80 && lines.line(&small).chars().count() <= 80);
        let wide = TraceLines::new(&Style { color: false, width: 120 });
        let thread = TracedIo { tid: 813, served: Some(Served::Cache), flags: IoFlags::default(), ..small };
        assert!(
            wide.line(&thread).contains(" 812/813 postgres        write ")
                && wide.line(&thread).contains(" c ")
        );
        assert!(wide.line(&thread).ends_with(" /data/base/5/16384"));
    }

    #[test]
    fn the_end_has_the_totals_and_the_lost_ios() {
        let mut all = traced(9);
        all.lost = 3;
        all.notes.push("io_uring I/O is not counted".into());
        all.files[0].trace = Some("shop.trace".into());
        insta::assert_snapshot!(trace(&all, &Style { color: false, width: 80 }));
    }
}
