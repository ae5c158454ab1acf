use super::Committer;
use crate::Error;
use experiments::Durability;
use filestats::{Meaning, Snapshot};
use pagestore::{AwakeTrial, KeepAwake, Layout, Options, Store, Table};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Our page store in this program. Each step has a store of its own, which counts its I/O itself.
pub(super) struct Pagestore {
    layout: Layout,
    options: Options,
    /// Of the step.
    dir: PathBuf,
    store: Option<Open>,
    /// The result of the store's trial whether polling pays.
    awake: Option<AwakeTrial>,
}

struct Open {
    store: Store,
    table: Table,
    durability: pagestore::Durability,
}

/// Bytes of log for a commit of one row.
const COMMIT_BYTES: u64 = 4 << 10;
/// Limits of the whole log.
const LOG_BYTES: Range<u64> = 8 << 20..256 << 20;
const VLFS: u64 = 2;

/// Bytes of log for a step: enough that a step needs no second virtual log file, unless it has very many rows.
pub(super) fn log_bytes(rows: u64) -> u64 {
    let needed = rows.saturating_mul(COMMIT_BYTES).saturating_add(1 << 20);
    needed.saturating_mul(VLFS).clamp(LOG_BYTES.start, LOG_BYTES.end)
}

impl Pagestore {
    pub(super) fn new(rows: u64, keep_awake: KeepAwake) -> Pagestore {
        let vlf_bytes = (log_bytes(rows) / VLFS).next_multiple_of(1 << 20);
        let layout = Layout { vlf_bytes, vlfs: VLFS as usize, ..Layout::default() };
        let options = Options { keep_awake, ..Options::default() };
        Pagestore { layout, options, dir: PathBuf::new(), store: None, awake: None }
    }

    fn doing<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Open) -> pagestore::Result<T>,
    ) -> Result<T, Error> {
        work(self.store.as_ref().expect("begun")).map_err(Error::pagestore(doing, &self.dir))
    }

    fn make(&self, durability: Durability) -> pagestore::Result<Open> {
        let store = Store::create(&self.dir, self.layout, self.options)?;
        let mut tx = store.write()?;
        let table = tx.create_table("numbers")?;
        tx.commit(pagestore::Durability::Full)?;
        let durability = match durability {
            Durability::Full => pagestore::Durability::Full,
            Durability::Delayed => pagestore::Durability::Delayed,
        };
        Ok(Open { store, table, durability })
    }
}

impl Committer for Pagestore {
    fn begin(&mut self, dir: &Path, durability: Durability) -> Result<(), Error> {
        self.dir = dir.into();
        self.store = Some(self.make(durability).map_err(Error::pagestore("make the table", dir))?);
        Ok(())
    }

    fn commit(&mut self, rows: Range<u64>) -> Result<(), Error> {
        self.doing("insert", |open| {
            let mut tx = open.store.write()?;
            for n in rows {
                let n = (n as u32).to_be_bytes();
                tx.put(open.table, &n, &n)?;
            }
            tx.commit(open.durability).map(drop)
        })
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.doing("write the log", |open| open.store.flush())
    }

    fn counters(&mut self) -> Result<Option<Snapshot>, Error> {
        let Some(open) = &self.store else { return Ok(None) };
        let reading = open.store.counters();
        let mut snapshot =
            collect::published::in_process(&self.dir, "pagestore", &self.dir.to_string_lossy(), &reading);
        // The figures of the log include the waits of commits.
        snapshot.waits.clear();
        // The engine uses direct I/O: each of its requests reaches the storage.
        for sample in &mut snapshot.samples {
            sample.meaning = Meaning::REQUESTS;
        }
        Ok(Some(snapshot))
    }

    fn end(&mut self) -> Result<(), Error> {
        let tried = self.store.take().and_then(|open| open.store.awake_trial());
        self.awake = tried.or(self.awake);
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "pagestore writes its log through to the storage: such a write has its sync in it, and in its time".into(),
        ];
        if let Some(tried) = self.awake {
            let us = |ns| ns as f64 / 1e3;
            notes.push(format!(
                "pagestore {} the processor of who waits {} sleeping: it tried both, and a log write took {:.1} us while its \
                 waiters polled, {:.1} us while they slept; the others' commits include the wake-up",
                if tried.pays() { "keeps" } else { "leaves" },
                if tried.pays() { "from" } else { "to its" },
                us(tried.awake_ns),
                us(tried.asleep_ns),
            ));
        }
        notes
    }
}
