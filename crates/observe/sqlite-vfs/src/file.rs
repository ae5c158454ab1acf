//! The methods of an open file: read, write, sync and truncate are timed and counted, fetches are counted, and the
//! others call the file of the VFS below unchanged.

use crate::abi::{
    IoMethods, SQLITE_FCNTL_TEMPFILENAME, SQLITE_FCNTL_VFSNAME, SQLITE_IOERR, SQLITE_IOERR_SHORT_READ,
    SQLITE_NOTFOUND, SQLITE_OK, ShmMap, SqliteFile, SqliteVfs,
};
use host::monotonic_ns;
use published::{Operation, Slot};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// The shim's part of an open file. The file of the VFS below follows it in memory.
#[repr(C)]
pub(crate) struct CountedFile {
    pub base: SqliteFile,
    /// `None` when all slots were taken: the file works, but is not counted.
    pub slot: Option<&'static Slot>,
    shim: *mut SqliteVfs,
}

impl CountedFile {
    pub fn new(shim: *mut SqliteVfs) -> CountedFile {
        CountedFile { base: SqliteFile { methods: ptr::null() }, slot: None, shim }
    }

    /// # Safety
    /// `file` is a file of the shim.
    #[inline(always)]
    pub unsafe fn inner(file: *mut SqliteFile) -> *mut SqliteFile {
        // SAFETY: SQLite allocates `file_bytes` bytes, which are enough for both.
        unsafe { file.cast::<CountedFile>().add(1).cast() }
    }
}

/// The VFS below the shim.
///
/// # Safety
/// `shim` is the shim's VFS, whose `app_data` is the VFS below.
#[inline(always)]
pub(crate) unsafe fn vfs_below(shim: *mut SqliteVfs) -> *mut SqliteVfs {
    // SAFETY: by contract.
    unsafe { (*shim).app_data.cast() }
}

/// Calls the method of the file below, or returns `$absent` where it has none.
macro_rules! below {
    ($file:expr, $method:ident($($arg:expr),*), else $absent:expr) => {{
        let inner = CountedFile::inner($file);
        match (*(*inner).methods).$method {
            Some(function) => function(inner, $($arg),*),
            None => $absent,
        }
    }};
}

/// # Safety
/// `file` is a file of the shim.
#[inline(always)]
unsafe fn slot_of(file: *mut SqliteFile) -> Option<&'static Slot> {
    // SAFETY: by contract.
    unsafe { (*file.cast::<CountedFile>()).slot }
}

unsafe extern "C" fn read(file: *mut SqliteFile, to: *mut c_void, bytes: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite calls with a file that `open` made, which has the methods of the file below.
    unsafe {
        let start = monotonic_ns();
        let code = below!(file, read(to, bytes, offset), else SQLITE_IOERR);
        let stall_ns = monotonic_ns().saturating_sub(start);
        let Some(slot) = slot_of(file) else { return code };
        match code {
            SQLITE_OK => slot.count_read(bytes as u64, stall_ns),
            SQLITE_IOERR_SHORT_READ => {
                slot.count_short_read(bytes_before_end(file, bytes, offset), stall_ns);
            }
            _ => slot.count_error(Operation::Read),
        }
        code
    }
}

/// The bytes that a short read returned. SQLite's result code does not contain them, and the rest of the buffer was
/// zeroed: they follow from the file's size. 0 where the size is unknown.
///
/// # Safety
/// As for [`read`].
#[cold]
unsafe fn bytes_before_end(file: *mut SqliteFile, bytes: c_int, offset: i64) -> u64 {
    let mut size = 0;
    // SAFETY: by contract.
    let sized = unsafe { below!(file, file_size(&raw mut size), else SQLITE_IOERR) };
    if sized == SQLITE_OK { size.saturating_sub(offset).clamp(0, i64::from(bytes)) as u64 } else { 0 }
}

