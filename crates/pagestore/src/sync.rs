//! What threads exclude each other and wait with: the standard library's. In this crate's tests a test may choose the
//! schedule, and then Shuttle switches between threads wherever they take a lock, wait, do I/O or use one of these
//! atomics.

#[cfg(not(test))]
pub(crate) use std::{
    sync::{Mutex, atomic::AtomicU64},
    thread,
};

/// Has so many threads do the same, this one alone where one is enough; waits for them all. Their results, or the first
/// error.
#[cfg(not(test))]
pub(crate) fn together<T: Send, E: Send>(
    threads: usize,
    work: impl Fn() -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    if threads <= 1 {
        return work().map(|done| vec![done]);
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        // All of them have ended before the first error is told.
        threads.into_iter().map(|thread| thread.join().expect("none of them panics")).collect()
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

mod event_count;
pub(crate) use event_count::Classes;
#[cfg(not(test))]
pub(crate) use event_count::EventCount;

#[cfg(test)]
pub(crate) mod scheduled;
#[cfg(test)]
pub(crate) use scheduled::{AtomicU64, EventCount, Mutex, thread, together};
