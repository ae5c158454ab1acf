//! Pages that are being set aside, and the thread that writes them to the scratch file.
//!
//! ```text
//! transaction ── push, submit ──▶ waiting ──▶ thread: checksum, one write a page ──▶ checksums ── settle ──▶ transaction
//! ```
//! The transaction keeps every page until `settle` has taken its checksum. Until then it reads the page from memory, and a
//! failed write loses nothing: `settle` returns the error, and `take_unwritten` the pages.

use crate::engine::cache::Page;
use crate::sync::{Classes, EventCount, JoinHandle, Mutex, lock, spawn};
use crate::types::PageNo;
use pagestore_disk::Scratch;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// A page in the queue.
pub(super) struct Queued {
    pub(super) page: PageNo,
    /// Its place in the scratch file, in pages.
    pub(super) place: u64,
    /// `None`: it was changed again.
    pub(super) content: Option<Page>,
}

/// A page that was written.
pub(super) struct Written {
    pub(super) queued: Queued,
    pub(super) crc: u32,
}

/// A write that is to be done.
struct Job {
    place: u64,
    /// `None`: it is left out.
    content: Option<Page>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    /// Of the pages that were written and not settled, in the order of the queue.
    crcs: Vec<u32>,
    /// The transaction sleeps until there are this many checksums; 0: it does not sleep.
    awaited: usize,
    error: Option<io::Error>,
    is_ended: bool,
}

/// State shared by the transaction and the thread.
struct Shared {
    scratch: Arc<dyn Scratch>,
    page_bytes: usize,
    jobs: Mutex<Jobs>,
    submitted: EventCount,
    written: EventCount,
}

/// See the module.
pub(super) struct WriteQueue {
    shared: Arc<Shared>,
    has_thread: bool,
    thread: Option<JoinHandle>,
    /// Pages that are not settled.
    queued: VecDeque<Queued>,
    /// The number of the first of them.
    first: u64,
    /// Pushed and not submitted.
    pushed: Vec<Job>,
    crcs: Vec<u32>,
}

impl WriteQueue {
    /// With a thread of its own, or without: then `submit` writes.
    pub(super) fn new(scratch: Arc<dyn Scratch>, page_bytes: usize, has_thread: bool) -> Self {
        let (jobs, submitted, written) = Default::default();
        Self {
            shared: Arc::new(Shared { scratch, page_bytes, jobs, submitted, written }),
            has_thread,
            thread: None,
            queued: VecDeque::new(),
            first: 0,
            pushed: Vec::new(),
            crcs: Vec::new(),
        }
    }

    /// Pages that are not settled.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    /// Reads a page that was written and settled.
    pub(super) fn read(&self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.shared.scratch.read(place * self.shared.page_bytes as u64, bytes)
    }

    /// Adds a page; returns its number.
    pub(super) fn push(&mut self, page: PageNo, place: u64, content: Page) -> u64 {
        self.pushed.push(Job { place, content: Some(content.clone()) });
        self.queued.push_back(Queued { page, place, content: Some(content) });
        self.first + self.queued.len() as u64 - 1
    }

