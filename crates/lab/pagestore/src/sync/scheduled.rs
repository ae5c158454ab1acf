//! The standard library's locks, threads and atomics, unless a schedule runs on this thread: then all its threads are
//! Shuttle's, which live on this one, and a lock that is taken is waited for by letting the others go on.
//!
//! Three things decide whether a schedule finds anything. A thread that is chosen among others at every step is never
//! left behind for long: so half of the schedules go by priorities (Burckhardt et al. 2010), and in all of them a thread
//! is held up now and then, anywhere. With priorities a thread that yields goes behind all others: so it yields only
//! there, and where it cannot go on. And Shuttle's own `park` returns without being told, which hides that nobody
//! tells: here it does not.

use super::Classes;
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{LockResult, MutexGuard, TryLockError, TryLockResult};

thread_local! {
    static SCHEDULED: Cell<bool> = const { Cell::new(false) };
}

/// How often a thread is put behind all others in a schedule that goes by priorities, and one more.
const DEPTH: usize = 4;
/// The longest time that something lingers, in steps of its thread.
const LINGERS_MAX: u32 = 100;
/// At one of so many places a thread is held up.
const STALLS_ONCE_IN: u32 = 80;

/// Runs `test` under so many schedules, half of them by chance and half by priorities. One that fails is printed as
/// Shuttle does, to be replayed by it.
pub(crate) fn check(seed: u64, schedules: usize, test: impl Fn() + Send + Sync + Clone + 'static) {
    struct Off;
    impl Drop for Off {
        fn drop(&mut self) {
            SCHEDULED.set(false);
        }
    }
    fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
        let mut config = shuttle::Config::new();
        // Its own 32 KiB are too few for a store that is opened.
        config.stack_size = 1 << 20;
        shuttle::Runner::new(scheduler, config).run(test);
    }
    let _off = Off;
    SCHEDULED.set(true);
    let half = schedules.div_ceil(2);
    run(RandomScheduler::new_from_seed(seed, half), test.clone());
    run(PctScheduler::new_from_seed(seed, DEPTH, half), test);
}

/// Does this without giving way: it is the test's own looking, and no part of what is tested.
pub(crate) fn at_once<T>(look: impl FnOnce() -> T) -> T {
    let before = SCHEDULED.replace(false);
    let seen = look();
    SCHEDULED.set(before);
    seen
}

/// A place where the schedule may go on with another thread, now and then for long.
pub(crate) fn give_way() {
    linger_once_in(STALLS_ONCE_IN);
}

/// As `give_way`, for what takes its time.
pub(crate) fn yield_in_schedule() {
    linger_once_in(4);
}

fn linger_once_in(times: u32) {
    if SCHEDULED.get() {
        let mut chance = shuttle::rand::thread_rng();
        if chance.gen_ratio(1, times) {
            // For so long that others do whole commits meanwhile, or for a few steps.
            let most = if chance.gen_bool(0.5) { LINGERS_MAX } else { 4 };
            (0..chance.gen_range(1..most)).for_each(|_| shuttle::thread::yield_now());
        }
        // A switch, and nothing else: there is no time in a schedule.
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
        give_way();
        loop {
            match self.0.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
                Err(TryLockError::WouldBlock) => shuttle::thread::yield_now(),
            }
        }
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        give_way();
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
        give_way();
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        give_way();
        self.0.store(value, order);
    }

    pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        give_way();
        self.0.fetch_add(value, order)
    }

    pub(crate) fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        give_way();
        self.0.fetch_sub(value, order)
    }

    pub(crate) fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
        give_way();
        self.0.fetch_max(value, order)
    }
}

#[derive(Default)]
pub(crate) struct EventCount {
    real: super::event_count::EventCount,
    /// How often it was told, and who sleeps since when: nobody switches while this is locked.
    scheduled: std::sync::Mutex<(u32, Vec<(Classes, thread::Thread)>)>,
}

impl EventCount {
    pub(crate) fn key(&self) -> u32 {
        if !SCHEDULED.get() {
            return self.real.key();
        }
        give_way();
        self.scheduled.lock().expect("nothing panics with it").0
    }

    pub(crate) fn wait(&self, key: u32, number: u64) {
        if !SCHEDULED.get() {
            return self.real.wait(key, number);
        }
        give_way();
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
        // Whoever tells has let go of all locks: others go on before anybody is woken.
        yield_in_schedule();
        let mut woken = Vec::new();
        {
            let mut scheduled = self.scheduled.lock().expect("nothing panics with it");
            scheduled.0 += 1;
            scheduled.1.retain(|(own, thread)| {
                let wakes = own.0 & classes.0 != 0 && woken.len() < at_most as usize;
                if wakes {
                    woken.push(thread.clone());
                }
                !wakes
            });
        }
        woken.iter().for_each(thread::Thread::unpark);
    }
}

/// As of the module above.
pub(crate) fn run_on_threads<T: Send + 'static, E: Send + 'static>(
    threads: usize,
    work: impl Fn() -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    if threads <= 1 {
        return work().map(|done| vec![done]);
    }
    if !SCHEDULED.get() {
        return std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
            let own = work();
            let others = others.into_iter().map(|thread| thread.join().expect("none of them panics"));
            let ended: Vec<_> = std::iter::once(own).chain(others).collect();
            ended.into_iter().collect()
        });
    }
    // Now and then there are fewer. This one only waits: Shuttle wakes it when one that it has begun ends, whatever it
    // waits for itself.
    let threads = shuttle::rand::thread_rng().gen_range(1..=threads);
    shuttle::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("none of them panics")).collect()
    })
}

pub(crate) mod thread {
    use super::SCHEDULED;
    use std::sync::Arc;

    #[derive(Clone)]
    pub(crate) enum Thread {
        Std(std::thread::Thread),
        Scheduled(Arc<Token>),
    }

    /// What `unpark` gives and `park` takes.
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

    /// Which of a schedule's threads this is, if it is one.
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
