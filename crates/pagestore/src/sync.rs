//! What threads exclude each other and wait with: the standard library's. In this crate's tests a test may choose the
//! schedule, and then Shuttle switches between threads wherever they take a lock, wait, do I/O or use one of these
//! atomics.

#[cfg(not(test))]
pub(crate) use std::{
    sync::{Mutex, atomic::AtomicU64},
    thread,
};

#[cfg(test)]
pub(crate) mod scheduled;
#[cfg(test)]
pub(crate) use scheduled::{AtomicU64, Mutex, thread};