    /// Gives the pages that were pushed to the thread.
    pub(super) fn submit(&mut self) {
        lock(&self.shared.jobs).waiting.extend(self.pushed.drain(..));
        if self.has_thread && self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            // Without it the pages are written here.
            self.thread = spawn("set aside", move || shared.run()).ok();
        }
        if self.thread.is_some() {
            self.shared.submitted.notify(Classes::ALL, 1);
        } else {
            self.shared.write_waiting();
        }
    }

    /// The content of the page with this number, unless it is settled.
    pub(super) fn content(&self, number: u64) -> Option<&Page> {
        let index = number.checked_sub(self.first)?;
        self.queued.get(index as usize)?.content.as_ref()
    }

    /// The page with this number need not be written any more.
    pub(super) fn cancel(&mut self, number: u64) {
        let Some(index) = number.checked_sub(self.first) else { return };
        self.queued[index as usize].content = None;
        let after = self.queued.len() - 1 - index as usize;
        let mut jobs = lock(&self.shared.jobs);
        let waiting = jobs.waiting.len();
        if after < waiting {
            jobs.waiting[waiting - 1 - after].content = None;
        }
    }

    /// Waits until at most `limit` pages are not written, and hands those that were written to `settled`.
    ///
    /// # Errors
    /// That of the first write that failed. The queue is then to be emptied by `take_unwritten`, and can be used again.
    pub(super) fn settle(&mut self, limit: usize, mut settled: impl FnMut(Written)) -> io::Result<()> {
        loop {
            let key = self.shared.written.key();
            let (error, is_short) = {
                let mut jobs = lock(&self.shared.jobs);
                std::mem::swap(&mut jobs.crcs, &mut self.crcs);
                let left = self.queued.len() - self.crcs.len();
                jobs.awaited = left.saturating_sub(limit);
                (jobs.error.take(), jobs.awaited == 0)
            };
            self.first += self.crcs.len() as u64;
            let written = self.queued.drain(..self.crcs.len());
            written.zip(self.crcs.drain(..)).for_each(|(queued, crc)| settled(Written { queued, crc }));
            if let Some(error) = error {
                self.end_thread();
                return Err(error);
            }
            if is_short {
                return Ok(());
            }
            self.shared.written.wait(key, 0);
        }
    }

    /// Takes all pages out of the queue; for use after an error.
    pub(super) fn take_unwritten(&mut self) -> impl Iterator<Item = Queued> {
        self.queued.drain(..)
    }

    /// Says whether the thread is to end, and has not ended yet.
    #[cfg(test)]
    pub(super) fn watch_end(&self) -> impl Fn() -> bool + Send + use<> {
        let shared = Arc::clone(&self.shared);
        move || lock(&shared.jobs).is_ended
    }

    fn end_thread(&mut self) {
        {
            let mut jobs = lock(&self.shared.jobs);
            jobs.waiting.clear();
            jobs.is_ended = true;
        }
        self.shared.submitted.notify(Classes::ALL, 1);
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
        lock(&self.shared.jobs).is_ended = false;
    }
}

impl Drop for WriteQueue {
    fn drop(&mut self) {
        self.end_thread();
    }
}

impl Shared {
    /// The thread: until the transaction ends or a write fails.
    fn run(&self) {
        /// The transaction must not wait for a thread that has panicked.
        struct FailsOnPanic<'a>(&'a Shared);
        impl Drop for FailsOnPanic<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.fail(io::Error::other("the thread that writes it has panicked"));
                }
            }
        }
        let _fails_on_panic = FailsOnPanic(self);
        loop {
            let key = self.submitted.key();
            if !self.write_waiting() {
                return;
            }
            self.submitted.wait(key, 0);
        }
    }

    /// Writes all that waits. Returns false after an error, and when the transaction has ended.
    fn write_waiting(&self) -> bool {
        let mut written = None;
        loop {
            let (job, is_ended) = self.next(written.take());
            let Some(job) = job else { return !is_ended };
            match self.write(&job) {
                Ok(crc) => written = Some(crc),
                Err(error) => {
                    self.fail(error);
                    return false;
                }
            }
        }
    }

    /// One write a page: the kernel caches what one write appends in one folio, up to 1 MiB large, and ext4 walks all blocks
    /// of a folio for each later write to a part of it, which took half of the time of setting a page aside.
    fn write(&self, job: &Job) -> io::Result<u32> {
        let Some(content) = &job.content else { return Ok(0) };
        self.scratch.write(job.place * self.page_bytes as u64, content)?;
        Ok(crc32c::crc32c(content))
    }

    /// Takes the checksum of what was written, and gives what is next; and whether the transaction has ended.
    fn next(&self, written: Option<u32>) -> (Option<Job>, bool) {
        let (next, wakes) = {
            let mut jobs = lock(&self.jobs);
            jobs.crcs.extend(written);
            let wakes = jobs.awaited > 0 && jobs.crcs.len() >= jobs.awaited;
            if wakes {
                jobs.awaited = 0;
            }
            ((jobs.waiting.pop_front(), jobs.is_ended), wakes)
        };
        if wakes {
            self.written.notify(Classes::ALL, 1);
        }
        next
    }

    fn fail(&self, error: io::Error) {
        {
            let mut jobs = lock(&self.jobs);
            jobs.waiting.clear();
            jobs.error = Some(error);
        }
        self.written.notify(Classes::ALL, 1);
    }
}
