//! Observed figures of each storage: one row for each, replaced as more is observed.

use crate::clock::latest_unix_ns;
use crate::exact::{Exact, Json};
use crate::{Error, History};
use host::unix_ns;
use rusqlite::Connection;
use seen::Seen;
use workload::TargetFacts;

impl History {
    /// Keeps the observed figures of a storage, in place of its former ones.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_seen(&mut self, target: &TargetFacts, seen: &Seen) -> Result<(), Error> {
        self.execute("save what a storage was seen to give", |connection| save_seen(connection, target, seen))
    }

    /// Observed figures of the storage that the target is on.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn seen(&self, target: &TargetFacts) -> Result<Option<Seen>, Error> {
        let query = "SELECT json FROM seen WHERE storage = ?";
        self.first_row("look for what a storage was seen to give", query, [identity(target)], |row| {
            row.get(0).map(|Json(seen)| seen)
        })
    }

    /// Observed figures of each storage, with the mount point or path that it is known by, most recently observed first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn newest_seen(&self, limit: usize) -> Result<Vec<(String, Seen)>, Error> {
        let query = "SELECT coalesce(json_extract(storage, '$[0]'), json_extract(storage, '$[2]'), ''), json FROM seen \
                     ORDER BY updated_unix_ns DESC LIMIT ?";
        self.rows("list what storages were seen to give", query, [limit as i64], |row| {
            let Json(seen) = row.get(1)?;
            Ok((row.get(0)?, seen))
        })
    }
}

/// Storages that are kept, those that were seen last: about 10 MB at most.
const STORAGES_MAX: i64 = 1_000;

/// The row of a storage, in the place of the one before.
pub(crate) fn save_seen(connection: &Connection, target: &TargetFacts, seen: &Seen) -> rusqlite::Result<()> {
    let values = (identity(target), Exact(unix_ns()), Json(seen));
    connection.prepare_cached("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)")?.execute(values)?;
    let surplus = "DELETE FROM seen WHERE storage IN \
                   (SELECT storage FROM seen ORDER BY updated_unix_ns > ?, updated_unix_ns DESC LIMIT -1 OFFSET ?)";
    connection.prepare_cached(surplus)?.execute((Exact(latest_unix_ns()), STORAGES_MAX))?;
    Ok(())
}

/// Whether two targets are on one storage, as far as kept observations are concerned.
pub fn is_same_storage(one: &TargetFacts, other: &TargetFacts) -> bool {
    identity(one) == identity(other)
}

/// Identity of a storage, as for a capability.
pub(crate) fn identity(target: &TargetFacts) -> String {
    let device = target.devices.first();
    let device = device.map(|it| (&it.number, &it.name, it.size_bytes, &it.backing_file, &it.model));
    let path = (device.is_none() && target.mount.is_none()).then_some(&target.path);
    let identity = serde_json::json!([target.mount, device, path]);
    identity.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::TargetKind;

    fn facts(mount: &str) -> TargetFacts {
        TargetFacts {
            path: format!("{mount}/db"),
            kind: TargetKind::Directory,
            filesystem: None,
            mount: Some(mount.into()),
            free_bytes: 0,
            devices: Vec::new(),
            direct_align_bytes: None,
            memory_align_bytes: 512,
            caps: Vec::new(),
        }
    }

    #[test]
    fn the_newest_state_of_each_storage_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(&dir.path().join("history.db")).unwrap();
        let seen = |until_unix_ns| Seen { until_unix_ns, ..Seen::default() };
        assert_eq!(history.seen(&facts("/a")).unwrap(), None);
        for until in [1, 2] {
            history.save_seen(&facts("/a"), &seen(until)).unwrap();
        }
        history.save_seen(&facts("/b"), &seen(9)).unwrap();
        assert_eq!(history.seen(&facts("/a")).unwrap(), Some(seen(2)));
        assert_eq!(history.seen(&facts("/b")).unwrap(), Some(seen(9)));
        let mut found: Vec<(String, u64)> = history
            .newest_seen(9)
            .unwrap()
            .into_iter()
            .map(|(place, seen)| (place, seen.until_unix_ns))
            .collect();
        found.sort();
        assert_eq!(found, [("/a".to_owned(), 2), ("/b".to_owned(), 9)]);
    }
}
