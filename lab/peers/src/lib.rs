//! Other embedded engines, to compare ours with: redb, LMDB and RocksDB behind one small trait.
//!
//! ```text
//! Engine::open(dir)  ──>  Peer   commit(durability, |rows| rows.put(key, value))   one transaction
//!                                get(key)
//!                                settle()     early acknowledged commits become durable
//!                                in_place()   empty the log: opening again has nothing to redo
//!                                drop         closes it
//!
//! redb      a crate              data.redb   copy on write, no log
//! lmdb      liblmdb.so           data.mdb    copy on write, no log; its system's package
//! rocksdb   librocksdb.so        NNNNNN.log, *.sst, ...           ; its system's package
//! ```
//!
//! LMDB and RocksDB are loaded when they are opened: Headroom needs neither at build time. `library` finds the functions;
//! all unsafe code is in it and in the two files that call them.
//!
//! Each engine has its default settings except for durability: no cache, page or log size is set.

mod error;
mod library;
mod lmdb;
mod redb;
mod rocksdb;

pub use error::Error;
use experiments::Durability;
use std::path::Path;

/// A result of an engine.
pub type Result<T> = std::result::Result<T, Error>;

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// redb: in Rust, a copy-on-write B+tree in one file.
    Redb,
    /// LMDB: a copy-on-write B+tree in a memory map.
    Lmdb,
    /// RocksDB: a log-structured merge tree with a write-ahead log.
    Rocksdb,
}

impl Engine {
    /// All engines.
    pub const ALL: [Engine; 3] = [Engine::Redb, Engine::Lmdb, Engine::Rocksdb];

    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Redb => "redb",
            Engine::Lmdb => "lmdb",
            Engine::Rocksdb => "rocksdb",
        }
    }

    /// Checks that its library is installed, without opening a database: RocksDB's threads keep the mount namespace of the
    /// first thread that opens one.
    ///
    /// # Errors
    /// [`Error::NotInstalled`].
    pub fn find(self) -> Result<()> {
        match self {
            Engine::Redb => Ok(()),
            Engine::Lmdb => lmdb::Lmdb::find().map(drop),
            Engine::Rocksdb => rocksdb::Rocksdb::find().map(drop),
        }
    }

    /// Opens the database in an existing directory; creates it if there is none, and recovers one that was not closed.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or an error of the engine.
    pub fn open(self, dir: &Path) -> Result<Box<dyn Peer>> {
        Ok(match self {
            Engine::Redb => Box::new(redb::Redb::open(dir)?),
            Engine::Lmdb => Box::new(lmdb::Lmdb::open(dir)?),
            Engine::Rocksdb => Box::new(rocksdb::Rocksdb::open(dir)?),
        })
    }

    /// Whether a commit writes to a log first, and to the data later.
    pub const fn has_log(self) -> bool {
        match self {
            Engine::Redb | Engine::Lmdb => false,
            Engine::Rocksdb => true,
        }
    }

    /// Whether a file of the database is its log, by its name.
    pub fn is_log(self, file: &Path) -> bool {
        self.has_log() && file.extension().is_some_and(|extension| extension == "log")
    }
}

/// An open database of keys and values, ordered by key. Threads share it by reference.
pub trait Peer: Send + Sync {
    /// Calls `fill` in a transaction and commits it. If `fill` fails, the transaction is rolled back.
    ///
    /// # Errors
    /// The error of `fill`, or of the engine.
    fn commit(&self, durability: Durability, fill: &mut dyn FnMut(&mut dyn Rows) -> Result<()>)
    -> Result<()>;

    /// The value of a key.
    ///
    /// # Errors
    /// An error of the engine.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Makes early acknowledged commits durable.
    ///
    /// # Errors
    /// An error of the engine.
    fn settle(&self) -> Result<()>;

    /// Writes all rows to the data files: opening it again has nothing to redo.
    ///
    /// # Errors
    /// An error of the engine.
    fn in_place(&self) -> Result<()> {
        self.settle()
    }
}

/// The rows of an open transaction.
pub trait Rows {
    /// Inserts a row, or replaces the one of that key.
    ///
    /// # Errors
    /// An error of the engine.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
}
