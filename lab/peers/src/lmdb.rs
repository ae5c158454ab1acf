//! LMDB. Full is its default: it syncs the pages and then the meta page. Delayed is `MDB_NOMETASYNC`: a commit does not
//! wait for the meta page, so that only the newest commit may be lost.

use crate::library::{Library, functions};
use crate::{Error, Peer, Result, Rows};
use experiments::Durability;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

/// The largest database. It only reserves addresses.
const MAP_BYTES: usize = 256 << 30;

const NOTLS: c_uint = 0x0020_0000;
const NOMETASYNC: c_uint = 0x0004_0000;
const RDONLY: c_uint = 0x0002_0000;
const NOTFOUND: c_int = -30798;

/// `MDB_val` of lmdb.h.
#[repr(C)]
struct Value {
    bytes: usize,
    data: *mut c_void,
}

impl Value {
    /// LMDB takes a mutable pointer for input too, and does not write to it.
    fn from_bytes(bytes: &[u8]) -> Value {
        Value { bytes: bytes.len(), data: bytes.as_ptr().cast_mut().cast() }
    }
}

functions! {
    /// From lmdb.h.
    struct Functions {
        mdb_strerror: fn(c_int) -> *const c_char;
        mdb_env_create: fn(*mut *mut c_void) -> c_int;
        mdb_env_set_mapsize: fn(*mut c_void, usize) -> c_int;
        mdb_env_open: fn(*mut c_void, *const c_char, c_uint, u32) -> c_int;
        mdb_env_sync: fn(*mut c_void, c_int) -> c_int;
        mdb_env_close: fn(*mut c_void);
        mdb_txn_begin: fn(*mut c_void, *mut c_void, c_uint, *mut *mut c_void) -> c_int;
        mdb_txn_commit: fn(*mut c_void) -> c_int;
        mdb_txn_abort: fn(*mut c_void);
        mdb_dbi_open: fn(*mut c_void, *const c_char, c_uint, *mut c_uint) -> c_int;
        mdb_get: fn(*mut c_void, c_uint, *mut Value, *mut Value) -> c_int;
        mdb_put: fn(*mut c_void, c_uint, *mut Value, *mut Value, c_uint) -> c_int;
    }
}

pub(crate) struct Lmdb {
    functions: Functions,
    environment: *mut c_void,
    /// The unnamed table.
    table: c_uint,
    dir: PathBuf,
}

// SAFETY: an environment and its tables' numbers may be used by all threads at once (lmdb.h, "Caveats"); a transaction
// stays in the call, and so in the thread, that began it.
unsafe impl Send for Lmdb {}
// SAFETY: as above.
unsafe impl Sync for Lmdb {}

/// An open transaction; it is aborted unless it is committed.
struct Transaction<'a> {
    lmdb: &'a Lmdb,
    /// Null once it is committed.
    handle: *mut c_void,
}

impl Lmdb {
    pub(crate) fn find() -> Result<Library> {
        Library::find("LMDB", &["liblmdb.so.0", "liblmdb.so"], "liblmdb0")
    }

    pub(crate) fn open(dir: &Path) -> Result<Lmdb> {
        let functions = Functions::load(&Lmdb::find()?)?;
        const OPEN: &str = "open its database";
        let mut lmdb = Lmdb { functions, environment: null_mut(), table: 0, dir: dir.into() };
        // SAFETY: it writes the address of a new environment to our variable.
        let made = unsafe { (functions.mdb_env_create)(&raw mut lmdb.environment) };
        lmdb.check(OPEN, made)?;
        // SAFETY: the environment was made and is not open yet.
        lmdb.check(OPEN, unsafe { (functions.mdb_env_set_mapsize)(lmdb.environment, MAP_BYTES) })?;
        let path = CString::new(dir.as_os_str().as_bytes()).expect("a path has no zero in it");
        // SAFETY: as above; the path ends with a zero and is copied.
        let opened = unsafe { (functions.mdb_env_open)(lmdb.environment, path.as_ptr(), NOTLS, 0o644) };
        lmdb.check(OPEN, opened)?;
        let mut table = 0;
        let tx = lmdb.begin(0)?;
        // SAFETY: the transaction is open; a null name is the unnamed table; its number goes to our variable.
        lmdb.check(OPEN, unsafe { (functions.mdb_dbi_open)(tx.handle, null(), 0, &raw mut table) })?;
        tx.commit()?;
        lmdb.table = table;
        Ok(lmdb)
    }

    fn begin(&self, flags: c_uint) -> Result<Transaction<'_>> {
        let mut handle = null_mut();
        // SAFETY: the environment is open; the transaction's address goes to our variable.
        let begun =
            unsafe { (self.functions.mdb_txn_begin)(self.environment, null_mut(), flags, &raw mut handle) };
        self.check("begin", begun)?;
        Ok(Transaction { lmdb: self, handle })
    }

    fn check(&self, doing: &'static str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it takes any number; its text ends with a zero and stays valid until this thread calls it again.
        let why = unsafe { CStr::from_ptr((self.functions.mdb_strerror)(code)) };
        let why = why.to_string_lossy().into_owned();
        Err(Error::Engine { engine: "LMDB", doing, dir: self.dir.clone(), why })
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        if !self.environment.is_null() {
            // SAFETY: it was created, is closed once, and no transaction outlives the borrow of `self`.
            unsafe { (self.functions.mdb_env_close)(self.environment) };
        }
    }
}

impl Transaction<'_> {
    fn commit(mut self) -> Result<()> {
        let handle = std::mem::replace(&mut self.handle, null_mut());
        // SAFETY: this thread began it, and it is freed by this call whether or not that fails.
        self.lmdb.check("commit", unsafe { (self.lmdb.functions.mdb_txn_commit)(handle) })
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it is open: it was neither committed nor aborted.
            unsafe { (self.lmdb.functions.mdb_txn_abort)(self.handle) };
        }
    }
}

impl Rows for Transaction<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (mut key, mut value) = (Value::from_bytes(key), Value::from_bytes(value));
        // SAFETY: the transaction is open for writing; key and value are copied during the call.
        let put = unsafe {
            (self.lmdb.functions.mdb_put)(self.handle, self.lmdb.table, &raw mut key, &raw mut value, 0)
        };
        self.lmdb.check("put a row", put)
    }
}

impl Peer for Lmdb {
    fn commit(
        &self,
        durability: Durability,
        fill: &mut dyn FnMut(&mut dyn Rows) -> Result<()>,
    ) -> Result<()> {
        let mut tx = self.begin(match durability {
            Durability::Full => 0,
            Durability::Delayed => NOMETASYNC,
        })?;
        fill(&mut tx)?;
        tx.commit()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let tx = self.begin(RDONLY)?;
        let (mut key, mut value) = (Value::from_bytes(key), Value::from_bytes(&[]));
        // SAFETY: the transaction is open; the address of a value that is found goes to our variable.
        match unsafe { (self.functions.mdb_get)(tx.handle, self.table, &raw mut key, &raw mut value) } {
            NOTFOUND => Ok(None),
            code => {
                self.check("read", code)?;
                // SAFETY: the value lies in the map and does not change before the end of the transaction, which is later.
                Ok(Some(unsafe { std::slice::from_raw_parts(value.data.cast::<u8>(), value.bytes) }.to_vec()))
            }
        }
    }

    fn settle(&self) -> Result<()> {
        // SAFETY: the environment is open. 1 forces the sync whatever its flags are.
        self.check("sync", unsafe { (self.functions.mdb_env_sync)(self.environment, 1) })
    }
}
