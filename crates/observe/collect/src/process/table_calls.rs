//! The two operations on the table of counters that aya lacks: it reads many keys at once, or takes one out. They are system calls
//! with pointers, so they stand here, apart from who uses them.

use super::tables::{CpuCounts, Key};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// BPF_MAP_LOOKUP_AND_DELETE_ELEM of linux/bpf.h.
const LOOKUP_AND_DELETE: libc::c_long = 21;
/// BPF_MAP_LOOKUP_BATCH.
const LOOKUP_BATCH: libc::c_long = 24;

/// The part of union bpf_attr that [`LOOKUP_AND_DELETE`] uses.
#[repr(C)]
struct ElementAttributes {
    map: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The part that [`LOOKUP_BATCH`] uses.
#[repr(C)]
struct BatchAttributes {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

/// Result of one call.
pub(super) struct Batch {
    pub count: usize,
    /// There is more.
    pub more: bool,
}

/// Looks up and deletes in one step, so that no addition in between is lost. `parts`: one for each possible CPU.
pub(super) fn take(map: BorrowedFd<'_>, key: &Key, parts: &mut [CpuCounts], cpus: usize) -> io::Result<()> {
    assert!(parts.len() == cpus, "a part for each possible CPU");
    let mut attributes = ElementAttributes {
        map: map.as_raw_fd() as u32,
        zero: 0,
        key: std::ptr::from_ref(key) as u64,
        value: parts.as_mut_ptr() as u64,
        flags: 0,
    };
    call(LOOKUP_AND_DELETE, &mut attributes)
}

/// Reads the keys after `position`, and moves it. `parts`: one for each key and possible CPU.
pub(super) fn read_batch(
    map: BorrowedFd<'_>,
    position: &mut Option<u32>,
    keys: &mut [Key],
    parts: &mut [CpuCounts],
    cpus: usize,
) -> io::Result<Batch> {
    assert!(parts.len() == keys.len() * cpus, "a part for each possible CPU");
    let mut next = 0_u32;
    let mut attributes = BatchAttributes {
        in_batch: position.as_ref().map_or(0, |position| std::ptr::from_ref(position) as u64),
        out_batch: &raw mut next as u64,
        keys: keys.as_mut_ptr() as u64,
        values: parts.as_mut_ptr() as u64,
        count: keys.len() as u32,
        map: map.as_raw_fd() as u32,
        element_flags: 0,
        flags: 0,
    };
    let done = call(LOOKUP_BATCH, &mut attributes);
    let count = (attributes.count as usize).min(keys.len());
    match done {
        Ok(()) => {
            *position = Some(next);
            Ok(Batch { count, more: true })
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(Batch { count, more: false }),
        Err(error) => Err(error),
    }
}

fn call<A>(command: libc::c_long, attributes: &mut A) -> io::Result<()> {
    // SAFETY: only the functions above call this. Their pointers are to values that live and may be written until it returns:
    // keys and values in the table's layout (checked in tables.rs) with a part for each possible CPU (by their assertions),
    // and positions in a hash table, which are u32.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<A>()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
