//! The state of the log of a running store, on request: a reader increments `requested`; the store's thread for delayed
//! commits sees it within a tenth of a second, writes the state and sets `answered`. Without requests it costs nothing.

use crate::lsn::{Lsn, PageNo};
use crate::monotonic_ns;
use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::Duration;

/// The largest number of virtual log files that are listed; there may be more.
const VLFS_LISTED: usize = 1024;

/// A virtual log file of a running store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlfState {
    /// Its sequence number; 0: never used.
    pub vlf: u32,
    /// 0: reusable, 2: active.
    pub status: u8,
    /// 64 or 128, flipped at every use; 0: never used.
    pub parity: u32,
}

/// The proof that a checkpoint's pages are durable and that recovery begins at `redo`. Only `checkpoint` makes one,
/// after it has checked the completion of every write and of the sync and has written the control file that says so.
/// Nothing else makes a virtual log file reusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Recovery begins here; virtual log files that end before it are not needed.
    pub redo: Lsn,
    /// Pages whose writes were checked.
    pub pages: u64,
    /// The control file's generation that says so.
    pub generation: u64,
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} pages written and synced, redo from {} (control {})",
            self.pages, self.redo, self.generation
        )
    }
}

/// The log of a running store, and what holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogState {
    /// The time of this state, on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Recovery would begin here.
    pub redo: Lsn,
    /// The next record goes here.
    pub next: Lsn,
    /// The last durable record.
    pub durable: Lsn,
    /// The newest commit.
    pub last_sequence: u64,
    /// The newest durable one.
    pub durable_sequence: u64,
    /// Log that is not written yet, in bytes.
    pub waiting_bytes: u64,
    /// The transaction that has records in the log and has not ended: its number and its first record.
    pub active: Option<(u64, Lsn)>,
    /// Pages whose newest version is not in the data file.
    pub dirty_pages: u64,
    /// The one that has been dirty longest, and its first record.
    pub oldest_dirty_page: Option<(PageNo, Lsn)>,
    /// The certificate of the last checkpoint since the store was opened.
    pub last_certificate: Option<Certificate>,
    /// A checkpoint is running.
    pub checkpointing: bool,
    /// An I/O failed: nothing is written from then on.
    pub read_only: bool,
    /// The number of all virtual log files.
    pub vlfs_total: u64,
    /// The first of them, in the order of their slots.
    pub vlfs: Vec<VlfState>,
}

impl LogState {
    /// The time since then.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.at_ns))
    }
}

/// The fields of a `LogState` apart from the list, as words; `NONE` for an absent value.
const WORDS: usize = 18;
const NONE: u64 = u64::MAX;

/// The last state, under a sequence lock.
#[repr(C, align(64))]
pub struct StateBoard {
    pub(crate) requested: AtomicU64,
    answered: AtomicU64,
    /// Odd during a write.
    version: AtomicU64,
    words: [AtomicU64; WORDS],
    slots: [[AtomicU32; 2]; VLFS_LISTED],
}

impl StateBoard {
    /// Whether a reader waits for the state.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Relaxed) != self.answered.load(Relaxed)
    }

    /// Writes the state that `state` returns. One thread at a time may call it.
    pub fn answer(&self, state: impl FnOnce() -> LogState) {
        let requested = self.requested.load(Acquire);
        let mut state = state();
        state.at_ns = monotonic_ns();
        let version = self.version.load(Relaxed) | 1;
        self.version.store(version, Relaxed);
        fence(Release);
        for (to, from) in self.words.iter().zip(words(&state)) {
            to.store(from, Relaxed);
        }
        for ([vlf, status], from) in self.slots.iter().zip(&state.vlfs) {
            vlf.store(from.vlf, Relaxed);
            status.store(from.parity << 8 | u32::from(from.status), Relaxed);
        }
        self.version.store(version + 1, Release);
        self.answered.store(requested, Release);
    }

    /// The number that requests the state once it is written to `requested`.
    pub(crate) fn next_request(&self) -> u64 {
        self.requested.load(Acquire).wrapping_add(1)
    }

    pub(crate) fn is_answered(&self, request: u64) -> bool {
        self.answered.load(Acquire) >= request
    }

    /// The state written last; `None` during a write, or before the first.
    pub(crate) fn read(&self) -> Option<LogState> {
        let version = self.version.load(Acquire);
        let words = std::array::from_fn(|at| self.words[at].load(Relaxed));
        let mut state = from_words(&words);
        let listed = state.vlfs_total.min(VLFS_LISTED as u64) as usize;
        let vlf = |[vlf, status]: &[AtomicU32; 2]| {
            let status = status.load(Relaxed);
            VlfState { vlf: vlf.load(Relaxed), status: status as u8, parity: status >> 8 }
        };
        state.vlfs = self.slots[..listed].iter().map(vlf).collect();
        fence(Acquire);
        let whole = version > 0 && version.is_multiple_of(2) && version == self.version.load(Relaxed);
        whole.then_some(state)
    }
}

