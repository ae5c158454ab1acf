//! Keeps the processor of a thread that commits alone from going idle while its log write is in flight.
//!
//! When nothing else runs, the processor halts until the interrupt of the write, and waking it up is part of every
//! commit; twice where a write and a flush follow one another. That takes a few microseconds on bare metal and tens
//! of them in a virtual machine, whose host gives the processor to others meanwhile. A spinning thread prevents it.
//! Its scheduling policy is `SCHED_IDLE`: among the threads of this program it runs last and is preempted at once;
//! threads of other control groups, and of the kernel, may have to wait until it stops. It spins while such a write
//! is in flight, if commits follow one another closely and their writes are short; otherwise it is parked. Whether
//! that pays on this machine is measured: see `trial`.

mod limits;
mod trial;

use crate::options::KeepAwake;
use pagestore_counters::monotonic_ns;
use rustix::thread::CpuSet;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use trial::Trial;

pub use trial::AwakeTrial;

/// Writes further apart than this are no stream: unparking the thread for each would cost a larger part of the
/// commit than spinning saves.
const WRITE_GAP_NS_MAX: u64 = 1_000_000;
/// The longest time that it spins for one write.
const SPIN_NS_MAX: u64 = 1_000_000;
/// It goes on spinning this long after a write, so that it need not be unparked for the next if that follows at
/// once.
const SPIN_AFTER_WRITE_NS: u64 = 50_000;
/// If a write takes longer than this, the wake-up is too small a part of it to be worth processor time.
const WRITE_NS_MAX: u64 = 500_000;
/// Spins between two reads of the clock: one or a few microseconds.
const SPINS_PER_CLOCK_READ: usize = 64;

/// See the module. One thread writes at a time, or two.
#[derive(Default)]
pub(crate) struct IdleGuard {
    /// `None`: spin in every stream of writes, without a trial.
    trial: Option<Mutex<Trial>>,
    /// The processor on which the writing thread waits.
    processor: AtomicU32,
    /// The thread spins until this time on the monotonic clock.
    spin_until: AtomicU64,
    /// When the last write began, and how long it took.
    write_began: AtomicU64,
    write_took: AtomicU64,
    thread: OnceLock<Thread>,
    /// The kernel's thread id; 0 before the thread has begun and after it has ended.
    thread_id: AtomicI32,
    is_parked: AtomicBool,
    is_ending: AtomicBool,
}

/// Whether a write that begins now belongs to a stream of short writes.
fn is_worthwhile(now: u64, began_before: u64, took_before: u64) -> bool {
    now.saturating_sub(began_before) < WRITE_GAP_NS_MAX && took_before < WRITE_NS_MAX
}

/// A write that began, and whether the trial counts it.
pub(crate) struct GuardedWrite {
    began_at: u64,
    is_counted: bool,
}

impl IdleGuard {
    /// `None` if the processor is not to be kept from idling.
    pub(crate) fn new(keep: KeepAwake) -> Option<Self> {
        match keep {
            KeepAwake::Never => None,
            KeepAwake::Auto if limits::is_cpu_time_scarce() => None,
            KeepAwake::Auto => Some(Self { trial: Some(Mutex::default()), ..Self::default() }),
            KeepAwake::Always => Some(Self::default()),
        }
    }

    /// The result of the last trial.
    pub(crate) fn last_trial(&self) -> Option<AwakeTrial> {
        lock(self.trial.as_ref()?).last()
    }

    /// A write begins now on this processor, and the calling thread will wait for it.
    pub(crate) fn write_begins(&self, now: u64) -> GuardedWrite {
        let before = self.write_began.swap(now, Relaxed);
        let is_worthwhile = is_worthwhile(now, before, self.write_took.load(Relaxed));
        let spins = is_worthwhile && self.trial.as_ref().is_none_or(|trial| lock(trial).spins());
        if spins {
            self.spin(now);
        }
        GuardedWrite { began_at: now, is_counted: is_worthwhile }
    }

