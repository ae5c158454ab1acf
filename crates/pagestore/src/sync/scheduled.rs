//! The standard library's locks and threads, unless a schedule runs on this thread: then all its threads are
//! Shuttle's, which live on this one, and a lock that is taken is waited for by letting the others go on.

use shuttle::scheduler::RandomScheduler;
use std::cell::Cell;
use std::sync::{LockResult, MutexGuard, TryLockError, TryLockResult};

thread_local! {
    static SCHEDULED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `test` under so many schedules. One that fails is printed as Shuttle does, to be replayed by it.
pub(crate) fn check(seed: u64, schedules: usize, test: impl Fn() + Send + Sync + 'static) {
    struct Off;
    impl Drop for Off {
        fn drop(&mut self) {
            SCHEDULED.set(false);
        }
    }
    let _off = Off;
    SCHEDULED.set(true);
    let scheduler = RandomScheduler::new_from_seed(seed, schedules);
    let mut config = shuttle::Config::new();
    // Its own 32 KiB are too few for a store that is opened.
    config.stack_size = 1 << 20;
    shuttle::Runner::new(scheduler, config).run(test);
}

/// Does this without giving way: it is the test's own looking, and no part of what is tested.
pub(crate) fn at_once<T>(look: impl FnOnce() -> T) -> T {
    let before = SCHEDULED.replace(false);
    let seen = look();
    SCHEDULED.set(before);
    seen
}

/// A place where the schedule may go on with another thread.
pub(crate) fn give_way() {
    if SCHEDULED.get() {
        shuttle::thread::yield_now();
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
        loop {
            shuttle::thread::yield_now();
            match self.0.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        give_way();
        self.0.try_lock()
    }
}

pub(crate) mod thread {
    use super::SCHEDULED;

    #[derive(Clone)]
    pub(crate) enum Thread {
        Std(std::thread::Thread),
        Scheduled(shuttle::thread::Thread),
    }

    #[derive(PartialEq, Eq)]
    pub(crate) enum ThreadId {
        Std(std::thread::ThreadId),
        Scheduled(shuttle::thread::ThreadId),
    }

    impl Thread {
        pub(crate) fn id(&self) -> ThreadId {
            match self {
                Self::Std(thread) => ThreadId::Std(thread.id()),
                Self::Scheduled(thread) => ThreadId::Scheduled(thread.id()),
            }
        }

        pub(crate) fn unpark(&self) {
            match self {
                Self::Std(thread) => thread.unpark(),
                Self::Scheduled(thread) => thread.unpark(),
            }
        }
    }

    pub(crate) fn current() -> Thread {
        if SCHEDULED.get() {
            Thread::Scheduled(shuttle::thread::current())
        } else {
            Thread::Std(std::thread::current())
        }
    }

    pub(crate) fn park() {
        if SCHEDULED.get() { shuttle::thread::park() } else { std::thread::park() }
    }

    pub(crate) fn yield_now() {
        if SCHEDULED.get() { shuttle::thread::yield_now() } else { std::thread::yield_now() }
    }
}
