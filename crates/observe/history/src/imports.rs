//! Imported runs of other tools, each kept once.

use crate::exact::Exact;
use crate::{Error, History, ResultId, now_unix_ns};
use rusqlite::named_params;
use workload::RunResult;

impl History {
    /// The runs of the text with that fingerprint, in their order; none where it was not imported.
    ///
    /// # Errors
    /// Where the history cannot be read.
    pub fn imported(&self, fingerprint: &str) -> Result<Vec<ResultId>, Error> {
        let read = || -> rusqlite::Result<Vec<_>> {
            let query = "SELECT run_id FROM imports WHERE fingerprint = ? ORDER BY run_id";
            let mut rows = self.connection.prepare_cached(query)?;
            rows.query_map([fingerprint], |row| row.get(0).map(ResultId))?.collect()
        };
        read().map_err(|source| Error::sqlite("look for an import", &self.path, source))
    }

    /// Keeps the runs of one text, all of them or none, and its fingerprint.
    ///
    /// # Errors
    /// Where the history cannot be written.
    pub fn save_imported(
        &mut self,
        runs: &[RunResult],
        fingerprint: &str,
        file: &str,
    ) -> Result<Vec<ResultId>, Error> {
        let path = self.path.clone();
        let failed = |source| Error::sqlite("save an import", &path, source);
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        let saved = self.save_each(runs, fingerprint, file);
        let end = if saved.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.connection.execute_batch(end).map_err(failed)?;
        saved
    }

    fn save_each(
        &mut self,
        runs: &[RunResult],
        fingerprint: &str,
        file: &str,
    ) -> Result<Vec<ResultId>, Error> {
        let mut ids = Vec::with_capacity(runs.len());
        for run in runs {
            let id = self.save_run(run)?;
            let insert = "INSERT INTO imports (fingerprint, run_id, file, imported_unix_ns) \
                 VALUES (:fingerprint, :run, :file, :now)";
            let values = named_params! {
                ":fingerprint": fingerprint, ":run": id.0, ":file": file, ":now": Exact(now_unix_ns()),
            };
            let inserted = self.connection.execute(insert, values);
            inserted.map_err(|source| Error::sqlite("save an import", &self.path, source))?;
            ids.push(id);
        }
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Shape, Workload};

    #[test]
    fn a_text_is_known_by_its_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(&dir.path().join("history.db")).unwrap();
        assert_eq!(history.imported("a").unwrap(), []);
        let run = RunResult::empty(Workload::from(Shape::random_read(4096)), "E:\\test.dat".into());
        let ids = history.save_imported(&[run.clone(), run.clone()], "a", "dated.txt").unwrap();
        assert_eq!(history.imported("a").unwrap(), ids);
        assert_eq!(history.imported("b").unwrap(), []);
        assert_eq!(history.run(ids[1]).unwrap(), run);
    }

    #[test]
    fn an_import_that_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(&dir.path().join("history.db")).unwrap();
        let good = RunResult::empty(Workload::from(Shape::random_read(4096)), "a".into());
        let mut bad = good.clone();
        bad.read.percentiles = vec![(f64::NAN, 1)];
        assert!(matches!(history.save_imported(&[good, bad], "a", "x"), Err(Error::NotStorable { .. })));
        assert_eq!(history.imported("a").unwrap(), []);
        assert_eq!(history.entries(10).unwrap(), []);
    }
}
