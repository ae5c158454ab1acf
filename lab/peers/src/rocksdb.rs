//! RocksDB. Full is `WriteOptions::sync`. Delayed, its default, is without it: the log is in the page cache until the
//! system writes it or a sync is requested.

use crate::library::{Library, functions};
use crate::{Error, Peer, Result, Rows};
use experiments::Durability;
use std::ffi::{CStr, CString, c_char, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// Debian's and Ubuntu's names of the versions that have these functions; the last is the development package's.
const LIBRARIES: &[&str] = &[
    "librocksdb.so.7.8",
    "librocksdb.so.8.9",
    "librocksdb.so.9.10",
    "librocksdb.so.9.11",
    "librocksdb.so.10.2",
    "librocksdb.so",
];

/// A pointer to an error's text.
type ErrorText = *mut *mut c_char;

functions! {
    /// From rocksdb/c.h.
    struct Functions {
        rocksdb_free: fn(*mut c_void);
        rocksdb_options_create: fn() -> *mut c_void;
        rocksdb_options_destroy: fn(*mut c_void);
        rocksdb_options_set_create_if_missing: fn(*mut c_void, c_uchar);
        rocksdb_open: fn(*const c_void, *const c_char, ErrorText) -> *mut c_void;
        rocksdb_close: fn(*mut c_void);
        rocksdb_writeoptions_create: fn() -> *mut c_void;
        rocksdb_writeoptions_destroy: fn(*mut c_void);
        rocksdb_writeoptions_set_sync: fn(*mut c_void, c_uchar);
        rocksdb_readoptions_create: fn() -> *mut c_void;
        rocksdb_readoptions_destroy: fn(*mut c_void);
        rocksdb_flushoptions_create: fn() -> *mut c_void;
        rocksdb_flushoptions_destroy: fn(*mut c_void);
        rocksdb_writebatch_create: fn() -> *mut c_void;
        rocksdb_writebatch_destroy: fn(*mut c_void);
        rocksdb_writebatch_put: fn(*mut c_void, *const c_char, usize, *const c_char, usize);
        rocksdb_write: fn(*mut c_void, *const c_void, *mut c_void, ErrorText);
        rocksdb_get: fn(*mut c_void, *const c_void, *const c_char, usize, *mut usize, ErrorText) -> *mut c_char;
        rocksdb_flush: fn(*mut c_void, *const c_void, ErrorText);
        rocksdb_flush_wal: fn(*mut c_void, c_uchar, ErrorText);
    }
}

pub(crate) struct Rocksdb {
    functions: Functions,
    database: *mut c_void,
    full: *mut c_void,
    delayed: *mut c_void,
    reading: *mut c_void,
    flushing: *mut c_void,
    dir: PathBuf,
}

// SAFETY: a database may be used by all threads at once, and its options too, which are not changed any more
// (rocksdb/db.h: "A DB is safe for concurrent access from multiple threads without any external synchronization").
unsafe impl Send for Rocksdb {}
// SAFETY: as above.
unsafe impl Sync for Rocksdb {}

impl Rocksdb {
    pub(crate) fn find() -> Result<Library> {
        Library::find("RocksDB", LIBRARIES, "librocksdb7.8")
    }

    pub(crate) fn open(dir: &Path) -> Result<Rocksdb> {
        let functions = Functions::load(&Rocksdb::find()?)?;
        let path = CString::new(dir.as_os_str().as_bytes()).expect("a path has no zero in it");
        // SAFETY: options are created, changed and freed with their own functions; the path ends with a zero and is
        // copied.
        let database = unsafe {
            let options = (functions.rocksdb_options_create)();
            (functions.rocksdb_options_set_create_if_missing)(options, 1);
            let database = checked_call(&functions, dir, "open its database", |error| {
                (functions.rocksdb_open)(options, path.as_ptr(), error)
            });
            (functions.rocksdb_options_destroy)(options);
            database?
        };
        // SAFETY: as above; they are freed with the database.
        let (full, delayed, reading, flushing) = unsafe {
            let full = (functions.rocksdb_writeoptions_create)();
            (functions.rocksdb_writeoptions_set_sync)(full, 1);
            (
                full,
                (functions.rocksdb_writeoptions_create)(),
                (functions.rocksdb_readoptions_create)(),
                (functions.rocksdb_flushoptions_create)(),
            )
        };
        Ok(Rocksdb { functions, database, full, delayed, reading, flushing, dir: dir.into() })
    }

    fn call<T>(&self, doing: &'static str, call: impl FnOnce(ErrorText) -> T) -> Result<T> {
        checked_call(&self.functions, &self.dir, doing, call)
    }
}

/// Calls a function that sets an error's text if it fails.
fn checked_call<T>(
    functions: &Functions,
    dir: &Path,
    doing: &'static str,
    call: impl FnOnce(ErrorText) -> T,
) -> Result<T> {
    let mut error = null_mut();
    let result = call(&raw mut error);
    if error.is_null() {
        return Ok(result);
    }
    // SAFETY: the function allocated the text; it ends with a zero and we must free it.
    let why = unsafe {
        let why = CStr::from_ptr(error).to_string_lossy().into_owned();
        (functions.rocksdb_free)(error.cast());
        why
    };
    Err(Error::Engine { engine: "RocksDB", doing, dir: dir.into(), why })
}

impl Drop for Rocksdb {
    fn drop(&mut self) {
        // SAFETY: each was created by the function of its kind and is freed once; `self` is no longer borrowed.
        unsafe {
            (self.functions.rocksdb_close)(self.database);
            (self.functions.rocksdb_writeoptions_destroy)(self.full);
            (self.functions.rocksdb_writeoptions_destroy)(self.delayed);
            (self.functions.rocksdb_readoptions_destroy)(self.reading);
            (self.functions.rocksdb_flushoptions_destroy)(self.flushing);
        }
    }
}

/// Rows that are written atomically.
struct Batch<'a> {
    functions: &'a Functions,
    handle: *mut c_void,
}

