//! kill -9 on a real file system. A process commits and reports its acknowledged commits through a pipe; it is killed, and
//! so are the processes that recover the store. Every reported commit must be there, and nothing that was not committed.
//!
//! ```text
//! KillTest::round   a child commits - killed - two children recover, by one of the four strategies - killed
//!                   this process opens the store by another strategy and compares it with the reports
//! ```
//! The operating system keeps what a killed process wrote: this test finds what the store itself holds back or writes
//! out of order. The simulated disk covers machines that stop.

use crate::Chance;
use pagestore::{Durability, Layout, Options, Recovery, Store, Tables};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Threads that commit; the last one with delayed durability.
const THREADS: u32 = 5;
const DELAYED: u32 = THREADS - 1;
/// A delayed commit that was reported this long before the end must be there: a hundred times its bound, for a busy
/// machine.
const DELAYED_WITHIN: Duration = Duration::from_secs(1);
const WORKED_MS: (u64, u64) = (60, 200);
const RECOVERIES_KILLED: u32 = 2;
const RECOVERED_MS: u64 = 30;
/// Pages that a step of a compaction changes at most.
const PAGES_PER_STEP: usize = 16;

/// The role of a child until it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildRole {
    /// Commits from five threads, and reports each commit.
    Work,
    /// Opens the store and lets it recover.
    Recover,
}

impl ChildRole {
    /// The name on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Recover => "recover",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Work, Self::Recover].into_iter().find(|role| role.name() == name)
    }
}

/// The strategies of recovery, by a number on a command line.
#[must_use]
pub fn recovery_by_number(number: usize) -> Recovery {
    [Recovery::Instant, Recovery::Wide, Recovery::Prefetch, Recovery::Serial][number % 4]
}

fn options(recovery: Recovery) -> Options {
    Options { cache_bytes: 1 << 20, checkpoint_bytes: 512 << 10, recovery, ..Options::default() }
}

/// Performs a role, until the process is killed or an error occurs.
///
/// # Errors
/// When the store cannot be opened or written.
pub fn run_child(directory: &Path, role: ChildRole, recovery: Recovery) -> pagestore::Result<()> {
    let store = Store::open(directory, options(recovery))?;
    if role == ChildRole::Recover {
        loop {
            std::thread::park();
        }
    }
    std::thread::scope(|scope| {
        let store = &store;
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || commit_repeatedly(store, thread))).collect();
        let compacting = scope.spawn(move || compact_repeatedly(store));
        threads
            .into_iter()
            .chain([compacting])
            .try_for_each(|thread| thread.join().expect("a thread that commits does not panic"))
    })
}