fn words(state: &LogState) -> [u64; WORDS] {
    let (active_tx, active) = state.active.map_or((NONE, NONE), |(tx, lsn)| (tx, lsn.packed()));
    let (page, page_lsn) = state.oldest_dirty_page.map_or((NONE, NONE), |(page, lsn)| (page.0, lsn.packed()));
    let certificate = state.last_certificate;
    [
        state.at_ns,
        state.redo.packed(),
        state.next.packed(),
        state.durable.packed(),
        state.last_sequence,
        state.durable_sequence,
        state.waiting_bytes,
        active_tx,
        active,
        state.dirty_pages,
        page,
        page_lsn,
        certificate.map_or(NONE, |it| it.redo.packed()),
        certificate.map_or(NONE, |it| it.pages),
        certificate.map_or(NONE, |it| it.generation),
        u64::from(state.checkpointing),
        u64::from(state.read_only),
        state.vlfs_total,
    ]
}

fn from_words(words: &[u64; WORDS]) -> LogState {
    let lsn = |at: usize| Lsn::from_packed(words[at]);
    let some = |at: usize| words[at] != NONE;
    LogState {
        at_ns: words[0],
        redo: lsn(1),
        next: lsn(2),
        durable: lsn(3),
        last_sequence: words[4],
        durable_sequence: words[5],
        waiting_bytes: words[6],
        active: some(7).then(|| (words[7], lsn(8))),
        dirty_pages: words[9],
        oldest_dirty_page: some(10).then(|| (PageNo(words[10]), lsn(11))),
        last_certificate: some(12).then(|| Certificate {
            redo: lsn(12),
            pages: words[13],
            generation: words[14],
        }),
        checkpointing: words[15] == 1,
        read_only: words[16] == 1,
        vlfs_total: words[17],
        vlfs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Publisher;

    #[test]
    fn a_state_is_read_as_it_was_written_and_one_request_is_answered_once() {
        let publisher = Publisher::new(None);
        let board = &publisher.state;
        assert!(board.read().is_none() && !board.is_requested());
        let request = board.next_request();
        board.requested.store(request, Release);
        assert!(board.is_requested() && !board.is_answered(request));
        let lsn = Lsn::new(3, 8, 2);
        let state = LogState {
            redo: lsn,
            next: Lsn::new(9, 8, 1),
            last_sequence: 7,
            active: Some((4, lsn)),
            oldest_dirty_page: Some((PageNo(0), lsn)),
            last_certificate: Some(Certificate { redo: lsn, pages: 3, generation: 2 }),
            read_only: true,
            vlfs_total: 2,
            vlfs: vec![
                VlfState { vlf: 3, status: 2, parity: 128 },
                VlfState { vlf: 0, status: 0, parity: 0 },
            ],
            ..LogState::default()
        };
        board.answer(|| state.clone());
        assert!(board.is_answered(request) && !board.is_requested());
        let read = board.read().unwrap();
        assert_eq!(read, LogState { at_ns: read.at_ns, ..state });
    }
}