impl Rows for Batch<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (key_bytes, value_bytes) = (key.len(), value.len());
        let (key, value) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: we own the batch; key and value are copied during the call.
        unsafe {
            (self.functions.rocksdb_writebatch_put)(self.handle, key, key_bytes, value, value_bytes);
        }
        Ok(())
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        // SAFETY: it was created and is freed once.
        unsafe { (self.functions.rocksdb_writebatch_destroy)(self.handle) };
    }
}

impl Peer for Rocksdb {
    fn commit(
        &self,
        durability: Durability,
        fill: &mut dyn FnMut(&mut dyn Rows) -> Result<()>,
    ) -> Result<()> {
        // SAFETY: it has no arguments.
        let handle = unsafe { (self.functions.rocksdb_writebatch_create)() };
        let mut batch = Batch { functions: &self.functions, handle };
        fill(&mut batch)?;
        let options = match durability {
            Durability::Full => self.full,
            Durability::Delayed => self.delayed,
        };
        // SAFETY: database, options and batch are valid, and no other thread uses the batch.
        self.call("commit", |error| unsafe {
            (self.functions.rocksdb_write)(self.database, options, batch.handle, error);
        })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut bytes = 0;
        // SAFETY: database and options are valid; the key is only read; the length goes to our variable.
        let value = self.call("read", |error| unsafe {
            let (start, length) = (key.as_ptr().cast(), key.len());
            (self.functions.rocksdb_get)(self.database, self.reading, start, length, &raw mut bytes, error)
        })?;
        if value.is_null() {
            return Ok(None);
        }
        // SAFETY: the function allocated that many bytes, which we must free.
        let found = unsafe {
            let found = std::slice::from_raw_parts(value.cast::<u8>(), bytes).to_vec();
            (self.functions.rocksdb_free)(value.cast());
            found
        };
        Ok(Some(found))
    }

    fn settle(&self) -> Result<()> {
        // SAFETY: the database is valid. 1 requests a sync.
        self.call("sync its log", |error| unsafe {
            (self.functions.rocksdb_flush_wal)(self.database, 1, error);
        })
    }

    fn in_place(&self) -> Result<()> {
        // SAFETY: database and options are valid; by default it waits until the rows are in their file.
        self.call("flush", |error| unsafe {
            (self.functions.rocksdb_flush)(self.database, self.flushing, error);
        })
    }
}
