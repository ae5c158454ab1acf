//! Imported runs of other tools, each kept once.

use crate::exact::Exact;
use crate::results::storable;
use crate::runs::insert_run;
use crate::statements::insert;
use crate::{EntryKind, Error, History, ResultId};
use host::unix_ns;
use workload::RunResult;

impl History {
    /// The runs of the text with that fingerprint, in their order; none where it was not imported.
    ///
    /// # Errors
    /// Where the history cannot be read.
    pub fn imported(&self, fingerprint: &str) -> Result<Vec<ResultId>, Error> {
        let query = "SELECT run_id FROM imports WHERE fingerprint = ? ORDER BY run_id";
        self.rows("look for an import", query, [fingerprint], |row| row.get(0).map(ResultId))
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
        let json = runs.iter().map(|run| storable(EntryKind::Run, run)).collect::<Result<Vec<_>, Error>>()?;
        let now = Exact(unix_ns());
        self.transact("save an import", |transaction| {
            let save = |(run, json): (&RunResult, &String)| {
                let id = insert_run(transaction, None, run, json)?;
                insert(
                    transaction,
                    "imports",
                    &[
                        ("fingerprint", &fingerprint),
                        ("run_id", &id.0),
                        ("file", &file),
                        ("imported_unix_ns", &now),
                    ],
                )?;
                Ok(id)
            };
            runs.iter().zip(&json).map(save).collect()
        })
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
