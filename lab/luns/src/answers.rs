//! Answers to I/Os of a served disk, each given when the model says that the I/O is done.

use crate::model::{DiskModel, ModelledDisk};
use fuser::{ReplyData, ReplyEmpty, ReplyWrite};
use std::collections::BTreeMap;
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
    /// By time in nanoseconds; answers of the same time in the order of their I/Os.
    due: BTreeMap<(u64, u64), Answer>,
    sequence: u64,
}

impl Answers {
    pub fn new(model: DiskModel) -> Answers {
        Answers {
            start: Instant::now(),
            pending: Mutex::new(Pending {
                disk: ModelledDisk::new(model),
                due: BTreeMap::new(),
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
        let is_first = pending.due.first_key_value().is_none_or(|((first_ns, _), _)| *first_ns > at_ns);
        pending.due.insert((at_ns, sequence), answer);
        drop(pending);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Gives each answer at its time; never returns.
    pub fn give_in_time(&self) {
        let mut pending = self.pending();
        loop {
            let Some(first) = pending.due.first_entry() else {
                pending = self.changed.wait(pending).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (due_ns, _) = *first.key();
            let left = Duration::from_nanos(due_ns.saturating_sub(self.now_ns()));
            if left > SPIN {
                let woken = self.changed.wait_timeout(pending, left - SPIN);
                pending = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let answer = first.remove();
            drop(pending);
            while self.now_ns() < due_ns {
                std::hint::spin_loop();
            }
            self.give(answer);
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
