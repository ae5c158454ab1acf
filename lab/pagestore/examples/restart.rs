//! Measures how long a store takes to open after kill -9 and prints a line of JSON: `restart DIR LOG_BYTES PAGES
//! instant|wide|prefetch|serial [OPENINGS [FILE_PAGES [CACHE_BYTES]]]`. A child writes LOG_BYTES of log without a
//! checkpoint, in transactions that change 64 of PAGES scattered pages each, and is killed. The parent opens the
//! store, reads a page, writes one, waits until all is redone, and checks every page. With several openings, all
//! but the last are done by a child that is killed right after its first write, and the times up to there are
//! medians. The data file has FILE_PAGES, of which PAGES change (default: all of them); the recovering store has a
//! cache of CACHE_BYTES (default: four times what changes).

use crashlab::Chance;
use pagestore::{Durability, Layout, Options, PageNo, Pages, Recovery, Store};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CHILD: &str = "PAGESTORE_RESTART_CHILD";
/// The value for a child that opens the store.
const CHILD_OPENS: &str = "opens";
const PAGES_PER_COMMIT: u64 = 64;
const PAGE_BYTES: usize = 4096;
/// Pages that are added to the data file at a time.
const PAGES_PER_GROWTH: usize = 65_536;
/// Threads that read all pages in the end, and pages that each reads at a time.
const CHECKERS: usize = 16;
const PAGES_PER_CHECK: usize = 1024;
const USAGE: &str =
    "usage: restart DIR LOG_BYTES PAGES instant|wide|prefetch|serial [OPENINGS [FILE_PAGES [CACHE_BYTES]]]";
/// The size of a page's record, as nearly the whole page changes.
const RECORD_BYTES: u64 = 4096;
/// The first page of the workload.
const FIRST: u64 = 2;

type Failed = Box<dyn std::error::Error>;

/// The parsed arguments.
struct Plan {
    place: PathBuf,
    log_bytes: u64,
    /// Pages that change.
    pages: u64,
    /// Pages of the data file.
    file_pages: u64,
    /// The cache of the recovering store.
    cache_bytes: Option<usize>,
    recovery: Recovery,
    openings: usize,
}

impl Plan {
    fn parse(arguments: &[String]) -> Result<Self, Failed> {
        let [directory, log_bytes, pages, strategy, more @ ..] = arguments else { return Err(USAGE.into()) };
        let ([] | [_] | [_, _] | [_, _, _]) = more else { return Err(USAGE.into()) };
        let pages: u64 = pages.parse()?;
        let file_pages = more.get(1).map_or(Ok(pages), |pages| pages.parse())?;
        if pages == 0 || pages > file_pages || u32::try_from(file_pages).is_err() {
            return Err(format!("{pages} of {file_pages} pages cannot change").into());
        }
        Ok(Self {
            place: Path::new(directory).join("restart-store"),
            log_bytes: log_bytes.parse()?,
            pages,
            file_pages,
            cache_bytes: more.get(2).map(|bytes| bytes.parse()).transpose()?,
            recovery: match strategy.as_str() {
                "instant" => Recovery::Instant,
                "wide" => Recovery::Wide,
                "prefetch" => Recovery::Prefetch,
                "serial" => Recovery::Serial,
                other => return Err(format!("there is no strategy '{other}'").into()),
            },
            openings: more.first().map_or(Ok(1), |openings| openings.parse())?,
        })
    }

    fn commits(&self) -> u64 {
        self.log_bytes / (PAGES_PER_COMMIT * RECORD_BYTES)
    }

    /// The page that is read and written first.
    fn probe_page(&self) -> PageNo {
        PageNo(FIRST + self.file_pages / 2)
    }

    /// Options with which no checkpoint frees log: neither its length nor a full cache starts one.
    fn writing(&self) -> Options {
        Options {
            cache_bytes: (64 << 20) + 4 * PAGE_BYTES * self.pages as usize,
            log_limit_bytes: 2 * self.log_bytes + (1 << 30),
            checkpoint_bytes: u64::MAX,
            ..Options::default()
        }
    }

