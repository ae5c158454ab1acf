//! Answers to I/Os of a served disk, each given when the model says that the I/O is done.

use crate::model::{DiskModel, ModelledDisk};
use fuser::{ReplyData, ReplyEmpty, ReplyWrite};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The thread spins for the last of a wait: a timer fires some microseconds late.
const SPIN: Duration = Duration::from_micros(50);
/// Buffers kept for further reads.
const SPARE_BUFFERS_MAX: usize = 256;

/// A FUSE reply, ready to be sent.
pub(crate) enum Answer {
    Read(ReplyData, Vec<u8>),
    Write(ReplyWrite, u32),
    Flush(ReplyEmpty),
}

/// Answers in order of their time.
pub(crate) struct Answers {
    start: Instant,
    pending: Mutex<Pending>,
    /// The first pending answer changed.
    changed: Condvar,
    spare_buffers: Mutex<Vec<Vec<u8>>>,
}

struct Pending {
    disk: ModelledDisk,
    due: BinaryHeap<Due>,
    sequence: u64,
}

struct Due {
    at_ns: u64,
    /// Answers of the same time are given in the order of their I/Os.
    sequence: u64,
    answer: Answer,
}

/// The earliest is the greatest: the heap's first.
impl Ord for Due {
    fn cmp(&self, other: &Due) -> Ordering {
        (other.at_ns, other.sequence).cmp(&(self.at_ns, self.sequence))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl Answers {
    pub fn new(model: DiskModel) -> Answers {
        Answers {
            start: Instant::now(),
            pending: Mutex::new(Pending {
                disk: ModelledDisk::new(model),
                due: BinaryHeap::new(),
                sequence: 0,
            }),
            changed: Condvar::new(),
            spare_buffers: Mutex::new(Vec::new()),
        }
    }

    /// Nanoseconds since the disk was set up.
    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// An empty buffer for a read.
    pub fn buffer(&self) -> Vec<u8> {
        self.spare_buffers().pop().unwrap_or_default()
    }

    /// Keeps the answer to an I/O that arrived at `arrived_ns` until `done_ns` of that time.
    pub fn keep(&self, arrived_ns: u64, answer: Answer, done_ns: impl FnOnce(&mut ModelledDisk, u64) -> u64) {
        let mut pending = self.pending();
        let at_ns = done_ns(&mut pending.disk, arrived_ns);
        pending.sequence += 1;
        let sequence = pending.sequence;
        let is_first = pending.due.peek().is_none_or(|due| due.at_ns > at_ns);
        pending.due.push(Due { at_ns, sequence, answer });
        drop(pending);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Gives each answer at its time; never returns.
    pub fn give_in_time(&self) {
        let mut pending = self.pending();
        loop {
            let Some(first_ns) = pending.due.peek().map(|due| due.at_ns) else {
                pending = self.changed.wait(pending).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = Duration::from_nanos(first_ns.saturating_sub(self.now_ns()));
            if left > SPIN {
                let woken = self.changed.wait_timeout(pending, left - SPIN);
                pending = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let Some(due) = pending.due.pop() else { continue };
            drop(pending);
            while self.now_ns() < due.at_ns {
                std::hint::spin_loop();
            }
            self.give(due.answer);
            pending = self.pending();
        }
    }

    fn give(&self, answer: Answer) {
        match answer {
            Answer::Read(reply, data) => {
                reply.data(&data);
                let mut spare = self.spare_buffers();
                if spare.len() < SPARE_BUFFERS_MAX {
                    spare.push(data);
                }
            }
            Answer::Write(reply, bytes) => reply.written(bytes),
            Answer::Flush(reply) => reply.ok(),
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spare_buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare_buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
