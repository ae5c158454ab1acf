//! A program that carries the shim and shows its counters: runs each line of its input as SQL on the
//! database given, and answers "done" when the line's work is complete.
//!
//! ```text
//! cargo run -p collect --example watched_program -- DATABASE COUNTERS_DIR
//! ```

use headroom_sqlite::{Publish, SqliteFunctions, VFS_NAME, VfsFind, VfsRegister, register};
use rusqlite::{Connection, OpenFlags, ffi};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(database), Some(dir)) = (arguments.next(), arguments.next()) else {
        return Err("give a database and a directory for the counters".into());
    };
    // SAFETY: the two declarations of each function differ in the names of their types only.
    let functions = unsafe {
        SqliteFunctions {
            vfs_find: std::mem::transmute::<*const (), VfsFind>(ffi::sqlite3_vfs_find as *const ()),
            vfs_register: std::mem::transmute::<*const (), VfsRegister>(
                ffi::sqlite3_vfs_register as *const (),
            ),
        }
    };
    // SAFETY: they are those of the SQLite in this program.
    let registry = unsafe { register(functions, Publish::Shared { dir: dir.into() }, false)? };
    eprintln!("counters: {}", registry.published()?.display());
    let database = Connection::open_with_flags_and_vfs(database, OpenFlags::default(), VFS_NAME)?;
    println!("done");
    for line in std::io::stdin().lines() {
        database.execute_batch(&line?)?;
        println!("done");
    }
    Ok(())
}