    fn recovering(&self) -> Options {
        let writing = self.writing();
        let cache_bytes = self.cache_bytes.unwrap_or(writing.cache_bytes);
        Options { recovery: self.recovery, cache_bytes, ..writing }
    }
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let plan = Plan::parse(&arguments)?;
    match std::env::var_os(CHILD) {
        Some(child) if child == CHILD_OPENS => return open_and_wait(&plan),
        Some(_) => return write_until_killed(&plan),
        None => {}
    }
    let done = crash(&arguments, "writes").and_then(|_| {
        let mut begun = Vec::new();
        for _ in 1..plan.openings {
            begun.push(OpeningTimes::parse(&crash(&arguments, CHILD_OPENS)?)?);
        }
        measure(&plan, begun)
    });
    std::fs::remove_dir_all(&plan.place)?;
    println!("{}", done?);
    Ok(())
}

/// Runs a child, kills it when it reports that it is done, and returns its report.
fn crash(arguments: &[String], work: &str) -> Result<String, Failed> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .env(CHILD, work)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("the child has no output")?).read_line(&mut line)?;
    child.kill()?;
    child.wait()?;
    if line.is_empty() { Err("the child ended before it was done".into()) } else { Ok(line) }
}

/// Milliseconds since the begin of an opening until: it is open, analysis has ended, the first read, the first
/// write.
struct OpeningTimes([f64; 4]);

impl OpeningTimes {
    /// Opens the store, reads a page and changes it; also returns the version that was read.
    fn measure(plan: &Plan) -> Result<(Store, Self, u64), Failed> {
        let some = plan.probe_page();
        let begun = Instant::now();
        let store = Store::open(&plan.place, plan.recovering())?;
        let opened = begun.elapsed();
        let found = version(&store.read()?.page(some)?);
        let first_read = begun.elapsed();
        let mut tx = store.write()?;
        tx.page_mut(some)?[100] = 1;
        tx.commit(Durability::Full)?;
        let times = [opened, store.recovery_report().analysis, first_read, begun.elapsed()];
        Ok((store, Self(times.map(|time| time.as_secs_f64() * 1e3)), found))
    }

    fn parse(line: &str) -> Result<Self, Failed> {
        let times = line.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        Ok(Self(times.try_into().map_err(|_| "the child told other times")?))
    }

