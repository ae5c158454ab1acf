use crate::cleaning::run;
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The kernel's own trace of the I/Os of one block device.
///
/// ```text
/// tracefs/instances/headroom-PID-N/     an instance of its own: other traces are not touched
///     events/block/block_bio_queue      an I/O as it was issued, before the kernel merges or reorders
///     events/block/block_rq_issue       a flush; in full: every request as the device gets it, with its priority
///     events/block/block_rq_complete    in full: the end of a request, of one I/O or of several that were merged
/// ```
#[derive(Debug)]
pub struct BlockTrace {
    instance: PathBuf,
    in_full: bool,
}

/// The I/Os of a traced device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// I/Os with data as programs issued them, in their order.
    pub ios: Vec<Issued>,
    /// Most of them outstanding at once; only of a full trace.
    pub in_flight_max: usize,
    /// Time that each was outstanding between the first and the last event, summed; only of a full trace.
    pub outstanding_ns: u64,
    /// From the first event to the last.
    pub elapsed_ns: u64,
    /// Flushes without data, as of an `fsync`.
    pub flushes: usize,
    /// Distinct priorities of the requests with data, as the trace prints them: "be,0,6"; only of a full trace.
    pub priorities: Vec<String>,
}

/// One I/O of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Nanoseconds since boot.
    pub at_ns: u64,
    /// The thread that issued it.
    pub thread: u32,
    /// First sector, of 512 bytes.
    pub sector: u64,
    /// Its size.
    pub bytes: u64,
    /// A write, not a read.
    pub write: bool,
    /// A process waits for it (`S`): direct I/O, reads.
    pub sync: bool,
    /// It must be on stable storage when it ends (`F`).
    pub fua: bool,
}

/// Buffer of each CPU: half a million events.
const BUFFER_KIB: u32 = 64 << 10;
const EVENTS: [&str; 3] = ["block_bio_queue", "block_rq_complete", "block_rq_issue"];

impl Issued {
    /// Its offset in the device, bytes.
    pub fn offset(&self) -> u64 {
        self.sector * 512
    }
}

impl BlockTrace {
    /// Traces the device of that number ("7:3"); `None`, with a message, if this user may not.
    ///
    /// # Panics
    /// As all its methods, if the kernel refuses what root may do.
    pub fn start(number: &str) -> Option<BlockTrace> {
        BlockTrace::open(number, false)
    }

    /// Begins a full trace, with completions and priorities: three times the events.
    pub fn start_in_full(number: &str) -> Option<BlockTrace> {
        BlockTrace::open(number, true)
    }

    fn open(number: &str, in_full: bool) -> Option<BlockTrace> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some(tracefs) = tracefs() else {
            eprintln!("skipped: needs root and a tracefs");
            return None;
        };
        let name = format!("headroom-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let instance = tracefs.join("instances").join(name);
        let made = fs::create_dir(&instance);
        made.inspect_err(|error| eprintln!("skipped: {}: {error}", instance.display())).ok()?;
        let trace = BlockTrace { instance, in_full };
        trace.write("trace_clock", "mono");
        let buffer_kib = if in_full { 3 * BUFFER_KIB } else { BUFFER_KIB };
        trace.write("buffer_size_kb", &buffer_kib.to_string());
        let number = host::DeviceNumber::parse(number).expect("a device number");
        let device = number.kernel_form().expect("a device number");
        for event in EVENTS {
            let filter = match event {
                "block_rq_complete" if !in_full => continue,
                "block_rq_issue" if !in_full => format!("dev == {device} && bytes == 0"),
                _ => format!("dev == {device}"),
            };
            trace.write(&format!("events/block/{event}/filter"), &filter);
            trace.write(&format!("events/block/{event}/enable"), "1");
        }
        trace.write("tracing_on", "1");
        Some(trace)
    }

    /// Stops the trace and returns its I/Os.
    pub fn stop(self) -> Traced {
        self.write("tracing_on", "0");
        let lost = fs::read_dir(self.instance.join("per_cpu")).expect("a buffer for each CPU").flatten();
        for stats in lost {
            let text = fs::read_to_string(stats.path().join("stats")).unwrap_or_default();
            let overrun = text.lines().find_map(|line| line.strip_prefix("overrun: "));
            assert!(overrun.is_none_or(|count| count == "0"), "events were lost: trace a shorter run");
        }
        let text = fs::read_to_string(self.instance.join("trace")).expect("the trace");
        let mut traced = Traced::default();
        let mut in_flight = InFlight::default();
        let mut last_ns = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let event = Event::parse(line).unwrap_or_else(|| panic!("not a known event: {line}"));
            let has_data = event.bytes > 0 && event.kind.contains(['R', 'W']);
            let since_ns = event.at_ns.saturating_sub(last_ns.unwrap_or(event.at_ns));
            traced.elapsed_ns += since_ns;
            traced.outstanding_ns += since_ns * in_flight.count as u64;
            last_ns = Some(event.at_ns);
            match event.name {
                "block_bio_queue" if has_data => {
                    traced.ios.push(event.issued());
                    in_flight.start(event.sector, event.bytes);
                    traced.in_flight_max = traced.in_flight_max.max(in_flight.count);
                }
                "block_rq_complete" if has_data => in_flight.complete(event.sector, event.bytes),
                "block_rq_issue" if has_data => {
                    let priority = event.priority.to_owned();
                    if !traced.priorities.contains(&priority) {
                        traced.priorities.push(priority);
                    }
                }
                "block_rq_issue" if event.kind.starts_with('F') => traced.flushes += 1,
                _ => {}
            }
        }
        if !self.in_full {
            (traced.in_flight_max, traced.outstanding_ns) = (0, 0);
        }
        traced
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.instance.join(file);
        let written =
            OpenOptions::new().write(true).open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

impl Drop for BlockTrace {
    fn drop(&mut self) {
        // Removes its buffers too; there is no one to report an error to.
        let _ = fs::remove_dir(&self.instance);
    }
}

/// I/Os that have not completed.
#[derive(Default)]
struct InFlight {
    /// Sizes in bytes by first sector.
    bytes_at: HashMap<u64, Vec<u64>>,
    count: usize,
}

impl InFlight {
    fn start(&mut self, sector: u64, bytes: u64) {
        self.bytes_at.entry(sector).or_default().push(bytes);
        self.count += 1;
    }