unsafe extern "C" fn write(file: *mut SqliteFile, from: *const c_void, bytes: c_int, offset: i64) -> c_int {
    // SAFETY: as for `read`.
    unsafe {
        let start = monotonic_ns();
        let code = below!(file, write(from, bytes, offset), else SQLITE_IOERR);
        let stall_ns = monotonic_ns().saturating_sub(start);
        if let Some(slot) = slot_of(file) {
            if code == SQLITE_OK {
                slot.count_write(bytes as u64, stall_ns);
            } else {
                slot.count_error(Operation::Write);
            }
        }
        code
    }
}

unsafe extern "C" fn sync(file: *mut SqliteFile, flags: c_int) -> c_int {
    // SAFETY: as for `read`.
    unsafe {
        let start = monotonic_ns();
        let code = below!(file, sync(flags), else SQLITE_IOERR);
        let stall_ns = monotonic_ns().saturating_sub(start);
        if let Some(slot) = slot_of(file) {
            if code == SQLITE_OK {
                slot.count_sync(stall_ns);
            } else {
                slot.count_error(Operation::Sync);
            }
        }
        code
    }
}

unsafe extern "C" fn truncate(file: *mut SqliteFile, size: i64) -> c_int {
    // SAFETY: as for `read`.
    unsafe {
        let start = monotonic_ns();
        let code = below!(file, truncate(size), else SQLITE_IOERR);
        let stall_ns = monotonic_ns().saturating_sub(start);
        if let Some(slot) = slot_of(file) {
            if code == SQLITE_OK {
                slot.count_truncate(stall_ns);
            } else {
                slot.count_error(Operation::Truncate);
            }
        }
        code
    }
}

unsafe extern "C" fn fetch(file: *mut SqliteFile, offset: i64, bytes: c_int, out: *mut *mut c_void) -> c_int {
    // SAFETY: as for `read`; `out` is SQLite's, and the file below has set it.
    unsafe {
        let code = below!(file, fetch(offset, bytes, out), else SQLITE_IOERR);
        if code == SQLITE_OK
            && !(*out).is_null()
            && let Some(slot) = slot_of(file)
        {
            slot.count_fetch(bytes as u64);
        }
        code
    }
}

unsafe extern "C" fn close(file: *mut SqliteFile) -> c_int {
    // SAFETY: as for `read`. SQLite regards a file without methods as closed.
    unsafe {
        let code = below!(file, close(), else SQLITE_OK);
        (*file).methods = ptr::null();
        code
    }
}

unsafe extern "C" fn file_control(file: *mut SqliteFile, operation: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: as for `read`.
    unsafe {
        if operation == SQLITE_FCNTL_VFSNAME && write_vfs_name(file, argument.cast()) {
            return SQLITE_OK;
        }
        below!(file, file_control(operation, argument), else SQLITE_NOTFOUND)
    }
}

/// Returns "headroom/unix" in `out`, as shims do. The text must be in memory that `sqlite3_free` accepts, but SQLite's
/// allocator is not among [`crate::SqliteFunctions`]. So the file below allocates it: for the name of a temporary
/// file. False if it allocates nothing, or too little.
///
/// # Safety
/// As for [`read`]; `out` is SQLite's.
unsafe fn write_vfs_name(file: *mut SqliteFile, out: *mut *mut c_char) -> bool {
    // SAFETY: by contract; the VFS below is registered and has a name.
    unsafe {
        let shim = (*file.cast::<CountedFile>()).shim;
        let name_of = |vfs: *mut SqliteVfs| CStr::from_ptr((*vfs).name).to_bytes();
        let name = [name_of(shim), b"/", name_of(vfs_below(shim)), b"\0"].concat();
        let mut memory: *mut c_char = ptr::null_mut();
        let argument = (&raw mut memory).cast();
        let code = below!(file, file_control(SQLITE_FCNTL_TEMPFILENAME, argument), else SQLITE_NOTFOUND);
        // Memory that is too small leaks: it cannot be freed here, and no VFS is known to return it.
        if code != SQLITE_OK || memory.is_null() || CStr::from_ptr(memory).count_bytes() + 1 < name.len() {
            return false;
        }
        ptr::copy_nonoverlapping(name.as_ptr().cast(), memory, name.len());
        *out = memory;
        true
    }
}