    fn medians(all: &[Self]) -> [f64; 4] {
        std::array::from_fn(|at| {
            let mut times: Vec<_> = all.iter().map(|own| own.0[at]).collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
    }
}

fn version(page: &[u8]) -> u64 {
    u64::from_le_bytes(page[32..40].try_into().expect("eight bytes"))
}

fn open_and_wait(plan: &Plan) -> Result<(), Failed> {
    let (_store, OpeningTimes([opened, analysis, read, written]), _) = OpeningTimes::measure(plan)?;
    println!("{opened} {analysis} {read} {written}");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The pages in the order in which they are changed: scattered over the data file, each once before any is changed
/// again.
struct Order(Vec<u32>);

impl Order {
    fn new(plan: &Plan) -> Self {
        let mut order: Vec<u32> = (0..plan.file_pages as u32).collect();
        let mut chance = Chance::new(1);
        // Fisher-Yates shuffle.
        for at in (1..order.len()).rev() {
            order.swap(at, chance.below(at as u64 + 1) as usize);
        }
        order.truncate(plan.pages as usize);
        Self(order)
    }

    /// The pages that commit `number` changes.
    fn changes(&self, number: u64) -> impl Iterator<Item = PageNo> {
        let first = (number - 1) * PAGES_PER_COMMIT;
        (first..first + PAGES_PER_COMMIT)
            .map(|at| PageNo(FIRST + u64::from(self.0[(at % self.0.len() as u64) as usize])))
    }

    /// For each page of the data file the last commit that changed it; 0 if none did.
    fn newest(&self, plan: &Plan) -> Vec<u64> {
        let mut newest = vec![0; plan.file_pages as usize];
        for number in 1..=plan.commits() {
            self.changes(number).for_each(|page| newest[(page.0 - FIRST) as usize] = number);
        }
        newest
    }
}

/// The content of a page after commit `number`, from its 33rd byte on.
fn fill(number: u64, page: PageNo, bytes: &mut [u8]) {
    if number == 0 {
        return bytes.fill(0);
    }
    let mut words = Chance::new(number ^ page.0);
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    for word in bytes[8..].chunks_exact_mut(8) {
        word.copy_from_slice(&words.draw().to_le_bytes());
    }
}

fn write_until_killed(plan: &Plan) -> Result<(), Failed> {
    let layout = Layout::default();
    let vlfs = (plan.log_bytes + plan.log_bytes / 8) / layout.vlf_bytes + 8;
    let store = Store::create(&plan.place, Layout { vlfs: vlfs as usize, ..layout }, plan.writing())?;
    for first in (0..plan.file_pages).step_by(PAGES_PER_GROWTH) {
        let mut tx = store.write()?;
        for _ in first..plan.file_pages.min(first + PAGES_PER_GROWTH as u64) {
            tx.allocate()?;
        }
        tx.commit(Durability::Delayed)?;
    }
    store.close()?;
    let store = Store::open(&plan.place, plan.writing())?;
    let order = Order::new(plan);
    for number in 1..=plan.commits() {
        let mut tx = store.write()?;
        for page in order.changes(number) {
            fill(number, page, &mut tx.page_mut(page)?[32..]);
        }
        tx.commit(Durability::Full)?;
    }
    println!("written");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Reads every page of the data file, on several threads.
fn check(store: &Store, plan: &Plan, expected: &[u64]) -> Result<(), Failed> {
    let next = AtomicUsize::new(0);
    let check = || -> Result<(), String> {
        let reader = store.read().map_err(|error| error.to_string())?;
        let mut wanted = [0; PAGE_BYTES];
        loop {
            let from = next.fetch_add(PAGES_PER_CHECK, Ordering::Relaxed);
            if from >= expected.len() {
                return Ok(());
            }
            for (at, number) in expected.iter().enumerate().skip(from).take(PAGES_PER_CHECK) {
                let page = PageNo(FIRST + at as u64);
                let found = reader.page(page).map_err(|error| error.to_string())?;
                let wanted = &mut wanted[..found.len()];
                fill(*number, page, &mut wanted[32..]);
                if page == plan.probe_page() {
                    wanted[100] = 1;
                }
                if found[32..] != wanted[32..] {
                    return Err(format!(
                        "page {page} is as of commit {}, or damaged; it should be of {number}",
                        version(&found)
                    ));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CHECKERS).map(|_| scope.spawn(check)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("none of them panics"))
    })
    .map_err(Failed::from)
}

fn measure(plan: &Plan, mut openings: Vec<OpeningTimes>) -> Result<String, Failed> {
    let expected = Order::new(plan).newest(plan);
    let changed = expected.iter().filter(|number| **number > 0).count();
    let some = plan.probe_page();
    let begun = Instant::now();
    let (store, last, found) = OpeningTimes::measure(plan)?;
    openings.push(last);
    if found != expected[(some.0 - FIRST) as usize] {
        return Err(format!("page {some} is as of commit {found}").into());
    }
    while store.recovery_pages_left() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let full = begun.elapsed();
    check(&store, plan, &expected)?;
    let report = store.recovery_report();
    let [opened, analysis, first_read, first_write] = OpeningTimes::medians(&openings);
    Ok(format!(
        "{{\"strategy\": \"{:?}\", \"log_bytes\": {}, \"pages\": {changed}, \"file_pages\": {}, \"openings\": {}, \
         \"opened_ms\": {opened:.1}, \"analysis_ms\": {analysis:.1}, \"first_read_ms\": {first_read:.1}, \
         \"first_write_ms\": {first_write:.1}, \"full_recovery_s\": {:.2}, \
         \"log_bytes_read_at_open\": {}, \"log_reads_at_open\": {}, \"vlfs_indexed\": {}}}",
        report.strategy,
        plan.log_bytes,
        plan.file_pages,
        openings.len(),
        full.as_secs_f64(),
        report.log_bytes,
        report.log_reads,
        report.vlfs_indexed,
    ))
}
