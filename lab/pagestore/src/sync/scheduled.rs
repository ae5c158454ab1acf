//! The standard library's locks, threads and atomics, unless a schedule runs on this thread. Then all threads are
//! Shuttle's, which run on this one, and waiting for a lock means letting other threads run.
//!
//! Three details decide whether schedules find bugs. If the next thread is chosen at random at every step, no
//! thread falls far behind; so half of the schedules use priorities (Burckhardt et al. 2010), and in all of them a
//! thread is delayed occasionally at any point. With priorities a thread that yields gets the lowest priority; so
//! threads yield only there, and where they are blocked. And Shuttle's own `park` may return spuriously, which
//! hides a missing wake-up; the one here does not.

use super::Classes;
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{LockResult, MutexGuard, TryLockError, TryLockResult};

thread_local! {
    static SCHEDULED: Cell<bool> = const { Cell::new(false) };
}

/// One more than the number of priority changes in a schedule with priorities.
const DEPTH: usize = 4;
/// The longest delay, in steps of the thread.
const DELAY_STEPS_MAX: u32 = 100;
/// A thread is delayed at one of this many points.
const DELAY_ONCE_IN: u32 = 80;

/// Runs `test` under this many schedules, half of them random and half with priorities. Shuttle prints a failing
/// schedule so that it can be replayed.
pub(crate) fn check(seed: u64, schedules: usize, test: impl Fn() + Send + Sync + Clone + 'static) {
    struct EndSchedule;
    impl Drop for EndSchedule {
        fn drop(&mut self) {
            SCHEDULED.set(false);
        }
    }
    fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
        let mut config = shuttle::Config::new();
        // The default of 32 KiB is too small for opening a store.
        config.stack_size = 1 << 20;
        shuttle::Runner::new(scheduler, config).run(test);
    }
    let _end = EndSchedule;
    SCHEDULED.set(true);
    let half = schedules.div_ceil(2);
    run(RandomScheduler::new_from_seed(seed, half), test.clone());
    run(PctScheduler::new_from_seed(seed, DEPTH, half), test);
}

/// Runs `action` without switching threads: it belongs to the test itself, not to the tested code.
pub(crate) fn unscheduled<T>(action: impl FnOnce() -> T) -> T {
    let before = SCHEDULED.replace(false);
    let result = action();
    SCHEDULED.set(before);
    result
}

/// A point where the schedule may switch to another thread, occasionally for long.
pub(crate) fn maybe_switch() {
    delay_once_in(DELAY_ONCE_IN);
}

/// As `maybe_switch`, for operations that take long.
pub(crate) fn yield_in_schedule() {
    delay_once_in(4);
}

fn delay_once_in(times: u32) {
    if SCHEDULED.get() {
        let mut chance = shuttle::rand::thread_rng();
        if chance.gen_ratio(1, times) {
            // Long enough for whole commits of other threads, or only a few steps.
            let most = if chance.gen_bool(0.5) { DELAY_STEPS_MAX } else { 4 };
            (0..chance.gen_range(1..most)).for_each(|_| shuttle::thread::yield_now());
        }
        // Only a switch: a schedule has no clock.
        shuttle::thread::sleep(std::time::Duration::ZERO);
    }
}

#[derive(Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        if !SCHEDULED.get() {
            return self.0.lock();
        }
        maybe_switch();
        loop {
            match self.0.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
                Err(TryLockError::WouldBlock) => shuttle::thread::yield_now(),
            }
        }
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        maybe_switch();
        self.0.try_lock()
    }
}

#[derive(Debug)]
pub(crate) struct AtomicU64(std::sync::atomic::AtomicU64);

impl AtomicU64 {
    pub(crate) const fn new(value: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        maybe_switch();
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        maybe_switch();
        self.0.store(value, order);
    }

    pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        maybe_switch();
        self.0.fetch_add(value, order)
    }

    pub(crate) fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        maybe_switch();
        self.0.fetch_sub(value, order)
    }

    pub(crate) fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
        maybe_switch();
        self.0.fetch_max(value, order)
    }
}

#[derive(Default)]
pub(crate) struct EventCount {
    real: super::event_count::EventCount,
    /// The number of events, and the sleeping threads with their classes. No switch happens while this is locked.
    scheduled: std::sync::Mutex<(u32, Vec<(Classes, thread::Thread)>)>,
}

impl EventCount {
    pub(crate) fn key(&self) -> u32 {
        if !SCHEDULED.get() {
            return self.real.key();
        }
        maybe_switch();
        self.scheduled.lock().expect("nothing panics with it").0
    }

