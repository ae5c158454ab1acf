//! Locks, threads and atomics: those of the standard library. In this crate's tests a test may run under a
//! schedule; then Shuttle switches between threads wherever they lock, wait, do I/O or use one of these atomics.

use std::thread::{Builder, scope};

#[cfg(not(test))]
pub(crate) use std::{
    sync::{Mutex, atomic::AtomicU64},
    thread,
};

/// Runs `work` on this many threads, including the current one; on fewer if the system refuses to start more. Waits
/// for all of them. Returns their results, or the first error.
pub(crate) fn run_on_system_threads<T: Send, E: Send>(
    threads: usize,
    work: impl Fn() -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    scope(|scope| {
        let begin = |_| Builder::new().spawn_scoped(scope, &work).ok();
        let others: Vec<_> = (1..threads).map_while(begin).collect();
        let first = work();
        let others = others.into_iter().map(|thread| thread.join().expect("none of them panics"));
        // All threads have ended before the first error is returned.
        let ended: Vec<_> = std::iter::once(first).chain(others).collect();
        ended.into_iter().collect()
    })
}

/// A thread that `spawn` has started.
#[cfg(not(test))]
pub(crate) struct JoinHandle(thread::JoinHandle<()>);

#[cfg(not(test))]
impl JoinHandle {
    /// Waits until it has ended; also if it has panicked.
    pub(crate) fn join(self) {
        let _ = self.0.join();
    }
}

/// Starts a thread.
#[cfg(not(test))]
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle> {
    Builder::new().name(name.into()).spawn(work).map(JoinHandle)
}

#[cfg(not(test))]
pub(crate) use self::run_on_system_threads as run_on_threads;

/// Waits for this long; under a schedule, until other threads have run.
#[cfg(not(test))]
pub(crate) fn pause(time: std::time::Duration) {
    thread::sleep(time);
}

/// A number for the current thread: unique among live threads, and never 0.
pub(crate) fn thread_number() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    // All threads of a schedule run on one thread of the system.
    #[cfg(test)]
    if let Some(number) = thread::scheduled_number() {
        return number;
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// A point at which other threads may do whole commits before this one continues; a schedule makes them do so.
#[cfg(not(test))]
pub(crate) fn yield_in_schedule() {}

/// Takes a lock of the store.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with a lock of the store")
}

mod event_count;
pub(crate) use event_count::Classes;
#[cfg(not(test))]
pub(crate) use event_count::EventCount;

#[cfg(test)]
pub(crate) mod scheduled;
#[cfg(test)]
pub(crate) use scheduled::{
    AtomicU64, EventCount, JoinHandle, Mutex, pause, run_on_threads, spawn, thread, yield_in_schedule,
};
