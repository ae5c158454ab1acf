//! Keeps the processor of a thread that commits alone from falling asleep while its log write is in flight.
//!
//! Where nothing else runs, a processor halts until the write's interrupt, and its way back is part of every commit, twice
//! where a write and a flush follow one another: a few microseconds on bare metal, tens of them in a virtual machine, whose
//! host gives the processor to others meanwhile. A thread that turns there without end keeps it from that. It has
//! the policy `SCHED_IDLE`: of this program's threads it runs last, and gives way at once; those of other control groups, the
//! kernel's workers too, may wait until it rests. It turns while such a write is in flight, where commits follow one
//! another closely and their writes are short; else it sleeps too. Whether that pays here is tried out.

mod limits;
mod trial;

use crate::options::KeepAwake;
use pagestore_counters::monotonic_ns;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use trial::Trial;

pub use trial::AwakeTrial;

/// Writes that lie further apart are no stream: to wake the thread that turns would be a larger part of a commit than what
/// it saves.
const APART_MAX_NS: u64 = 1_000_000;
/// It turns until the write is done, at most so long …
const TURNS_NS: u64 = 1_000_000;
/// … and so long after it: where commits follow one another at once, it need not be woken for each.
const LINGERS_NS: u64 = 50_000;
/// Of a write that takes longer than this, waking up is no part worth a processor's time.
const WRITE_MAX_NS: u64 = 500_000;
/// How often it turns between two looks at the clock: a microsecond or a few.
const TURNS_AT_ONCE: usize = 64;

/// See the module. One thread writes at a time, or two.
#[derive(Default)]
pub(crate) struct Awake {
    /// `None`: it is always worth it.
    trial: Option<Mutex<Trial>>,
    /// Who waits sleeps there.
    processor: AtomicU32,
    /// It turns until then, on the monotonic clock.
    until: AtomicU64,
    /// When the last write began, and what it took.
    began: AtomicU64,
    took: AtomicU64,
    thread: OnceLock<Thread>,
    /// Of the kernel; 0 before it has begun, and after its end.
    id: AtomicI32,
    is_asleep: AtomicBool,
    is_ending: AtomicBool,
}

/// Whether a write that begins now is one of a stream in which it is worth it.
fn is_worth_it(now: u64, began_before: u64, took_before: u64) -> bool {
    now.saturating_sub(began_before) < APART_MAX_NS && took_before < WRITE_MAX_NS
}

/// A write that began, and whether a trial counts it.
pub(crate) struct Begun {
    at: u64,
    is_counted: bool,
}

impl Awake {
    /// `None` where it is not to be done.
    pub(crate) fn new(keep: KeepAwake) -> Option<Self> {
        match keep {
            KeepAwake::Never => None,
            KeepAwake::Auto if limits::found() => None,
            KeepAwake::Auto => Some(Self { trial: Some(Mutex::default()), ..Self::default() }),
            KeepAwake::Always => Some(Self::default()),
        }
    }

    /// What the last trial found.
    pub(crate) fn found(&self) -> Option<AwakeTrial> {
        lock(self.trial.as_ref()?).last()
    }

    /// A write begins on this processor, now, and its thread will wait for it.
    pub(crate) fn begins(&self, now: u64) -> Begun {
        let before = self.began.swap(now, Relaxed);
        let is_worth_it = is_worth_it(now, before, self.took.load(Relaxed));
        let is_tried = is_worth_it && self.trial.as_ref().is_none_or(|trial| lock(trial).is_awake());
        if is_tried {
            self.turn(now);
        }
        Begun { at: now, is_counted: is_worth_it }
    }