    /// A request completed: all I/Os that were merged into it.
    fn complete(&mut self, sector: u64, bytes: u64) {
        let (mut next, end) = (sector, sector + bytes / 512);
        while next < end {
            let Some(bytes) = self.bytes_at.get_mut(&next).and_then(Vec::pop) else { return };
            self.count -= 1;
            next += bytes / 512;
        }
    }
}

/// A line of the trace.
struct Event<'a> {
    at_ns: u64,
    thread: u32,
    name: &'a str,
    kind: &'a str,
    sector: u64,
    bytes: u64,
    priority: &'a str,
}

impl<'a> Event<'a> {
    /// "headroom-4711    [001] ..... 1234.567890: block_bio_queue: 7,0 WFS 2048 + 8 \[headroom\]"; of requests
    /// "... block_rq_issue: 7,0 WS 4096 () 2048 + 8 be,0,4 \[headroom\]". A program's name may hold any
    /// characters but comes first.
    fn parse(line: &'a str) -> Option<Event<'a>> {
        let (head, rest) = line.split_once(": block_")?;
        let (name, rest) = rest.split_once(": ")?;
        let name = EVENTS.into_iter().find(|event| event.strip_prefix("block_") == Some(name))?;
        let (seconds, parts) = head.rsplit_once(' ').map(|(before, time)| (time, before))?;
        let (seconds, micros) = seconds.split_once('.')?;
        let at_ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1000;
        let thread = parts.split('[').next()?.trim_end().rsplit('-').next()?.parse().ok()?;
        let mut words = rest.split_whitespace();
        let kind = words.nth(1)?;
        let plus = rest.split_once(" + ")?;
        let sector = plus.0.rsplit(' ').next()?.parse().ok()?;
        let mut after = plus.1.split_whitespace();
        let bytes = after.next()?.parse::<u64>().ok()? * 512;
        Some(Event { at_ns, thread, name, kind, sector, bytes, priority: after.next().unwrap_or("") })
    }

    fn issued(&self) -> Issued {
        let (at_ns, thread, sector, bytes) = (self.at_ns, self.thread, self.sector, self.bytes);
        let write = self.kind.contains('W');
        let fua = self.kind.split_once('W').is_some_and(|(_, flags)| flags.contains('F'));
        Issued { at_ns, thread, sector, bytes, write, sync: self.kind.contains('S'), fua }
    }
}

/// Its mount point, if this user may use it. Where it is not mounted yet, as in a container, this mounts it at its usual
/// place and leaves it mounted: other tests use it at the same time.
fn tracefs() -> Option<PathBuf> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(Path::new);
    let mounted = || places.into_iter().find(|place| place.join("instances").is_dir());
    let place = mounted().or_else(|| {
        if rustix::process::geteuid().is_root() {
            drop(run("mount", &["-t", "tracefs", "tracefs", "/sys/kernel/tracing"]));
        }
        mounted()
    })?;
    let may = OpenOptions::new().append(true).open(place.join("tracing_on")).is_ok();
    may.then(|| place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_completes_the_ios_that_were_merged_into_it() {
        let mut in_flight = InFlight::default();
        for sector in [0, 8, 8, 64] {
            in_flight.start(sector, 4096);
        }
        in_flight.complete(0, 8192);
        assert_eq!(in_flight.count, 2);
        in_flight.complete(8, 4096);
        in_flight.complete(999, 4096);
        assert_eq!(in_flight.count, 1);
    }

    #[test]
    fn lines_of_the_trace_are_parsed() {
        let line = "   my-prog [x]-4711    [001] .....  1234.000789: block_bio_queue: 7,0 WFS 2048 + 8 [my-prog [x]]";
        // A name with a bracket cuts the head short; ours has none.
        assert!(Event::parse(line).is_none());
        let line =
            "        headroom-4711    [001] .....  1234.000789: block_bio_queue: 7,0 WFS 2048 + 8 [headroom]";
        let event = Event::parse(line).unwrap();
        assert_eq!(
            event.issued(),
            Issued {
                at_ns: 1_234_000_789_000,
                thread: 4711,
                sector: 2048,
                bytes: 4096,
                write: true,
                sync: true,
                fua: true
            }
        );
        let line =
            "  kworker/1:2-99   [001] d..1.  1.5: block_rq_issue: 7,0 R 4096 () 8 + 8 be,0,6 [headroom]";
        let event = Event::parse(line).unwrap();
        assert_eq!((event.sector, event.bytes, event.priority, event.kind), (8, 4096, "be,0,6", "R"));
    }
}
