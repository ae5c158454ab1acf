//! The parts of SQLite's C interface that a VFS uses. They are declared here so that the shim does not link
//! SQLite: the program that loads it has its own.
//!
//! Stable since SQLite 3.8 (`sqlite3.h`, "OS Interface Object"); new fields are only ever appended.

use std::ffi::{c_char, c_double, c_int, c_void};

pub(crate) const SQLITE_OK: c_int = 0;
pub(crate) const SQLITE_ERROR: c_int = 1;
pub(crate) const SQLITE_NOTFOUND: c_int = 12;
pub(crate) const SQLITE_CANTOPEN: c_int = 14;
pub(crate) const SQLITE_IOERR: c_int = 10;
pub(crate) const SQLITE_IOERR_SHORT_READ: c_int = SQLITE_IOERR | (2 << 8);

pub(crate) const SQLITE_OPEN_DELETEONCLOSE: c_int = 0x0000_0008;
pub(crate) const SQLITE_OPEN_MAIN_DB: c_int = 0x0000_0100;
pub(crate) const SQLITE_OPEN_TEMP_DB: c_int = 0x0000_0200;
pub(crate) const SQLITE_OPEN_TRANSIENT_DB: c_int = 0x0000_0400;
pub(crate) const SQLITE_OPEN_MAIN_JOURNAL: c_int = 0x0000_0800;
pub(crate) const SQLITE_OPEN_TEMP_JOURNAL: c_int = 0x0000_1000;
pub(crate) const SQLITE_OPEN_SUBJOURNAL: c_int = 0x0000_2000;
pub(crate) const SQLITE_OPEN_SUPER_JOURNAL: c_int = 0x0000_4000;
pub(crate) const SQLITE_OPEN_WAL: c_int = 0x0008_0000;

pub(crate) const SQLITE_FCNTL_VFSNAME: c_int = 12;
pub(crate) const SQLITE_FCNTL_TEMPFILENAME: c_int = 16;

/// `sqlite3_file`: the first field of a VFS's open file.
#[repr(C)]
#[derive(Debug)]
pub struct SqliteFile {
    pub(crate) methods: *const IoMethods,
}

/// `sqlite3_io_methods`, versions 1 to 3.
#[repr(C)]
pub(crate) struct IoMethods {
    pub version: c_int,
    pub close: Option<unsafe extern "C" fn(*mut SqliteFile) -> c_int>,
    pub read: Option<unsafe extern "C" fn(*mut SqliteFile, *mut c_void, c_int, i64) -> c_int>,
    pub write: Option<unsafe extern "C" fn(*mut SqliteFile, *const c_void, c_int, i64) -> c_int>,
    pub truncate: Option<unsafe extern "C" fn(*mut SqliteFile, i64) -> c_int>,
    pub sync: Option<unsafe extern "C" fn(*mut SqliteFile, c_int) -> c_int>,
    pub file_size: Option<unsafe extern "C" fn(*mut SqliteFile, *mut i64) -> c_int>,
    pub lock: Option<unsafe extern "C" fn(*mut SqliteFile, c_int) -> c_int>,
    pub unlock: Option<unsafe extern "C" fn(*mut SqliteFile, c_int) -> c_int>,
    pub check_reserved_lock: Option<unsafe extern "C" fn(*mut SqliteFile, *mut c_int) -> c_int>,
    pub file_control: Option<unsafe extern "C" fn(*mut SqliteFile, c_int, *mut c_void) -> c_int>,
    pub sector_size: Option<unsafe extern "C" fn(*mut SqliteFile) -> c_int>,
    pub device_characteristics: Option<unsafe extern "C" fn(*mut SqliteFile) -> c_int>,
    // From version 2.
    pub shm_map: Option<ShmMap>,
    pub shm_lock: Option<unsafe extern "C" fn(*mut SqliteFile, c_int, c_int, c_int) -> c_int>,
    pub shm_barrier: Option<unsafe extern "C" fn(*mut SqliteFile)>,
    pub shm_unmap: Option<unsafe extern "C" fn(*mut SqliteFile, c_int) -> c_int>,
    // From version 3.
    pub fetch: Option<unsafe extern "C" fn(*mut SqliteFile, i64, c_int, *mut *mut c_void) -> c_int>,
    pub unfetch: Option<unsafe extern "C" fn(*mut SqliteFile, i64, *mut c_void) -> c_int>,
}

pub(crate) type ShmMap =
    unsafe extern "C" fn(*mut SqliteFile, c_int, c_int, c_int, *mut *mut c_void) -> c_int;
pub(crate) type DlSymbol = Option<unsafe extern "C" fn()>;

