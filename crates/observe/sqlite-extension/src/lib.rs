//! `libheadroom_sqlite.so`: the entry points by which SQLite loads the counting VFS (`sqlite-vfs`) as an extension. A crate of its
//! own, so that only this workspace builds a library of that name.
//!
//! SQLite tries `sqlite3_extension_init` first and then a name derived from the file's: without "lib", only the
//! letters before the first "." (`sqlite3LoadExtension`, loadext.c). For
//! `libheadroom_sqlite.so` that is `sqlite3_headroomsqlite_init`.

use sqlite_vfs::{Publish, SqliteFunctions, register};
use std::ffi::{c_char, c_int, c_void};

const SQLITE_ERROR: c_int = 1;
const SQLITE_OK_LOAD_PERMANENTLY: c_int = 1 << 8;

/// Indexes of the two functions in `sqlite3_api_routines`, counted in pointers (offsetof() / 8 over
/// sqlite3ext.h, where they follow `soft_heap_limit`). Fields are only appended to the struct, so the indexes are
/// valid for every SQLite since 3.5.9.
const SLOT_VFS_FIND: usize = 141;
const SLOT_VFS_REGISTER: usize = 142;

/// Loads the shim: every connection that the program opens from now on is counted. The library stays
/// loaded until the process ends.
///
/// # Safety
/// Called by SQLite, with its own `sqlite3_api_routines`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    _database: *mut c_void,
    _error_text: *mut *mut c_char,
    api: *const *const c_void,
) -> c_int {
    if api.is_null() {
        return SQLITE_ERROR;
    }
    // SAFETY: SQLite passes its table of routines, which has these slots since 3.5.9.
    let (find, register_vfs) = unsafe { (*api.add(SLOT_VFS_FIND), *api.add(SLOT_VFS_REGISTER)) };
    if find.is_null() || register_vfs.is_null() {
        return SQLITE_ERROR;
    }
    let publish = Publish::Shared { dir: published::counters_dir() };
    // SAFETY: these slots hold those two functions (sqlite3ext.h), are not null, and belong to the SQLite that is calling.
    match unsafe { register(SqliteFunctions::from_addresses(find, register_vfs), publish, true) } {
        Ok(_) => SQLITE_OK_LOAD_PERMANENTLY,
        Err(error) => {
            if std::env::var_os("HEADROOM_VERBOSE").is_some() {
                eprintln!("headroom: cannot count this program's I/O: {error}");
            }
            SQLITE_ERROR
        }
    }
}

/// [`sqlite3_extension_init`] under the name that SQLite derives from the file name.
///
/// # Safety
/// Called by SQLite, with its own `sqlite3_api_routines`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_headroomsqlite_init(
    database: *mut c_void,
    error_text: *mut *mut c_char,
    api: *const *const c_void,
) -> c_int {
    // SAFETY: the same contract.
    unsafe { sqlite3_extension_init(database, error_text, api) }
}