    pub(crate) fn wait(&self, key: u32, number: u64) {
        if !SCHEDULED.get() {
            return self.real.wait(key, number);
        }
        maybe_switch();
        let me = thread::current();
        {
            let mut scheduled = self.scheduled.lock().expect("nothing panics with it");
            if scheduled.0 != key {
                return;
            }
            scheduled.1.push((Classes::from_numbers([number]), me));
        }
        thread::park();
    }

    pub(crate) fn notify(&self, classes: Classes, at_most: u32) {
        if !SCHEDULED.get() {
            return self.real.notify(classes, at_most);
        }
        // The notifier holds no locks: others may run before any thread is woken.
        yield_in_schedule();
        let mut woken = Vec::new();
        {
            let mut scheduled = self.scheduled.lock().expect("nothing panics with it");
            scheduled.0 += 1;
            scheduled.1.retain(|(waiting, thread)| {
                let wakes = waiting.0 & classes.0 != 0 && woken.len() < at_most as usize;
                if wakes {
                    woken.push(thread.clone());
                }
                !wakes
            });
        }
        woken.iter().for_each(thread::Thread::unpark);
    }
}

/// See `sync::run_on_threads`.
pub(crate) fn run_on_threads<T: Send + 'static, E: Send + 'static>(
    threads: usize,
    work: impl Fn() -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    if threads <= 1 {
        return work().map(|done| vec![done]);
    }
    if !SCHEDULED.get() {
        return super::run_on_system_threads(threads, work);
    }
    // Sometimes fewer threads than requested. The current one only waits: Shuttle wakes it when one of its threads
    // ends, whatever else it waits for.
    let threads = shuttle::rand::thread_rng().gen_range(1..=threads);
    shuttle::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("none of them panics")).collect()
    })
}

/// See `sync::spawn`.
pub(crate) enum JoinHandle {
    Std(std::thread::JoinHandle<()>),
    Scheduled(shuttle::thread::JoinHandle<()>),
}

impl JoinHandle {
    pub(crate) fn join(self) {
        let _ = match self {
            Self::Std(thread) => thread.join(),
            Self::Scheduled(thread) => thread.join(),
        };
    }
}

/// See `sync::spawn`. Sometimes no thread is available.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle> {
    if !SCHEDULED.get() {
        return std::thread::Builder::new().name(name.into()).spawn(work).map(JoinHandle::Std);
    }
    if shuttle::rand::thread_rng().gen_ratio(1, 8) {
        return Err(std::io::ErrorKind::WouldBlock.into());
    }
    Ok(JoinHandle::Scheduled(shuttle::thread::spawn(work)))
}

pub(crate) fn pause(time: std::time::Duration) {
    if SCHEDULED.get() { shuttle::thread::yield_now() } else { std::thread::sleep(time) }
}

pub(crate) mod thread {
    use super::SCHEDULED;
    use std::sync::Arc;

    #[derive(Clone)]
    pub(crate) enum Thread {
        Std(std::thread::Thread),
        Scheduled(Arc<Token>),
    }

    /// Set by `unpark`, consumed by `park`.
    #[derive(Default)]
    pub(crate) struct Token {
        given: shuttle::sync::Mutex<bool>,
        changed: shuttle::sync::Condvar,
    }

    shuttle::thread_local! {
        static TOKEN: Arc<Token> = Arc::default();
    }

    impl Thread {
        pub(crate) fn unpark(&self) {
            match self {
                Self::Std(thread) => thread.unpark(),
                Self::Scheduled(token) => {
                    *token.given.lock().expect("nothing panics with it") = true;
                    token.changed.notify_one();
                }
            }
        }
    }

    pub(crate) fn current() -> Thread {
        if SCHEDULED.get() {
            Thread::Scheduled(TOKEN.with(Arc::clone))
        } else {
            Thread::Std(std::thread::current())
        }
    }

    /// A number for the current thread of the schedule, if it is one.
    pub(crate) fn scheduled_number() -> Option<usize> {
        SCHEDULED.get().then(|| TOKEN.with(|token| Arc::as_ptr(token).addr()))
    }

    pub(crate) fn park() {
        if SCHEDULED.get() {
            let token = TOKEN.with(Arc::clone);
            let mut given = token.given.lock().expect("nothing panics with it");
            while !*given {
                given = token.changed.wait(given).expect("nothing panics with it");
            }
            *given = false;
        } else {
            std::thread::park();
        }
    }

    pub(crate) fn yield_now() {
        if SCHEDULED.get() { shuttle::thread::yield_now() } else { std::thread::yield_now() }
    }
}
