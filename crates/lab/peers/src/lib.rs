//! Embedded engines of others, beside which our own is measured: each a file, all behind one small trait.
//!
//! ```text
//! Engine::open(dir)  ──>  Peer   commit(durability, |rows| rows.put(key, value))   one transaction
//!                                get(key)
//!                                settle()     what was acknowledged early becomes durable
//!                                in_place()   nothing is left in a log: opening again has nothing to redo
//!                                drop         closes it
//!
//! redb      a crate              data.redb   copy on write, no log
//! lmdb      liblmdb.so           data.mdb    copy on write, no log; its system's package
//! rocksdb   librocksdb.so        NNNNNN.log, *.sst, ...           ; its system's package
//! ```
//!
//! LMDB and RocksDB are looked up when they are opened: Headroom needs neither to be built nor to run. `library` finds
//! the functions, and all that is unsafe is in it and in the two files that call them.
//!
//! Each engine is as delivered but for what durability asks for: no cache, page or log size is set.

mod error;
mod library;
mod lmdb;
mod redb;
mod rocksdb;

pub use error::Error;
use experiments::Durability;
use std::path::Path;

/// What goes wrong with an engine.
pub type Result<T> = std::result::Result<T, Error>;

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// redb: in Rust, a copy-on-write B+tree in one file.
    Redb,
    /// LMDB: a copy-on-write B+tree, mapped.
    Lmdb,
    /// RocksDB: a log-structured merge tree with a write-ahead log.
    Rocksdb,
}

impl Engine {
    /// All of them.
    pub const ALL: [Engine; 3] = [Engine::Redb, Engine::Lmdb, Engine::Rocksdb];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Redb => "redb",
            Engine::Lmdb => "lmdb",
            Engine::Rocksdb => "rocksdb",
        }
    }

    /// Whether its library is here. Nothing of it is started: RocksDB's threads see the mounts of the first that opens it.
    ///
    /// # Errors
    /// Where it is not installed.
    pub fn find(self) -> Result<()> {
        match self {
            Engine::Redb => Ok(()),
            Engine::Lmdb => lmdb::Lmdb::find(),
            Engine::Rocksdb => rocksdb::Rocksdb::find(),
        }
    }

    /// Opens the database in that directory, which is there; makes one where there is none, and recovers one that was
    /// not closed.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or what the engine says.
    pub fn open(self, dir: &Path) -> Result<Box<dyn Peer>> {
        Ok(match self {
            Engine::Redb => Box::new(redb::Redb::open(dir)?),
            Engine::Lmdb => Box::new(lmdb::Lmdb::open(dir)?),
            Engine::Rocksdb => Box::new(rocksdb::Rocksdb::open(dir)?),
        })
    }

    /// Whether a commit writes to a log, and to the data only later.
    pub const fn has_log(self) -> bool {
        match self {
            Engine::Redb | Engine::Lmdb => false,
            Engine::Rocksdb => true,
        }
    }

    /// Whether a file of the database, by its name, is its log.
    pub fn is_log(self, file: &Path) -> bool {
        self.has_log() && file.extension().is_some_and(|extension| extension == "log")
    }
}

/// An open database of keys and values, ordered by key. Threads share it by reference.
pub trait Peer: Send + Sync {
    /// Does `fill` in one transaction and commits it. Where `fill` fails, nothing of it is there.
    ///
    /// # Errors
    /// What `fill` returned, or what the engine says.
    fn commit(&self, durability: Durability, fill: &mut dyn FnMut(&mut dyn Rows) -> Result<()>)
    -> Result<()>;

    /// The value of a key.
    ///
    /// # Errors
    /// What the engine says.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Makes durable what was acknowledged early.
    ///
    /// # Errors
    /// What the engine says.
    fn settle(&self) -> Result<()>;

    /// Writes all to where it stays: opening it again has nothing to redo.
    ///
    /// # Errors
    /// What the engine says.
    fn in_place(&self) -> Result<()>;
}

/// The rows of a transaction that has begun.
pub trait Rows {
    /// Puts a row in, over the one of that key.
    ///
    /// # Errors
    /// What the engine says.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
}