/// `sqlite3_vfs`, versions 1 to 3: an interface to files.
#[repr(C)]
#[derive(Debug)]
pub struct SqliteVfs {
    pub(crate) version: c_int,
    pub(crate) file_bytes: c_int,
    pub(crate) path_bytes_max: c_int,
    pub(crate) next: *mut SqliteVfs,
    pub(crate) name: *const c_char,
    pub(crate) app_data: *mut c_void,
    pub(crate) open: Option<OpenFile>,
    pub(crate) delete: Option<unsafe extern "C" fn(*mut SqliteVfs, *const c_char, c_int) -> c_int>,
    pub(crate) access:
        Option<unsafe extern "C" fn(*mut SqliteVfs, *const c_char, c_int, *mut c_int) -> c_int>,
    pub(crate) full_pathname: Option<FullPathname>,
    pub(crate) dl_open: Option<unsafe extern "C" fn(*mut SqliteVfs, *const c_char) -> *mut c_void>,
    pub(crate) dl_error: Option<unsafe extern "C" fn(*mut SqliteVfs, c_int, *mut c_char)>,
    pub(crate) dl_sym: Option<unsafe extern "C" fn(*mut SqliteVfs, *mut c_void, *const c_char) -> DlSymbol>,
    pub(crate) dl_close: Option<unsafe extern "C" fn(*mut SqliteVfs, *mut c_void)>,
    pub(crate) randomness: Option<unsafe extern "C" fn(*mut SqliteVfs, c_int, *mut c_char) -> c_int>,
    pub(crate) sleep: Option<unsafe extern "C" fn(*mut SqliteVfs, c_int) -> c_int>,
    pub(crate) current_time: Option<unsafe extern "C" fn(*mut SqliteVfs, *mut c_double) -> c_int>,
    pub(crate) last_error: Option<unsafe extern "C" fn(*mut SqliteVfs, c_int, *mut c_char) -> c_int>,
    // From version 2.
    pub(crate) current_time_int64: Option<unsafe extern "C" fn(*mut SqliteVfs, *mut i64) -> c_int>,
    // From version 3.
    pub(crate) set_system_call:
        Option<unsafe extern "C" fn(*mut SqliteVfs, *const c_char, DlSymbol) -> c_int>,
    pub(crate) get_system_call: Option<unsafe extern "C" fn(*mut SqliteVfs, *const c_char) -> DlSymbol>,
    pub(crate) next_system_call: Option<unsafe extern "C" fn(*mut SqliteVfs, *const c_char) -> *const c_char>,
}

pub(crate) type OpenFile =
    unsafe extern "C" fn(*mut SqliteVfs, *const c_char, *mut SqliteFile, c_int, *mut c_int) -> c_int;

pub(crate) type FullPathname =
    unsafe extern "C" fn(*mut SqliteVfs, *const c_char, c_int, *mut c_char) -> c_int;

/// `sqlite3_vfs_find`.
pub type VfsFind = unsafe extern "C" fn(*const c_char) -> *mut SqliteVfs;
/// `sqlite3_vfs_register`.
pub type VfsRegister = unsafe extern "C" fn(*mut SqliteVfs, c_int) -> c_int;

/// The two functions that the shim calls in SQLite.
#[derive(Clone, Copy, Debug)]
pub struct SqliteFunctions {
    /// `sqlite3_vfs_find`.
    pub vfs_find: VfsFind,
    /// `sqlite3_vfs_register`.
    pub vfs_register: VfsRegister,
}

impl SqliteFunctions {
    /// The functions by address, for callers whose bindings declare the same C types under other names:
    /// with rusqlite, `from_addresses(ffi::sqlite3_vfs_find as _, ffi::sqlite3_vfs_register as _)`.
    ///
    /// # Safety
    /// The addresses must be those of `sqlite3_vfs_find` and `sqlite3_vfs_register`, not null.
    pub unsafe fn from_addresses(vfs_find: *const c_void, vfs_register: *const c_void) -> SqliteFunctions {
        // SAFETY: by contract they are functions of these types.
        unsafe {
            SqliteFunctions {
                vfs_find: std::mem::transmute::<*const c_void, VfsFind>(vfs_find),
                vfs_register: std::mem::transmute::<*const c_void, VfsRegister>(vfs_register),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structs_have_the_sizes_of_sqlite3_h() {
        assert_eq!(size_of::<SqliteVfs>(), 168);
        assert_eq!(size_of::<IoMethods>(), 152);
        assert_eq!(size_of::<SqliteVfs>(), size_of::<rusqlite::ffi::sqlite3_vfs>());
        assert_eq!(size_of::<IoMethods>(), size_of::<rusqlite::ffi::sqlite3_io_methods>());
    }
}