/// Increments the thread's own row and changes another row in each transaction; reports thread, count and commit.
fn commit_repeatedly(store: &Store, thread: u32) -> pagestore::Result<()> {
    for number in 0_u32.. {
        let mut tx = store.write()?;
        let table = tx.table("numbers")?;
        let next = count(tx.get(table, &thread.to_be_bytes())?) + 1;
        tx.put(table, &thread.to_be_bytes(), &next.to_be_bytes())?;
        let other = [thread.to_be_bytes(), (number % 500).to_be_bytes()].concat();
        tx.put(table, &other, &[number as u8; 300])?;
        let durability = if thread == DELAYED { Durability::Delayed } else { Durability::Full };
        if let Some(committed) = tx.commit(durability)? {
            let mut out = std::io::stdout().lock();
            let written =
                writeln!(out, "committed {thread} {next} {}", committed.sequence).and_then(|()| out.flush());
            if written.is_err() {
                return Ok(());
            }
        }
        if thread == DELAYED {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Compacts the store in small steps, beside those who commit.
fn compact_repeatedly(store: &Store) -> pagestore::Result<()> {
    loop {
        store.compact(PAGES_PER_STEP)?;
        std::thread::yield_now();
    }
}

fn count(value: Option<Vec<u8>>) -> u64 {
    value.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// A commit that a child reported.
#[derive(Clone, Copy, Debug)]
struct Report {
    thread: u32,
    number: u64,
    sequence: u64,
    at: Instant,
}

/// The totals of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KillTotals {
    /// Processes that were killed.
    pub kills: u64,
    /// Those of them that were recovering.
    pub in_recovery: u64,
    /// Reported commits that are there.
    pub commits: u64,
    /// Reported delayed commits that are missing, within their bound.
    pub delayed_lost: u64,
}

/// A store whose processes are killed repeatedly.
pub struct KillTest {
    directory: PathBuf,
    chance: Chance,
    round: usize,
    counts: [u64; THREADS as usize],
    /// The totals so far.
    pub totals: KillTotals,
}

impl KillTest {
    /// A new store in an empty directory.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(directory: &Path, seed: u64) -> pagestore::Result<Self> {
        let layout = Layout { vlf_bytes: 256 << 10, ..Layout::default() };
        let store = Store::create(directory, layout, options(Recovery::Instant))?;
        let mut tx = store.write()?;
        tx.create_table("numbers")?;
        tx.commit(Durability::Full)?;
        let directory = directory.to_path_buf();
        let counts = [0; THREADS as usize];
        Ok(Self { directory, chance: Chance::new(seed), round: 0, counts, totals: KillTotals::default() })
    }

    /// Runs one round; `command` builds the process that calls [`run_child`] with this role and strategy.
    ///
    /// # Errors
    /// A commit that is missing or was never made, or a process that cannot be started.
    pub fn round(&mut self, command: impl Fn(ChildRole, usize) -> Command) -> Result<(), String> {
        let round = self.round;
        self.round += 1;
        let lasting = Duration::from_millis(WORKED_MS.0 + self.chance.below(WORKED_MS.1));
        let (mut worker, reader) = start(command(ChildRole::Work, round))?;
        std::thread::sleep(lasting);
        let ended = Instant::now();
        kill(&mut worker)?;
        let reports = reader.join().map_err(|_| "the child's words cannot be read")?;
        self.totals.kills += 1;
        for _ in 0..RECOVERIES_KILLED {
            let (mut recovering, reader) = start(command(ChildRole::Recover, round + 1))?;
            std::thread::sleep(Duration::from_micros(self.chance.below(RECOVERED_MS * 1000)));
            kill(&mut recovering)?;
            let _ = reader.join();
            self.totals.kills += 1;
            self.totals.in_recovery += 1;
        }
        self.verify(&reports, ended, recovery_by_number(round + 2))
    }

    /// Checks that the store is in the state after one commit, and that it contains every reported commit up to that one.
    fn verify(&mut self, reports: &[Report], ended: Instant, strategy: Recovery) -> Result<(), String> {
        let failed = |error: pagestore::Error| format!("{strategy:?} recovery: {error}");
        let store = Store::open(&self.directory, options(strategy)).map_err(failed)?;
        let last = store.stats().last_sequence;
        let reader = store.read().map_err(failed)?;
        let table = reader.table("numbers").map_err(failed)?;
        for thread in 0..THREADS {
            let found = count(reader.get(table, &thread.to_be_bytes()).map_err(failed)?);
            let own = reports.iter().filter(|report| report.thread == thread);
            let there = own
                .clone()
                .filter(|report| report.sequence <= last)
                .map(|report| report.number)
                .max()
                .unwrap_or(0);
            let known = there.max(self.counts[thread as usize]);
            // The newest commit may have been made before it could be reported.
            if found != known && found != known + 1 {
                return Err(format!(
                    "{strategy:?} recovery: commit {last} is the last, and thread {thread} was told {known} of its own up \
                     to there; {found} are there"
                ));
            }
            for report in own.filter(|report| report.sequence > last) {
                let late = ended.duration_since(report.at.min(ended));
                if thread != DELAYED || late > DELAYED_WITHIN {
                    return Err(format!(
                        "{strategy:?} recovery: thread {thread} was told commit {} {late:?} before the end, and {last} is \
                         the last one there",
                        report.sequence
                    ));
                }
                self.totals.delayed_lost += 1;
            }
            self.totals.commits += found - self.counts[thread as usize];
            self.counts[thread as usize] = found;
        }
        for entry in reader.range(table, &[], None).map_err(failed)? {
            entry.map_err(failed)?;
        }
        Ok(())
    }
}

/// Starts a child, and a thread that reads its reports.
fn start(mut command: Command) -> Result<(Child, JoinHandle<Vec<Report>>), String> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| format!("a process cannot be started: {error}"))?;
    let lines = BufReader::new(child.stdout.take().expect("it is piped"));
    let reader = std::thread::spawn(move || {
        let parse = |line: String| {
            // Other code in that process may print lines, too.
            let mut words = line.strip_prefix("committed ")?.split(' ').map(|word| word.parse::<u64>().ok());
            let mut next = || words.next().flatten();
            let (thread, number, sequence) = (next()?, next()?, next()?);
            (thread < u64::from(THREADS)).then(|| Report {
                thread: thread as u32,
                number,
                sequence,
                at: Instant::now(),
            })
        };
        lines.lines().map_while(Result::ok).filter_map(parse).collect()
    });
    Ok((child, reader))
}

fn kill(child: &mut Child) -> Result<(), String> {
    // A process that ended by itself has printed its error.
    if let Ok(Some(status)) = child.try_wait() {
        return Err(format!("the process has ended by itself: {status}"));
    }
    child
        .kill()
        .and_then(|()| child.wait())
        .map_err(|error| format!("a process cannot be killed: {error}"))?;
    Ok(())
}
