//! The page store in redb's own benchmark: an adapter for its `BenchDatabase`. `scripts/bench pagestore` puts it
//! beside the benchmarks of the crate `redb-bench-compare`, which it fetches and which has the adapters of the others.
//!
//! ```text
//! pagestore_benchmark ENGINE...     of redb, pagestore, lmdb, sqlite, sqlite-wal; prints one table
//! ```

mod common;

use common::{HeedBenchDatabase, SqliteBenchDatabase};
use pagestore::{Durability, ExtractIf, Layout, Options, Range, ReadTx, Store, Table, Tables, Value, WriteTx};
use redb_bench::*;
use std::ops::Bound;
use std::path::Path;
use std::time::Instant;
use tempfile::{NamedTempFile, TempDir};

fn main() {
    let place = benchmark_dir();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let results: Vec<_> = wanted
        .iter()
        .map(|engine| match engine.as_str() {
            "redb" => {
                let file = NamedTempFile::new_in(&place).unwrap();
                let mut db = redb::Database::builder().set_cache_size(CACHE_SIZE).create(file.path()).unwrap();
                ("redb", benchmark(RedbBenchDatabase::new(&mut db), file.path()))
            }
            "pagestore" => {
                let directory = TempDir::new_in(&place).unwrap();
                ("pagestore", benchmark(PageStore::new(directory.path()), directory.path()))
            }
            // The size of the map as in redb's own program.
            "lmdb" => {
                let directory = TempDir::new_in(&place).unwrap();
                // SAFETY: nothing else opens or changes the files of this new directory.
                let env = unsafe { heed::EnvOpenOptions::new().map_size(4 << 30).open(directory.path()).unwrap() };
                ("lmdb", benchmark(HeedBenchDatabase::new(env), directory.path()))
            }
            "sqlite" => {
                let file = NamedTempFile::new_in(&place).unwrap();
                ("sqlite", benchmark(SqliteBenchDatabase::new(file.path()), file.path()))
            }
            "sqlite-wal" => {
                let directory = TempDir::new_in(&place).unwrap();
                let file = directory.path().join("db");
                // The file keeps its journal mode: each connection of the benchmark has it.
                let mode = "PRAGMA journal_mode = WAL";
                rusqlite::Connection::open(&file).unwrap().query_row(mode, [], |_| Ok(())).unwrap();
                ("sqlite-wal", benchmark(SqliteBenchDatabase::new(&file), directory.path()))
            }
            other => panic!("there is no engine {other}: redb, pagestore, lmdb, sqlite, sqlite-wal"),
        })
        .collect();
    print_results_table(&results);
}

/// Pages that one step of a compaction changes at most.
const PAGES_PER_STEP: usize = 1024;

struct PageStore {
    store: Store,
    table: Table,
}

impl PageStore {
    fn new(directory: &Path) -> Self {
        let options = Options { cache_bytes: CACHE_SIZE, publish: false, ..Options::default() };
        let store = Store::create(directory, Layout::default(), options).unwrap();
        let table = store.transact(Durability::Full, |tx| tx.open_or_create_table("x")).unwrap();
        Self { store, table }
    }
}

impl BenchDatabase for PageStore {
    type C<'db> = Connection<'db>;

    fn db_type_name() -> &'static str {
        "pagestore"
    }

    fn connect(&self) -> Self::C<'_> {
        Connection { database: self, durability: Durability::Full }
    }

    fn compact(&mut self) -> bool {
        let begun = Instant::now();
        let mut done = self.store.compact(PAGES_PER_STEP).unwrap();
        while !done.is_done {
            done = self.store.compact(PAGES_PER_STEP).unwrap();
        }
        println!("pagestore: compacted in {}ms, {done:?}", begun.elapsed().as_millis());
        true
    }
}

struct Connection<'db> {
    database: &'db PageStore,
    durability: Durability,
}

impl BenchDatabaseConnection for Connection<'_> {
    type W<'db>
        = Writer<'db>
    where
        Self: 'db;
    type R<'db>
        = Reader<'db>
    where
        Self: 'db;

    fn set_sync(&mut self, sync: bool) -> bool {
        self.durability = if sync { Durability::Full } else { Durability::Delayed };
        true
    }

    fn write_transaction(&self) -> Self::W<'_> {
        Writer { tx: self.database.store.write().unwrap(), table: self.database.table, durability: self.durability }
    }

    fn read_transaction(&self) -> Self::R<'_> {
        Reader { tx: self.database.store.read().unwrap(), table: self.database.table }
    }
}