    /// Has its thread turn.
    fn turn(&self, now: u64) {
        self.processor.store(rustix::thread::sched_getcpu() as u32, Relaxed);
        self.until.store(now + TURNS_NS, SeqCst);
        if self.is_asleep.load(SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// The write is done, now.
    pub(crate) fn ended(&self, begun: &Begun, now: u64) {
        let took = now - begun.at;
        self.took.store(took, Relaxed);
        if let Some(trial) = self.trial.as_ref().filter(|_| begun.is_counted) {
            lock(trial).note(took);
        }
        // Where it does not turn, it does not begin to: that takes a call.
        self.until.fetch_min(now + LINGERS_NS, SeqCst);
    }

    /// What its thread does, until `end`.
    pub(crate) fn run(&self) {
        let _ = self.thread.set(std::thread::current());
        // With any other policy it would take from others what it is to keep for them.
        if !has_lowest_priority() {
            return;
        }
        self.id.store(rustix::thread::gettid().as_raw_nonzero().get(), SeqCst);
        let mut processor = None;
        while !self.is_ending.load(SeqCst) {
            let wanted = self.processor.load(Relaxed);
            if processor != Some(wanted) && self.until.load(Relaxed) > 0 {
                // Where it may not be there, it turns where it is: that is of no use and no harm.
                let _ = rustix::thread::sched_setaffinity(None, &only(wanted as usize));
                processor = Some(wanted);
            }
            (0..TURNS_AT_ONCE).for_each(|_| std::hint::spin_loop());
            if monotonic_ns() >= self.until.load(SeqCst) {
                self.is_asleep.store(true, SeqCst);
                if monotonic_ns() >= self.until.load(SeqCst) && !self.is_ending.load(SeqCst) {
                    std::thread::park();
                }
                self.is_asleep.store(false, SeqCst);
            }
        }
        self.id.store(0, SeqCst);
    }

    /// Ends its thread. It ends soon if any processor has time for it.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, SeqCst);
        let id = self.id.load(SeqCst);
        if let Some(id) = rustix::thread::Pid::from_raw(id) {
            // Not only the one where it was of use.
            let _ = rustix::thread::sched_setaffinity(Some(id), &all());
        }
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

fn lock(trial: &Mutex<Trial>) -> std::sync::MutexGuard<'_, Trial> {
    trial.lock().expect("no thread panics with it locked")
}

fn all() -> rustix::thread::CpuSet {
    let mut set = rustix::thread::CpuSet::new();
    (0..rustix::thread::CpuSet::MAX_CPU).for_each(|processor| set.set(processor));
    set
}

fn only(processor: usize) -> rustix::thread::CpuSet {
    let mut set = rustix::thread::CpuSet::new();
    if processor < rustix::thread::CpuSet::MAX_CPU {
        set.set(processor);
    }
    set
}

/// Takes the policy of what runs only where nothing else does; tells whether that is granted, which needs no privilege.
fn has_lowest_priority() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: of this thread, with parameters that outlive the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn it_is_worth_it_in_a_stream_of_short_writes() {
        let at = 10_000_000;
        assert!(is_worth_it(at, at - 100_000, 90_000));
        assert!(!is_worth_it(at, at - 2_000_000, 90_000), "commits lie apart");
        assert!(!is_worth_it(at, at - 900_000, 800_000), "the device takes its time");
        assert!(!is_worth_it(at, 0, 0), "the first of all");
    }

    /// Processor time of a thread of this process, in clock ticks, and the policy it has.
    fn time_and_policy(thread: i32) -> (u64, u64) {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // Fields 14, 15 and 41, the first of these being 3: proc_pid_stat(5).
        let field = |number: usize| fields[number - 3].parse::<u64>().unwrap();
        (field(14) + field(15), field(41))
    }

    /// Ends it, also where an assertion fails: else the thread is waited for without end.
    struct Ends<'a>(&'a Awake);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.end();
        }
    }

    #[test]
    fn it_turns_while_writes_follow_one_another_and_sleeps_after_them() {
        let awake = Awake::default();
        let number = AtomicU32::new(0);
        let begun = Instant::now();
        let in_time = || assert!(begun.elapsed() < Duration::from_secs(120), "not in two minutes");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                number.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, SeqCst);
                awake.run();
            });
            let _ends = Ends(&awake);
            let falls_asleep = || {
                while awake.thread.get().is_none() || !awake.is_asleep.load(SeqCst) {
                    in_time();
                    std::thread::yield_now();
                }
            };
            falls_asleep();
            let thread = number.load(SeqCst) as i32;
            let (before, policy) = time_and_policy(thread);
            assert_eq!(policy, libc::SCHED_IDLE as u64);
            // As from one commit to the next: asleep here, so that this processor is free for it. On a machine with much
            // else to do it gets a three hundredth.
            while time_and_policy(thread).0 < before + 2 {
                in_time();
                let began = monotonic_ns();
                let begun = awake.begins(began);
                std::thread::sleep(Duration::from_micros(100));
                awake.ended(&begun, began + 100_000);
            }
            falls_asleep();
        });
    }
}