/// Methods that call the file below unchanged. A method that the file below lacks is never called: the shim's
/// table lacks it too.
macro_rules! forward {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty, else $absent:expr;)*) => {$(
        unsafe extern "C" fn $name(file: *mut SqliteFile, $($arg: $kind),*) -> $result {
            // SAFETY: as for `read`; the arguments are SQLite's own.
            unsafe { below!(file, $name($($arg),*), else $absent) }
        }
    )*};
}

forward! {
    file_size(out: *mut i64) -> c_int, else SQLITE_IOERR;
    lock(level: c_int) -> c_int, else SQLITE_IOERR;
    unlock(level: c_int) -> c_int, else SQLITE_IOERR;
    check_reserved_lock(out: *mut c_int) -> c_int, else SQLITE_IOERR;
    sector_size() -> c_int, else 0;
    device_characteristics() -> c_int, else 0;
    shm_map(page: c_int, bytes: c_int, extend: c_int, out: *mut *mut c_void) -> c_int, else SQLITE_IOERR;
    shm_lock(offset: c_int, count: c_int, flags: c_int) -> c_int, else SQLITE_IOERR;
    shm_barrier() -> (), else ();
    shm_unmap(delete: c_int) -> c_int, else SQLITE_OK;
    unfetch(offset: i64, page: *mut c_void) -> c_int, else SQLITE_OK;
}

/// A table of the version that the file below has. SQLite tests the pointers to learn whether shared memory and
/// memory maps are supported, so a method that is absent below must be absent here.
const fn table(version: c_int, shm: bool, map: bool) -> IoMethods {
    IoMethods {
        version,
        close: Some(close),
        read: Some(read),
        write: Some(write),
        truncate: Some(truncate),
        sync: Some(sync),
        file_size: Some(file_size),
        lock: Some(lock),
        unlock: Some(unlock),
        check_reserved_lock: Some(check_reserved_lock),
        file_control: Some(file_control),
        sector_size: Some(sector_size),
        device_characteristics: Some(device_characteristics),
        shm_map: if shm { Some(shm_map as ShmMap) } else { None },
        shm_lock: if shm { Some(shm_lock) } else { None },
        shm_barrier: if shm { Some(shm_barrier) } else { None },
        shm_unmap: if shm { Some(shm_unmap) } else { None },
        fetch: if map { Some(fetch) } else { None },
        unfetch: if map { Some(unfetch) } else { None },
    }
}

static VERSION_1: IoMethods = table(1, false, false);
static VERSION_2: [IoMethods; 2] = [table(2, false, false), table(2, true, false)];
static VERSION_3: [[IoMethods; 2]; 2] =
    [[table(3, false, false), table(3, false, true)], [table(3, true, false), table(3, true, true)]];

/// The shim's table for a file below with the table `inner`; null where `inner` is null.
///
/// # Safety
/// `inner` is null or a method table of an open file.
pub(crate) unsafe fn methods_like(inner: *const IoMethods) -> *const IoMethods {
    if inner.is_null() {
        return ptr::null();
    }
    // SAFETY: by contract. Only fields that exist in the table's version are read.
    unsafe {
        match (*inner).version {
            ..=1 => &raw const VERSION_1,
            2 => &raw const VERSION_2[usize::from((*inner).shm_map.is_some())],
            _ => {
                let (shm, map) = ((*inner).shm_map.is_some(), (*inner).fetch.is_some());
                &raw const VERSION_3[usize::from(shm)][usize::from(map)]
            }
        }
    }
}
