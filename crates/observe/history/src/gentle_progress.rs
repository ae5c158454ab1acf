//! Progress of a gentle measurement of each storage: one row for each, until it is complete. The value is the caller's.

use crate::clock::latest_unix_ns;
use crate::exact::{Exact, Json};
use crate::seen_storage::identity;
use crate::{Error, History};
use host::unix_ns;
use serde::Serialize;
use serde::de::DeserializeOwned;
use workload::TargetFacts;

/// Storages whose progress is kept, those that were measured last.
const STORAGES_MAX: i64 = 100;

impl History {
    /// Keeps the progress of a storage, in place of its former progress.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_gentle<T: Serialize>(&mut self, target: &TargetFacts, progress: &T) -> Result<(), Error> {
        self.execute("save the progress of a gentle measurement", |connection| {
            let values = (identity(target), Exact(unix_ns()), Json(progress));
            connection.prepare_cached("INSERT OR REPLACE INTO gentle VALUES (?, ?, ?)")?.execute(values)?;
            let surplus = "DELETE FROM gentle WHERE storage IN \
                           (SELECT storage FROM gentle ORDER BY updated_unix_ns > ?, updated_unix_ns DESC LIMIT -1 OFFSET ?)";
            connection.prepare_cached(surplus)?.execute((Exact(latest_unix_ns()), STORAGES_MAX))?;
            Ok(())
        })
    }

    /// The progress of a storage, and when it was kept, nanoseconds since 1970.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn gentle<T: DeserializeOwned>(&self, target: &TargetFacts) -> Result<Option<(u64, T)>, Error> {
        let query = "SELECT updated_unix_ns, json FROM gentle WHERE storage = ?";
        self.first_row("look for a gentle measurement", query, [identity(target)], |row| {
            let (Exact(at), Json(progress)) = (row.get(0)?, row.get(1)?);
            Ok((at, progress))
        })
    }

    /// Forgets the progress of a storage.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn forget_gentle(&mut self, target: &TargetFacts) -> Result<(), Error> {
        self.execute("forget a gentle measurement", |connection| {
            connection.execute("DELETE FROM gentle WHERE storage = ?", [identity(target)]).map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::TargetKind;

    #[test]
    fn the_progress_of_a_storage_is_kept_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(&dir.path().join("history.db")).unwrap();
        let facts = TargetFacts {
            path: "/a/db".into(),
            kind: TargetKind::Directory,
            filesystem: None,
            mount: Some("/a".into()),
            free_bytes: 0,
            devices: Vec::new(),
            direct_align_bytes: None,
            memory_align_bytes: 512,
            caps: Vec::new(),
        };
        assert_eq!(history.gentle::<Vec<u32>>(&facts).unwrap(), None);
        history.save_gentle(&facts, &vec![1]).unwrap();
        history.save_gentle(&facts, &vec![1, 2]).unwrap();
        let (at, progress) = history.gentle::<Vec<u32>>(&facts).unwrap().unwrap();
        assert!(progress == [1, 2] && at <= unix_ns() && at > 0);
        assert!(history.gentle::<String>(&facts).is_err(), "another value than was kept");
        history.forget_gentle(&facts).unwrap();
        assert_eq!(history.gentle::<Vec<u32>>(&facts).unwrap(), None);
    }
}
