//! The observed program: it has the shim, publishes its counters, runs each line of its input as SQL and answers "done"
//! after each.

use rusqlite::{Connection, OpenFlags, ffi};
use sqlite_vfs::{Publish, SqliteFunctions, VFS_NAME, register};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Runs in the child process until its input ends.
pub fn run(database: &Path, dir: PathBuf) -> Result<(), Box<dyn Error>> {
    let (find, register_vfs) = (ffi::sqlite3_vfs_find as _, ffi::sqlite3_vfs_register as _);
    // SAFETY: these are the two functions.
    let functions = unsafe { SqliteFunctions::from_addresses(find, register_vfs) };
    // SAFETY: they are those of the SQLite in this program.
    let registry = unsafe { register(functions, Publish::Shared { dir }, false)? };
    eprintln!("counters: {}", registry.published()?.display());
    let database = Connection::open_with_flags_and_vfs(database, OpenFlags::default(), VFS_NAME)?;
    println!("\ndone");
    for line in std::io::stdin().lines() {
        database.execute_batch(&line?)?;
        println!("done");
    }
    Ok(())
}