    /// Makes the thread spin on the current processor.
    fn spin(&self, now: u64) {
        self.processor.store(rustix::thread::sched_getcpu() as u32, Relaxed);
        self.spin_until.store(now + SPIN_NS_MAX, SeqCst);
        if self.is_parked.load(SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// The write has completed.
    pub(crate) fn write_ended(&self, write: &GuardedWrite, now: u64) {
        let took = now - write.began_at;
        self.write_took.store(took, Relaxed);
        if let Some(trial) = self.trial.as_ref().filter(|_| write.is_counted) {
            lock(trial).record(took);
        }
        // Only shortens the time: if the thread is parked it stays so, since unparking takes a system call.
        self.spin_until.fetch_min(now + SPIN_AFTER_WRITE_NS, SeqCst);
    }

    /// The body of the thread; returns after `end`.
    pub(crate) fn run(&self) {
        let _ = self.thread.set(std::thread::current());
        // With any other policy it would take processor time from the threads it is to serve.
        if !set_idle_policy() {
            return;
        }
        self.thread_id.store(rustix::thread::gettid().as_raw_nonzero().get(), SeqCst);
        let mut processor = None;
        while !self.is_ending.load(SeqCst) {
            let wanted = self.processor.load(Relaxed);
            if processor != Some(wanted) && self.spin_until.load(Relaxed) > 0 {
                // If it may not run there it spins where it is, which is useless but harmless.
                let _ = rustix::thread::sched_setaffinity(None, &processors([wanted as usize]));
                processor = Some(wanted);
            }
            (0..SPINS_PER_CLOCK_READ).for_each(|_| std::hint::spin_loop());
            if monotonic_ns() >= self.spin_until.load(SeqCst) {
                self.is_parked.store(true, SeqCst);
                if monotonic_ns() >= self.spin_until.load(SeqCst) && !self.is_ending.load(SeqCst) {
                    std::thread::park();
                }
                self.is_parked.store(false, SeqCst);
            }
        }
        self.thread_id.store(0, SeqCst);
    }

    /// Ends the thread, as soon as any processor has time for it.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, SeqCst);
        let id = self.thread_id.load(SeqCst);
        if let Some(id) = rustix::thread::Pid::from_raw(id) {
            // Let it run on all processors, not only the one it spun on.
            let _ = rustix::thread::sched_setaffinity(Some(id), &processors(0..CpuSet::MAX_CPU));
        }
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

fn lock(trial: &Mutex<Trial>) -> std::sync::MutexGuard<'_, Trial> {
    trial.lock().expect("no thread panics with it locked")
}

/// These processors, as far as a set can hold them.
fn processors(wanted: impl IntoIterator<Item = usize>) -> CpuSet {
    let mut set = CpuSet::new();
    wanted.into_iter().filter(|processor| *processor < CpuSet::MAX_CPU).for_each(|own| set.set(own));
    set
}

/// Sets the policy of threads that run only when nothing else does; returns whether that was granted. It needs no
/// privilege.
fn set_idle_policy() -> bool {
    // The kernel's `struct sched_param`. Not by the C library: musl's function only says that it is not supported.
    let priority: libc::c_int = 0;
    // SAFETY: changes this thread only; the parameters outlive the call.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const priority) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn it_is_worthwhile_in_a_stream_of_short_writes() {
        let at = 10_000_000;
        assert!(is_worthwhile(at, at - 100_000, 90_000));
        assert!(!is_worthwhile(at, at - 2_000_000, 90_000), "commits lie apart");
        assert!(!is_worthwhile(at, at - 900_000, 800_000), "the device takes its time");
        assert!(!is_worthwhile(at, 0, 0), "the first of all");
    }

    /// Processor time of a thread of this process, in clock ticks, and its scheduling policy.
    fn time_and_policy(thread: i32) -> (u64, u64) {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // Fields 14, 15 and 41 of proc_pid_stat(5); the first after the name is field 3.
        let field = |number: usize| fields[number - 3].parse::<u64>().unwrap();
        (field(14) + field(15), field(41))
    }

    /// Ends the thread, also when an assertion fails; otherwise the scope would wait for it forever.
    struct EndOnDrop<'a>(&'a IdleGuard);

    impl Drop for EndOnDrop<'_> {
        fn drop(&mut self) {
            self.0.end();
        }
    }

    #[test]
    fn it_spins_during_a_stream_of_writes_and_parks_after_it() {
        let awake = IdleGuard::default();
        let number = AtomicU32::new(0);
        let begun = Instant::now();
        let in_time = || assert!(begun.elapsed() < Duration::from_secs(120), "not in two minutes");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                number.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, SeqCst);
                awake.run();
            });
            let _end = EndOnDrop(&awake);
            let wait_until_parked = || {
                while awake.thread.get().is_none() || !awake.is_parked.load(SeqCst) {
                    in_time();
                    std::thread::yield_now();
                }
            };
            wait_until_parked();
            let thread = number.load(SeqCst) as i32;
            let (before, policy) = time_and_policy(thread);
            assert_eq!(policy, libc::SCHED_IDLE as u64);
            // As between two commits: this thread sleeps, so that its processor is free for the spinning thread. On
            // a busy machine that gets a three-hundredth of the time.
            while time_and_policy(thread).0 < before + 2 {
                in_time();
                let began = monotonic_ns();
                let begun = awake.write_begins(began);
                std::thread::sleep(Duration::from_micros(100));
                awake.write_ended(&begun, began + 100_000);
            }
            wait_until_parked();
        });
    }
}
