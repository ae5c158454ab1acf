//! I/Os of rings under way, in the array of bpf/pending.h: its memory is shared with the programs, so that it is looked
//! through without a system call for each of them.

use super::tables::Pending;
use crate::error::SourceError;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// `PLACES_BITS` and `PLACE_TAKEN` of bpf/pending.h.
const PLACES: usize = 1 << 13;
const TAKEN: u64 = 1;

/// `struct place`: an address, then a [`Pending`], of a machine that both share.
#[repr(C)]
struct Place {
    address: AtomicU64,
    start_ns: AtomicU64,
    tgid_started: AtomicU64,
}

const _: () = assert!(size_of::<Place>() == size_of::<u64>() + size_of::<Pending>());

/// The array, mapped.
pub(super) struct Places(NonNull<[Place; PLACES]>);

// SAFETY: it is memory that nobody else of this process has, and all of it are atomics.
unsafe impl Send for Places {}

impl Places {
    pub fn of(map: BorrowedFd<'_>) -> Result<Places, SourceError> {
        // SAFETY: a new mapping of the whole array, which the kernel keeps as long as it is mapped.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<[Place; PLACES]>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(at).filter(|_| at != libc::MAP_FAILED) {
            Some(at) => Ok(Places(at.cast())),
            None => Err(SourceError::System {
                path: "the tables of the BPF programs".into(),
                error: io::Error::last_os_error(),
            }),
        }
    }

    /// Those under way now: the index of each, and what it is.
    pub fn in_use(&self) -> Vec<(usize, u64, Pending)> {
        let all = self.all().iter().enumerate();
        let used = all.map(|(index, place)| (index, place.address.load(SeqCst), place.pending()));
        used.filter(|(_, address, _)| *address > TAKEN).collect()
    }

    /// Takes one out, if it is the same still.
    pub fn take(&self, index: usize, address: u64, pending: &Pending) -> bool {
        let Some(place) = self.all().get(index) else { return false };
        let same = place.pending() == *pending;
        same && place.address.compare_exchange(address, 0, SeqCst, SeqCst).is_ok()
    }

    fn all(&self) -> &[Place; PLACES] {
        // SAFETY: mapped until it is dropped, of atomics that are valid whatever is in them.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // SAFETY: as it was mapped, and nobody has a reference into it.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<[Place; PLACES]>()) };
    }
}

impl Place {
    fn pending(&self) -> Pending {
        let [a, b, c, d, e, f, g, h] = self.tgid_started.load(Relaxed).to_ne_bytes();
        let (tgid, started) = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
        Pending { start_ns: self.start_ns.load(Relaxed), tgid, started }
    }
}
