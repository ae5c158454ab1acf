use crate::Error;
use sqlite_vfs::{Publish, Registry, SqliteFunctions};

/// Registers the counting VFS ([`sqlite_vfs::VFS_NAME`]) with the SQLite that is linked into this program.
///
/// # Errors
/// [`Error::Counting`].
pub fn counted_sqlite() -> Result<&'static Registry, Error> {
    // SAFETY: the two functions are those of the SQLite linked in, which lives as long as the program.
    let registered = unsafe {
        let functions = SqliteFunctions::from_addresses(
            rusqlite::ffi::sqlite3_vfs_find as *const _,
            rusqlite::ffi::sqlite3_vfs_register as *const _,
        );
        sqlite_vfs::register(functions, Publish::Private, false)
    };
    registered.map_err(|error| Error::Counting(error.to_string()))
}
