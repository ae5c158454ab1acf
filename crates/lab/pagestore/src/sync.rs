//! What threads exclude each other and wait with: the standard library's. In this crate's tests a test may choose the
//! schedule, and then Shuttle switches between threads wherever they take a lock, wait, do I/O or use one of these
//! atomics.

#[cfg(not(test))]
pub(crate) use std::{
    sync::{Mutex, atomic::AtomicU64},
    thread,
};

/// Has so many threads do the same, this one among them; fewer, where the system has no more. Waits for them all. Their
/// results, or the first error.
#[cfg(not(test))]
pub(crate) fn together<T: Send, E: Send>(
    threads: usize,
    work: impl Fn() -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    thread::scope(|scope| {
        let begin = |_| thread::Builder::new().spawn_scoped(scope, &work).ok();
        let others: Vec<_> = (1..threads).map_while(begin).collect();
        let own = work();
        let others = others.into_iter().map(|thread| thread.join().expect("none of them panics"));
        // All of them have ended before the first error is told.
        let ended: Vec<_> = std::iter::once(own).chain(others).collect();
        ended.into_iter().collect()
    })
}

/// Which thread this is: no other one that lives has this number, and none has 0.
pub(crate) fn thread_number() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    // All threads of a schedule are on this one.
    #[cfg(test)]
    if let Some(number) = thread::scheduled_number() {
        return number;
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// A place at which others may do whole commits before this thread goes on; schedules have them do so.
#[cfg(not(test))]
pub(crate) fn linger() {}

mod event_count;
pub(crate) use event_count::Classes;
#[cfg(not(test))]
pub(crate) use event_count::EventCount;

#[cfg(test)]
pub(crate) mod scheduled;
#[cfg(test)]
pub(crate) use scheduled::{AtomicU64, EventCount, Mutex, linger, thread, together};
