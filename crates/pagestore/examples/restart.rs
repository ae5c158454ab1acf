//! How long a store takes to open after kill -9: `restart DIR LOG_BYTES PAGES instant|wide|prefetch|serial [OPENINGS]`,
//! a line of JSON. A child writes LOG_BYTES of log, in transactions that change 64 of PAGES scattered pages each, without
//! a checkpoint, and is killed; the parent opens what is left, reads a page, writes one, waits until all is redone and
//! checks every page. Of several openings, all but the last are a child's that is killed right after its first write,
//! and the times up to there are medians.

use pagestore::sim::Chance;
use pagestore::{Durability, Layout, Options, PageNo, Pages, Recovery, Store};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "PAGESTORE_RESTART_CHILD";
/// … for a child that opens the store.
const OPENS: &str = "opens";
const PAGES_A_COMMIT: u64 = 64;
/// A page's record: nearly all of it changes.
const RECORD_BYTES: u64 = 4096;
/// Pages from this number on are the workload's.
const FIRST: u64 = 2;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ([directory, log_bytes, pages, strategy] | [directory, log_bytes, pages, strategy, _]) =
        &arguments[..]
    else {
        return Err("usage: restart DIR LOG_BYTES PAGES instant|wide|prefetch|serial [OPENINGS]".into());
    };
    let openings: usize = arguments.get(4).map_or(Ok(1), |openings| openings.parse())?;
    let place = Path::new(directory).join("restart-store");
    let (log_bytes, pages): (u64, u64) = (log_bytes.parse()?, pages.parse()?);
    let commits = log_bytes / (PAGES_A_COMMIT * RECORD_BYTES);
    let recovery = match strategy.as_str() {
        "instant" => Recovery::Instant,
        "wide" => Recovery::Wide,
        "prefetch" => Recovery::Prefetch,
        "serial" => Recovery::Serial,
        other => return Err(format!("there is no strategy '{other}'").into()),
    };
    let options = Options { recovery, ..options(log_bytes, pages) };
    match std::env::var_os(CHILD) {
        Some(child) if child == OPENS => return open_and_wait(&place, pages, options),
        Some(_) => return write_for_ever(&place, log_bytes, pages, commits),
        None => {}
    }
    let done = crash(&arguments, "writes").and_then(|_| {
        let mut begun = Vec::new();
        for _ in 1..openings {
            begun.push(Begun::parse(&crash(&arguments, OPENS)?)?);
        }
        measure(&place, log_bytes, pages, commits, options, begun)
    });
    std::fs::remove_dir_all(&place)?;
    println!("{}", done?);
    Ok(())
}

/// Has a child work, and kills it when it says that it is done: what it said.
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

/// Milliseconds from the beginning of an opening: open, its analysis, the first read, the first write.
struct Begun([f64; 4]);

impl Begun {
    /// Opens, reads a page and changes it; tells its version too.
    fn measure(place: &Path, some: PageNo, options: Options) -> Result<(Store, Self, u64), Failed> {
        let begun = Instant::now();
        let store = Store::open(place, options)?;
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

/// The page that is read and written first.
fn some(pages: u64) -> PageNo {
    PageNo(FIRST + pages / 2)
}

fn open_and_wait(place: &Path, pages: u64, options: Options) -> Result<(), Failed> {
    let (_store, Begun([opened, analysis, read, written]), _) = Begun::measure(place, some(pages), options)?;
    println!("{opened} {analysis} {read} {written}");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The log is not cut by a checkpoint: neither by its length nor by the cache being full of changes.
fn options(log_bytes: u64, pages: u64) -> Options {
    Options {
        cache_bytes: (64 << 20) + 4 * 4096 * pages as usize,
        log_limit_bytes: 2 * log_bytes + (1 << 30),
        checkpoint_bytes: u64::MAX,
        ..Options::default()
    }
}

/// The pages in the order in which they are changed: scattered, and each of them once before one is changed again.
struct Order(Vec<u32>);

impl Order {
    fn of(pages: u64) -> Self {
        let mut order: Vec<u32> = (0..pages as u32).collect();
        let mut chance = Chance::new(1);
        // Fisher and Yates.
        for at in (1..order.len()).rev() {
            order.swap(at, chance.below(at as u64 + 1) as usize);
        }
        Self(order)
    }

    /// What commit `number` changes.
    fn changes(&self, number: u64) -> impl Iterator<Item = PageNo> {
        let first = (number - 1) * PAGES_A_COMMIT;
        (first..first + PAGES_A_COMMIT)
            .map(|at| PageNo(FIRST + u64::from(self.0[(at % self.0.len() as u64) as usize])))
    }
}

fn write_for_ever(place: &Path, log_bytes: u64, pages: u64, commits: u64) -> Result<(), Failed> {
    let layout = Layout::default();
    let vlfs = (log_bytes + log_bytes / 8) / layout.vlf_bytes + 8;
    let store = Store::create(place, Layout { vlfs: vlfs as usize, ..layout }, Options::default())?;
    let mut tx = store.write()?;
    for _ in 0..pages {
        tx.allocate()?;
    }
    tx.commit(Durability::Full)?;
    store.close()?;
    let store = Store::open(place, options(log_bytes, pages))?;
    let order = Order::of(pages);
    for number in 1..=commits {
        let mut tx = store.write()?;
        for page in order.changes(number) {
            let mut words = Chance::new(number ^ page.0);
            for word in tx.page_mut(page)?[40..].chunks_exact_mut(8) {
                word.copy_from_slice(&words.draw().to_le_bytes());
            }
            tx.page_mut(page)?[32..40].copy_from_slice(&number.to_le_bytes());
        }
        tx.commit(Durability::Full)?;
    }
    println!("written");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn measure(
    place: &Path,
    log_bytes: u64,
    pages: u64,
    commits: u64,
    options: Options,
    mut openings: Vec<Begun>,
) -> Result<String, Failed> {
    let mut expected = vec![0; pages as usize];
    let order = Order::of(pages);
    for number in 1..=commits {
        order.changes(number).for_each(|page| expected[(page.0 - FIRST) as usize] = number);
    }
    let changed = expected.iter().filter(|number| **number > 0).count();
    let some = some(pages);
    let begun = Instant::now();
    let (store, last, found) = Begun::measure(place, some, options)?;
    openings.push(last);
    if found != expected[(some.0 - FIRST) as usize] {
        return Err(format!("page {some} is as of commit {found}").into());
    }
    while store.recovery_pages_left() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let full = begun.elapsed();
    let reader = store.read()?;
    for (page, expected) in expected.iter().enumerate() {
        let found = version(&reader.page(PageNo(FIRST + page as u64))?);
        if found != *expected {
            return Err(format!("page {page} is as of commit {found}, not {expected}").into());
        }
    }
    drop(reader);
    let report = store.recovery_report();
    let [opened, analysis, first_read, first_write] = Begun::medians(&openings);
    Ok(format!(
        "{{\"strategy\": \"{:?}\", \"log_bytes\": {log_bytes}, \"pages\": {changed}, \"openings\": {}, \
         \"opened_ms\": {opened:.1}, \"analysis_ms\": {analysis:.1}, \"first_read_ms\": {first_read:.1}, \
         \"first_write_ms\": {first_write:.1}, \"full_recovery_s\": {:.2}, \
         \"log_bytes_read_at_open\": {}, \"log_reads_at_open\": {}, \"vlfs_indexed\": {}}}",
        report.strategy,
        openings.len(),
        full.as_secs_f64(),
        report.log_bytes,
        report.log_reads,
        report.vlfs_indexed,
    ))
}