struct Writer<'db> {
    tx: WriteTx<'db>,
    table: Table,
    durability: Durability,
}

impl<'db> BenchWriteTransaction for Writer<'db> {
    type W<'txn>
        = Inserter<'txn, 'db>
    where
        Self: 'txn;

    fn get_inserter(&mut self) -> Self::W<'_> {
        Inserter { tx: &mut self.tx, table: self.table }
    }

    fn commit(self) -> Result<(), ()> {
        self.tx.commit(self.durability).map(drop).map_err(drop)
    }
}

struct Inserter<'txn, 'db> {
    tx: &'txn mut WriteTx<'db>,
    table: Table,
}

struct Extracted<'txn, 'db, F>(ExtractIf<'txn, 'db, F>);

impl<F: for<'e> FnMut(&'e [u8], &'e [u8]) -> bool> BenchIterator for Extracted<'_, '_, F> {
    type Output<'out>
        = &'out [u8]
    where
        Self: 'out;

    fn next(&mut self) -> Option<(&[u8], &[u8])> {
        self.0.next_entry().unwrap()
    }
}

impl<'db> BenchInserter for Inserter<'_, 'db> {
    type Output<'out>
        = Vec<u8>
    where
        Self: 'out;
    type ExtractIfIterator<'out, F>
        = Extracted<'out, 'db, F>
    where
        Self: 'out,
        F: for<'f> FnMut(&'f [u8], &'f [u8]) -> bool + 'out;

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<(), ()> {
        self.tx.put(self.table, key, value).map_err(drop)
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), ()> {
        self.tx.delete(self.table, key).map(drop).map_err(drop)
    }

    fn pop_first(&mut self) -> BenchPopResult<'_, Self> {
        self.tx.pop_first(self.table).map_err(drop)
    }

    fn pop_last(&mut self) -> BenchPopResult<'_, Self> {
        self.tx.pop_last(self.table).map_err(drop)
    }

    fn retain<F: FnMut(&[u8], &[u8]) -> bool>(&mut self, predicate: F) -> Result<u64, ()> {
        self.tx.retain(self.table, predicate).map_err(drop)
    }

    fn extract_if<'a, F>(
        &'a mut self,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        predicate: F,
    ) -> BenchExtractIfResult<'a, Self, F>
    where
        F: for<'f> FnMut(&'f [u8], &'f [u8]) -> bool + 'a,
    {
        self.tx.extract_if(self.table, range, predicate).map(Extracted).map_err(drop)
    }
}

struct Reader<'db> {
    tx: ReadTx<'db>,
    table: Table,
}

impl<'db> BenchReadTransaction for Reader<'db> {
    type T<'txn>
        = TableReader<'txn, 'db>
    where
        Self: 'txn;

    fn get_reader(&self) -> Self::T<'_> {
        TableReader { tx: &self.tx, table: self.table }
    }
}

struct TableReader<'txn, 'db> {
    tx: &'txn ReadTx<'db>,
    table: Table,
}

struct Entries<'txn, 'db>(Range<'txn, ReadTx<'db>>);

impl BenchIterator for Entries<'_, '_> {
    type Output<'out>
        = &'out [u8]
    where
        Self: 'out;

    fn next(&mut self) -> Option<(&[u8], &[u8])> {
        self.0.next_entry().unwrap()
    }
}

impl<'txn, 'db> BenchReader for TableReader<'txn, 'db> {
    type Output<'out>
        = Value<'out>
    where
        Self: 'out;
    type Iterator<'out>
        = Entries<'out, 'db>
    where
        Self: 'out;

    fn get<'a>(&'a mut self, key: &[u8]) -> Option<Value<'a>> {
        self.tx.get_ref(self.table, key).unwrap()
    }

    fn range_from<'a>(&'a mut self, start: &'a [u8]) -> Self::Iterator<'a> {
        let bounds = (Bound::Included(start), Bound::Unbounded);
        Entries(self.tx.range_within(self.table, bounds).unwrap())
    }

    fn len(&mut self) -> u64 {
        self.tx.len(self.table).unwrap()
    }
}
