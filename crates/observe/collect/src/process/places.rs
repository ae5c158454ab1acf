//! io_uring requests in flight, in the array of bpf/pending.h. Its memory is shared with the programs, so that reading
//! it takes no system call per entry.

use super::tables::Pending;
use crate::error::SourceError;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// `PLACES_BITS` and `PLACE_TAKEN` of bpf/pending.h.
const PLACES: usize = 1 << 13;
const TAKEN: u64 = 1;

/// `struct place` of bpf/pending.h: an address, then a [`Pending`].
#[repr(C)]
struct Place {
    address: AtomicU64,
    start_ns: AtomicU64,
    tgid_started: AtomicU64,
}

const _: () = assert!(size_of::<Place>() == size_of::<u64>() + size_of::<Pending>());

/// The array, mapped.
pub(super) struct Places(NonNull<[Place; PLACES]>);

// SAFETY: the mapping belongs to this value alone, and is only accessed through atomics.
unsafe impl Send for Places {}

impl Places {
    pub fn map(map: BorrowedFd<'_>) -> Result<Places, SourceError> {
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

    /// The requests in flight: index, address and data of each.
    pub fn in_use(&self) -> Vec<(usize, u64, Pending)> {
        let all = self.all().iter().enumerate();
        let used = all.map(|(index, place)| (index, place.address.load(SeqCst), place.pending()));
        used.filter(|(_, address, _)| *address > TAKEN).collect()
    }

    /// Removes an entry if it is unchanged.
    pub fn take(&self, index: usize, address: u64, pending: &Pending) -> bool {
        let Some(place) = self.all().get(index) else { return false };
        let same = place.pending() == *pending;
        same && place.address.compare_exchange(address, 0, SeqCst, SeqCst).is_ok()
    }

    fn all(&self) -> &[Place; PLACES] {
        // SAFETY: mapped until `self` is dropped; any bytes are valid atomics.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // SAFETY: the address and length of the mapping, into which no reference exists any more.
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
