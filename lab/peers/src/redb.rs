//! redb. Full is `Durability::Immediate`, its default. Delayed is `Durability::None`: durable with the next full commit.

use crate::{Error, Peer, Result, Rows};
use experiments::Durability;
use redb::{Database, ReadableDatabase, TableDefinition, TableError};
use std::path::{Path, PathBuf};

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");

pub(crate) struct Redb {
    database: Database,
    dir: PathBuf,
}

impl Redb {
    pub(crate) fn open(dir: &Path) -> Result<Redb> {
        let database = Database::create(dir.join("data.redb"));
        let database = database.map_err(|error| failed(dir, "open its database")(error.into()))?;
        Ok(Redb { database, dir: dir.into() })
    }

    fn failed<E: Into<redb::Error>>(&self, doing: &'static str) -> impl Fn(E) -> Error {
        let failed = failed(&self.dir, doing);
        move |error| failed(error.into())
    }
}

fn failed(dir: &Path, doing: &'static str) -> impl Fn(redb::Error) -> Error {
    let dir = dir.to_owned();
    move |error| Error::Engine { engine: "redb", doing, dir: dir.clone(), why: error.to_string() }
}

struct Table<'a, 'tx> {
    table: redb::Table<'tx, &'static [u8], &'static [u8]>,
    database: &'a Redb,
}

impl Rows for Table<'_, '_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.table.insert(key, value).map(drop).map_err(self.database.failed("put a row"))
    }
}

impl Peer for Redb {
    fn commit(
        &self,
        durability: Durability,
        fill: &mut dyn FnMut(&mut dyn Rows) -> Result<()>,
    ) -> Result<()> {
        let mut tx = self.database.begin_write().map_err(self.failed("begin"))?;
        let setting = match durability {
            Durability::Full => redb::Durability::Immediate,
            Durability::Delayed => redb::Durability::None,
        };
        tx.set_durability(setting).map_err(self.failed("begin"))?;
        let table = tx.open_table(ROWS).map_err(self.failed("open its table"))?;
        let mut rows = Table { table, database: self };
        fill(&mut rows)?;
        drop(rows);
        tx.commit().map_err(self.failed("commit"))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let tx = self.database.begin_read().map_err(self.failed("begin to read"))?;
        let table = match tx.open_table(ROWS) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            table => table.map_err(self.failed("open its table"))?,
        };
        let value = table.get(key).map_err(self.failed("read"))?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    fn settle(&self) -> Result<()> {
        self.commit(Durability::Full, &mut |_| Ok(()))
    }
}
