//! SQLite's WAL index (`-shm`) on a full disk: an error where the kernel would end the program.
//!
//! ```text
//! Headroom ── xShmMap(region) ──> SQLite's unix VFS: one byte a page is written, the region is mapped
//!                │                      blocks of 1 KiB: 3 KiB of each page are a hole; the first store to one on a
//!                │                      full disk raises SIGBUS
//!                └─ MADV_POPULATE_WRITE over the region: allocates all of it, or fails with EFAULT ──> SQLITE_FULL
//! ```
//!
//! A file system that copies on write (btrfs) allocates again after each write-back, which this cannot prevent.

use rusqlite::{Connection, ffi};
use std::ffi::c_int;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// The methods of an open database file: those of `below`, except for `xShmMap`.
#[repr(C)]
struct GuardedMethods {
    methods: ffi::sqlite3_io_methods,
    below: &'static ffi::sqlite3_io_methods,
}

/// One table for each VFS that opened a guarded file: SQLite's own and the counting shim's. They live as long as the program,
/// as the tables below do.
static TABLES: Mutex<Vec<&'static GuardedMethods>> = Mutex::new(Vec::new());

/// From the first version with shared memory.
const VERSION_MIN: c_int = 2;

/// Makes this connection fail with `SQLITE_FULL` where the WAL index cannot be allocated. To be called before its first statement.
pub fn guard_wal_index(connection: &Connection) {
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: the connection is open and keeps its main file until it is closed. A table of methods is static in every VFS,
    // and a GuardedMethods begins with one.
    unsafe {
        let (name, operation) = (c"main".as_ptr(), ffi::SQLITE_FCNTL_FILE_POINTER);
        let code = ffi::sqlite3_file_control(connection.handle(), name, operation, (&raw mut file).cast());
        if code != ffi::SQLITE_OK || file.is_null() || (*file).pMethods.is_null() {
            return;
        }
        if let Some(guarded) = guarded_methods(&*(*file).pMethods) {
            (*file).pMethods = &raw const guarded.methods;
        }
    }
}

/// The table over another one; `None` where that has no shared memory, or is such a table itself.
fn guarded_methods(below: &'static ffi::sqlite3_io_methods) -> Option<&'static GuardedMethods> {
    if below.iVersion < VERSION_MIN || below.xShmMap.is_none() {
        return None;
    }
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    if tables.iter().any(|table| ptr::eq(&raw const table.methods, below)) {
        return None;
    }
    if let Some(table) = tables.iter().find(|table| ptr::eq(table.below, below)) {
        return Some(table);
    }
    let methods = ffi::sqlite3_io_methods { xShmMap: Some(map_and_allocate), ..*below };
    let table = Box::leak(Box::new(GuardedMethods { methods, below }));
    tables.push(table);
    Some(table)
}

/// `xShmMap`: maps a region of the WAL index as the VFS below does, and allocates it.
unsafe extern "C" fn map_and_allocate(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    bytes: c_int,
    extend: c_int,
    out: *mut *mut std::ffi::c_void,
) -> c_int {
    // SAFETY: SQLite calls with a file that has these methods, which `guarded_methods` made and never frees. The region that
    // the VFS below returned is mapped; to populate it changes no byte.
    unsafe {
        let guarded = &*(*file).pMethods.cast::<GuardedMethods>();
        let Some(map) = guarded.below.xShmMap else { return ffi::SQLITE_IOERR };
        let code = map(file, region, bytes, extend, out);
        // A region that is not there yet is null. One that is mapped for reading only has another code.
        if code != ffi::SQLITE_OK || (*out).is_null() {
            return code;
        }
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
        // With pages of 64 KiB a region begins within one.
        let before = (*out).addr() % page;
        let (begin, length) = ((*out).byte_sub(before), usize::try_from(bytes).unwrap_or(0) + before);
        loop {
            if libc::madvise(begin, length, libc::MADV_POPULATE_WRITE) == 0 {
                return ffi::SQLITE_OK;
            }
            match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => {}
                // A kernel before 5.14 does not know it.
                Some(libc::EINVAL) => return ffi::SQLITE_OK,
                Some(libc::ENOMEM) => {
                    *out = ptr::null_mut();
                    return ffi::SQLITE_NOMEM;
                }
                _ => {
                    *out = ptr::null_mut();
                    return ffi::SQLITE_FULL;
                }
            }
        }
    }
}
