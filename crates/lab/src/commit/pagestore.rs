use super::Committer;
use crate::Error;
use experiments::Durability;
use filestats::{Counters, Epoch, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample, Snapshot};
use pagestore::disk::{Calls, Counting, FileId};
use pagestore::{Layout, Options, Store, Table};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Our page store in this program, each step in a store of its own, counted between the engine and its files.
pub(super) struct Pagestore {
    dir: PathBuf,
    layout: Layout,
    step: u32,
    store: Option<Open>,
    began: Instant,
}

struct Open {
    store: Store,
    table: Table,
    counting: Arc<Counting>,
    durability: pagestore::Durability,
}

/// Log that a commit of its own takes.
const COMMIT_BYTES: u64 = 4 << 10;
/// Of the log as a whole.
const LOG_BYTES: Range<u64> = 8 << 20..256 << 20;
const VLFS: u64 = 2;

/// Space for the log of a step: each begins in one that is there, where the next one is not needed before its end unless
/// it has very many rows.
pub(super) fn log_bytes(rows: u64) -> u64 {
    let needed = rows.saturating_mul(COMMIT_BYTES).saturating_add(1 << 20);
    needed.saturating_mul(VLFS).clamp(LOG_BYTES.start, LOG_BYTES.end)
}

impl Pagestore {
    pub(super) fn open(dir: PathBuf, rows: u64) -> Pagestore {
        let vlf_bytes = (log_bytes(rows) / VLFS).next_multiple_of(1 << 20);
        let layout = Layout { vlf_bytes, vlfs: VLFS as usize, ..Layout::default() };
        Pagestore { dir, layout, step: 0, store: None, began: Instant::now() }
    }

    fn step_dir(&self) -> PathBuf {
        self.dir.join(self.step.to_string())
    }

    fn doing<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Open) -> pagestore::Result<T>,
    ) -> Result<T, Error> {
        let failed = |source| Error::Pagestore { doing, path: self.step_dir(), source };
        work(self.store.as_ref().expect("begun")).map_err(failed)
    }

    fn make(&self, durability: Durability) -> pagestore::Result<Open> {
        let mut counting = None;
        let store = Store::create_through(&self.step_dir(), self.layout, Options::default(), |disk| {
            counting.insert(Arc::new(Counting::new(disk))).clone()
        })?;
        let mut tx = store.write()?;
        let table = tx.create_table("numbers")?;
        tx.commit(pagestore::Durability::Full)?;
        let durability = match durability {
            Durability::Full => pagestore::Durability::Full,
            Durability::Delayed => pagestore::Durability::Delayed,
        };
        Ok(Open { store, table, counting: counting.expect("the store was made through it"), durability })
    }

    fn sample(&self, file: FileId, counting: &Counting) -> Sample {
        let ops = |calls: Calls| Ops::timed(calls.count, calls.bytes, calls.ns);
        let counted = counting.counted(file);
        let path = self.step_dir().join(file.name()).display().to_string();
        Sample {
            file: FileIdentity {
                instance: "pagestore".into(),
                database: None,
                database_id: None,
                file_id: path.clone(),
                kind: match file {
                    FileId::Log => FileKind::Log,
                    FileId::Data => FileKind::Data,
                    FileId::Control => FileKind::Other,
                },
                path,
                drive: None,
                handle: None,
                object: None,
            },
            epoch: Epoch::of_run(self.step.to_string()),
            meaning: Meaning::REQUESTS,
            counters: Counters {
                read: ops(counted.reads),
                write: ops(counted.writes),
                sync: Figure::Known(ops(counted.syncs)),
                busy_ns: Figure::unknown(Reason::NotCounted),
            },
            size_bytes: Figure::unknown(Reason::NotCounted),
            latencies: None,
        }
    }
}

impl Committer for Pagestore {
    fn begin(&mut self, durability: Durability) -> Result<(), Error> {
        self.step += 1;
        let made = self.make(durability);
        let failed = |source| Error::Pagestore { doing: "make the table", path: self.step_dir(), source };
        self.store = Some(made.map_err(failed)?);
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
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Some(Snapshot {
            source: "pagestore".into(),
            taken_unix_ns: since_1970.as_nanos() as u64,
            clock_ns: self.began.elapsed().as_nanos() as u64,
            complete: None,
            samples: FileId::ALL.into_iter().map(|file| self.sample(file, &open.counting)).collect(),
            waits: Vec::new(),
            notes: Vec::new(),
        }))
    }

    fn end(&mut self) -> Result<(), Error> {
        self.store = None;
        let dir = self.step_dir();
        std::fs::remove_dir_all(&dir).map_err(|source| Error::Io { doing: "remove", path: dir, source })
    }

    fn notes(&self) -> Vec<String> {
        vec!["pagestore writes its log through to the storage: such a write has its sync in it, and in its time".into()]
    }
}
