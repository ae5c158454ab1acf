//! The baseline that later results are compared with.

use crate::clock::latest_unix_ns;
use crate::exact::{Exact, Word};
use crate::statements::{insert, rows};
use crate::{EntryKind, Error, History, ResultId};

impl History {
    /// Makes these runs, or this capability, the baseline, replacing the one before.
    ///
    /// # Errors
    /// [`Error::NotFound`] where one of them does not exist; then the baseline is unchanged.
    pub fn set_baseline(&mut self, kind: EntryKind, ids: &[ResultId]) -> Result<(), Error> {
        for id in ids {
            self.show(kind, id.0)?;
        }
        let now = Exact(host::unix_ns());
        self.transact("set the baseline", |transaction| {
            transaction.execute("DELETE FROM baseline", [])?;
            for id in ids {
                insert(
                    transaction,
                    "baseline",
                    &[("kind", &Word(kind)), ("entry_id", &id.0), ("set_unix_ns", &now)],
                )?;
            }
            Ok(())
        })
    }

    /// The baseline's kind and entries; `None` where none was set.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn baseline(&self) -> Result<Option<(EntryKind, Vec<ResultId>)>, Error> {
        let query = "SELECT kind, entry_id FROM baseline ORDER BY position";
        let entries: Vec<(Word<EntryKind>, ResultId)> = self
            .execute("look for the baseline", |connection| {
                rows(connection, query, [], |row| Ok((row.get(0)?, ResultId(row.get(1)?))))
            })?;
        let kind = entries.first().map(|(Word(kind), _)| *kind);
        Ok(kind.map(|kind| (kind, entries.into_iter().map(|(_, id)| id).collect())))
    }

    /// The newest run; `None` where there is none.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn newest_run(&self) -> Result<Option<ResultId>, Error> {
        self.newest("SELECT id FROM runs ORDER BY started_unix_ns > ?, started_unix_ns DESC, id DESC LIMIT 1")
    }

    /// The newest capability; `None` where there is none.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn newest_capability(&self) -> Result<Option<ResultId>, Error> {
        let query = "SELECT id FROM capabilities ORDER BY measured_unix_ns > ?, measured_unix_ns DESC, id DESC LIMIT 1";
        self.newest(query)
    }

    /// The newest result. A result dated in the future counts only where there is no other.
    fn newest(&self, query: &str) -> Result<Option<ResultId>, Error> {
        let latest = [Exact(latest_unix_ns())];
        self.first_row("look for the newest result", query, latest, |row| row.get(0).map(ResultId))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{RunResult, Shape, Workload};

    #[test]
    fn a_baseline_is_replaced_as_a_whole_and_only_by_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(&dir.path().join("history.db")).unwrap();
        assert_eq!(history.baseline().unwrap(), None);
        assert_eq!(history.newest_run().unwrap(), None);
        let run = RunResult::empty(Workload::from(Shape::random_read(8192)), "t".into());
        let ids: Vec<ResultId> = (0..3).map(|_| history.save_run(&run, None).unwrap()).collect();
        assert_eq!(history.newest_run().unwrap(), Some(ids[2]));
        history.set_baseline(EntryKind::Run, &ids[..2]).unwrap();
        history.set_baseline(EntryKind::Run, &[ids[2], ids[0]]).unwrap();
        let missing = history.set_baseline(EntryKind::Run, &[ids[1], ResultId(99)]);
        assert!(matches!(missing, Err(Error::NotFound { id: 99, .. })));
        assert_eq!(history.baseline().unwrap(), Some((EntryKind::Run, vec![ids[2], ids[0]])));
    }
}
