//! Test matrices: their definitions, and the state of their runs.

use crate::exact::{Exact, Json};
use crate::runs::insert_run;
use crate::{Error, History, ResultId, now_unix_ns};
use matrix::{Figures, Matrix, Progress, RunKey, RunState};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, named_params, params};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use workload::RunResult;

/// The number of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MatrixId(pub i64);

/// A matrix and the progress of its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixInfo {
    /// Its number.
    pub id: MatrixId,
    /// The name that the user gave it; may be empty.
    pub name: String,
    /// When it was started, nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// The target of its runs.
    pub targets: Vec<String>,
    /// Runs that are not done, the current one included.
    pub planned: u64,
    /// Runs with a result.
    pub done: u64,
    /// Runs that were skipped.
    pub skipped: u64,
}

impl History {
    /// Keeps a new matrix with all its runs planned. `owner` is the process that will run it.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn start_matrix(&mut self, matrix: &Matrix, owner: &str) -> Result<MatrixId, Error> {
        let points = matrix.points();
        self.write("start a matrix", |connection| {
            connection.execute(
                "INSERT INTO matrices (name, created_unix_ns, definition, spent_ns, owner) \
                 VALUES (:name, :now, :definition, 0, :owner)",
                named_params! {
                    ":name": matrix.name,
                    ":now": Exact(now_unix_ns()),
                    ":definition": Json(matrix),
                    ":owner": owner,
                },
            )?;
            let id = connection.last_insert_rowid();
            let mut insert = connection.prepare(
                "INSERT INTO matrix_points (matrix, point, repeat, seed, state) VALUES (?, ?, ?, ?, 'planned')",
            )?;
            for key in matrix.order() {
                let seed = Exact(matrix.seed(key, &points[key.point]));
                insert.execute(params![id, key.point, key.repeat, seed])?;
            }
            Ok(MatrixId(id))
        })
    }

    /// All matrices, the newest first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn matrices(&self) -> Result<Vec<MatrixInfo>, Error> {
        let read = || -> rusqlite::Result<Vec<MatrixInfo>> {
            let mut rows = self.connection.prepare_cached(
                "SELECT id, name, created_unix_ns, definition, sum(state IN ('planned', 'running')), \
                 sum(state = 'done'), sum(state = 'skipped') \
                 FROM matrices JOIN matrix_points ON matrix = id GROUP BY id ORDER BY id DESC",
            )?;
            let matrices = rows.query_map([], |row| {
                let (Exact(created_unix_ns), Json(matrix)) = (row.get(2)?, row.get::<_, Json<Matrix>>(3)?);
                let (Exact(planned), Exact(done), Exact(skipped)) = (row.get(4)?, row.get(5)?, row.get(6)?);
                let (id, name) = (MatrixId(row.get(0)?), row.get(1)?);
                Ok(MatrixInfo { id, name, created_unix_ns, targets: matrix.targets, planned, done, skipped })
            })?;
            matrices.collect()
        };
        read().map_err(|source| Error::sqlite("list the matrices", &self.path, source))
    }

    /// A matrix and the runs that are done. The kept seeds must be those that the definition yields: another order or
    /// seed would be another matrix.
    ///
    /// # Errors
    /// [`Error::NoMatrix`]; [`Error::ForeignMatrix`] where another version of Headroom gave other seeds.
    pub fn matrix(&self, id: MatrixId) -> Result<(Matrix, Progress), Error> {
        let failed = |source| Error::sqlite("read a matrix", &self.path, source);
        let query = "SELECT definition, spent_ns FROM matrices WHERE id = ?";
        let found = self.connection.query_row(query, [id.0], |row| {
            let (Json(matrix), Exact(spent_ns)) = (row.get::<_, Json<Matrix>>(0)?, row.get(1)?);
            Ok((matrix, spent_ns))
        });
        let no_matrix = || Error::NoMatrix { id: id.0, path: self.path.clone() };
        let (matrix, spent_ns) = found.optional().map_err(failed)?.ok_or_else(no_matrix)?;
        let rows = read_states(&self.connection, id).map_err(failed)?;
        let points = matrix.points();
        let mut progress = Progress::new(&matrix);
        let known = |key: &RunKey, seed: u64| {
            progress_has(&matrix, key) && matrix.seed(*key, &points[key.point]) == seed
        };
        if rows.len() != matrix.order().len() || rows.iter().any(|(key, seed, _)| !known(key, *seed)) {
            return Err(Error::ForeignMatrix { id: id.0, path: self.path.clone() });
        }
        rows.into_iter().for_each(|(key, _, state)| progress.set(key, state));
        progress.spent = Duration::from_nanos(spent_ns);
        Ok((matrix, progress))
    }

    /// The newest matrix with runs to do; with `matrix`, the newest of exactly that definition.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn unfinished_matrix(&self, matrix: Option<&Matrix>) -> Result<Option<MatrixId>, Error> {
        let query = "SELECT max(id) FROM matrices WHERE (:definition IS NULL OR definition = :definition) \
             AND EXISTS (SELECT * FROM matrix_points WHERE matrix = id AND state IN ('planned', 'running'))";
        let found =
            self.connection.query_row(query, named_params! { ":definition": matrix.map(Json) }, |row| {
                row.get::<_, Option<i64>>(0)
            });
        let found = found.map_err(|source| Error::sqlite("look for a matrix", &self.path, source))?;
        Ok(found.map(MatrixId))
    }

    /// Makes this process the owner of a matrix. A run that a dead owner had begun is planned again.
    /// `lives` returns whether the process of that name is alive.
    ///
    /// # Errors
    /// [`Error::MatrixInUse`] while a living process owns it; [`Error::NoMatrix`].
    pub fn take_matrix(
        &mut self,
        id: MatrixId,
        owner: &str,
        lives: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let path = self.path.clone();
        self.write("take over a matrix", |connection| {
            let query = "SELECT owner FROM matrices WHERE id = ?";
            let before: Option<Option<String>> =
                connection.query_row(query, [id.0], |row| row.get(0)).optional()?;
            match before {
                None => return Ok(Err(Error::NoMatrix { id: id.0, path: path.clone() })),
                Some(Some(before)) if before != owner && lives(&before) => {
                    return Ok(Err(Error::MatrixInUse { id: id.0, owner: before }));
                }
                Some(_) => {}
            }
            connection.execute("UPDATE matrices SET owner = ? WHERE id = ?", params![owner, id.0])?;
            connection.execute(
                "UPDATE matrix_points SET state = 'planned' WHERE matrix = ? AND state = 'running'",
                [id.0],
            )?;
            Ok(Ok(()))
        })?
    }

    /// Ends the ownership of a matrix; a run that was begun is planned again. A matrix without any result is removed.
    /// Returns whether it is kept.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn leave_matrix(&mut self, id: MatrixId) -> Result<bool, Error> {
        self.write("leave a matrix", |connection| {
            connection.execute(
                "UPDATE matrix_points SET state = 'planned' WHERE matrix = ? AND state = 'running'",
                [id.0],
            )?;
            let query = "SELECT EXISTS (SELECT * FROM matrix_points WHERE matrix = ? AND state <> 'planned')";
            let kept: bool = connection.query_row(query, [id.0], |row| row.get(0))?;
            if kept {
                connection.execute("UPDATE matrices SET owner = NULL WHERE id = ?", [id.0])?;
            } else {
                connection.execute("DELETE FROM matrix_points WHERE matrix = ?", [id.0])?;
                connection.execute("DELETE FROM matrices WHERE id = ?", [id.0])?;
            }
            Ok(kept)
        })
    }

    /// Notes that a run begins.
    ///
    /// # Errors
    /// [`Error::NotPlanned`] where it is done, or another process does it.
    pub fn begin_matrix_run(&mut self, id: MatrixId, key: RunKey) -> Result<(), Error> {
        let began = self.write("begin a run", |connection| {
            connection.execute(
                "UPDATE matrix_points SET state = 'running' \
                 WHERE matrix = ? AND point = ? AND repeat = ? AND state = 'planned'",
                params![id.0, key.point, key.repeat],
            )
        })?;
        if began == 1 { Ok(()) } else { Err(Error::NotPlanned { id: id.0, key }) }
    }

    /// Keeps the result of a run that was begun and marks it done, in one transaction.
    ///
    /// # Errors
    /// [`Error::NotPlanned`] where it was not begun or is done already; nothing is kept then.
    pub fn keep_matrix_run(
        &mut self,
        id: MatrixId,
        key: RunKey,
        result: &RunResult,
        took: Duration,
    ) -> Result<ResultId, Error> {
        let json = crate::results::storable(crate::EntryKind::Run, result)?;
        let took_ns = nanos(took);
        let kept = self.write("keep a run of a matrix", |connection| {
            // The run is claimed first: where that fails, the transaction has changed nothing.
            let query = "SELECT state FROM matrix_points WHERE matrix = ? AND point = ? AND repeat = ?";
            let state: Option<String> = connection
                .query_row(query, params![id.0, key.point, key.repeat], |row| row.get(0))
                .optional()?;
            if state.as_deref() != Some("running") {
                return Ok(None);
            }
            let run = insert_run(connection, None, "", result, &json)?;
            connection.execute(
                "UPDATE matrix_points SET state = 'done', run = :run, took_ns = :took \
                 WHERE matrix = :matrix AND point = :point AND repeat = :repeat",
                named_params! {
                    ":run": run.0, ":took": Exact(took_ns), ":matrix": id.0,
                    ":point": key.point, ":repeat": key.repeat,
                },
            )?;
            spend(connection, id, took_ns)?;
            Ok(Some(run))
        })?;
        kept.ok_or(Error::NotPlanned { id: id.0, key })
    }

    /// Marks runs as skipped, each with its reason.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn skip_matrix_runs(&mut self, id: MatrixId, skipped: &[(RunKey, String)]) -> Result<(), Error> {
        self.write("skip runs of a matrix", |connection| {
            let mut update = connection.prepare(
                "UPDATE matrix_points SET state = 'skipped', reason = ? \
                 WHERE matrix = ? AND point = ? AND repeat = ? AND state = 'planned'",
            )?;
            for (key, reason) in skipped {
                update.execute(params![reason, id.0, key.point, key.repeat])?;
            }
            Ok(())
        })
    }

    /// Adds time that a matrix took beside its runs.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn spend_matrix_time(&mut self, id: MatrixId, time: Duration) -> Result<(), Error> {
        self.write("note the time of a matrix", |connection| spend(connection, id, nanos(time)))
    }

    /// The size of a matrix's test files: the one noted first, so that it does not change when the matrix is
    /// continued on a disk with less room.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn matrix_file_bytes(&mut self, id: MatrixId, wanted: u64) -> Result<u64, Error> {
        self.write("note the size of a test file", |connection| {
            connection.execute(
                "UPDATE matrices SET file_bytes = ? WHERE id = ? AND file_bytes IS NULL",
                params![Exact(wanted), id.0],
            )?;
            let query = "SELECT file_bytes FROM matrices WHERE id = ?";
            connection.query_row(query, [id.0], |row| row.get(0)).map(|Exact(bytes)| bytes)
        })
    }

    /// The results of a point, with their numbers.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn matrix_results(
        &self,
        id: MatrixId,
        point: usize,
    ) -> Result<Vec<(RunKey, ResultId, RunResult)>, Error> {
        let read = || -> rusqlite::Result<Vec<_>> {
            let mut rows = self.connection.prepare_cached(
                "SELECT repeat, run, json FROM matrix_points JOIN runs ON runs.id = run \
                 WHERE matrix = ? AND point = ? ORDER BY repeat",
            )?;
            let results = rows.query_map(params![id.0, point], |row| {
                let Json(result) = row.get(2)?;
                Ok((RunKey { point, repeat: row.get(0)? }, ResultId(row.get(1)?), result))
            })?;
            results.collect()
        };
        read().map_err(|source| Error::sqlite("read the runs of a matrix", &self.path, source))
    }

    /// One transaction.
    fn write<T>(
        &mut self,
        doing: &'static str,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let path = self.path.clone();
        let changed = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(
            |transaction| {
                let value = change(&transaction)?;
                transaction.commit()?;
                Ok(value)
            },
        );
        changed.map_err(|source| Error::sqlite(doing, &path, source))
    }
}

fn progress_has(matrix: &Matrix, key: &RunKey) -> bool {
    (key.point as u64) < matrix.point_count() && key.repeat < matrix.runs.repeats
}

fn read_states(connection: &Connection, id: MatrixId) -> rusqlite::Result<Vec<(RunKey, u64, RunState)>> {
    let mut rows = connection.prepare_cached(
        "SELECT point, repeat, seed, state, reason, took_ns, iops, latency_ns FROM matrix_points \
         LEFT JOIN runs ON runs.id = run WHERE matrix = ? ORDER BY point, repeat",
    )?;
    let states = rows.query_map([id.0], |row| {
        let Exact(seed) = row.get(2)?;
        let state = match row.get::<_, String>(3)?.as_str() {
            "done" => {
                let Exact(took_ns) = row.get(5)?;
                let latency_ns = row.get::<_, Option<f64>>(7)?.unwrap_or(0.0);
                RunState::Done(Figures { iops: row.get(6)?, latency_ns, took: Duration::from_nanos(took_ns) })
            }
            "skipped" => RunState::Skipped { reason: row.get(4)? },
            _ => RunState::Planned,
        };
        Ok((RunKey { point: row.get(0)?, repeat: row.get(1)? }, seed, state))
    })?;
    states.collect()
}

fn spend(connection: &Connection, id: MatrixId, ns: u64) -> rusqlite::Result<()> {
    let query = "SELECT spent_ns FROM matrices WHERE id = ?";
    let Exact(spent_ns) = connection.query_row(query, [id.0], |row| row.get(0))?;
    let spent_ns = Exact(spent_ns.saturating_add(ns));
    connection.execute("UPDATE matrices SET spent_ns = ? WHERE id = ?", params![spent_ns, id.0]).map(drop)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for MatrixId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResultId;
    use workload::Workload;

    const NOBODY: fn(&str) -> bool = |_| false;

    fn history() -> (tempfile::TempDir, History) {
        let dir = tempfile::tempdir().unwrap();
        let history = History::open(&dir.path().join("history.db")).unwrap();
        (dir, history)
    }

    fn result(matrix: &Matrix, key: RunKey) -> RunResult {
        let point = &matrix.points()[key.point];
        let workload: Workload = matrix.workload(point, matrix.seed(key, point));
        let mut result = RunResult::empty(workload, "/data".into());
        result.elapsed_ns = 1_000_000_000;
        result.read.count = 1000;
        result.read.latency.record_n(1_000_000, 1000);
        result
    }

    #[test]
    fn a_run_and_its_state_come_together_and_once() {
        let (_dir, mut history) = history();
        let matrix = Matrix::default();
        let id = history.start_matrix(&matrix, "me").unwrap();
        let key = RunKey { point: 3, repeat: 0 };
        let result = result(&matrix, key);
        let second = Duration::from_secs(1);
        assert!(matches!(history.keep_matrix_run(id, key, &result, second), Err(Error::NotPlanned { .. })));
        history.begin_matrix_run(id, key).unwrap();
        assert!(matches!(history.begin_matrix_run(id, key), Err(Error::NotPlanned { .. })));
        let run = history.keep_matrix_run(id, key, &result, second).unwrap();
        assert!(matches!(history.keep_matrix_run(id, key, &result, second), Err(Error::NotPlanned { .. })));
        assert_eq!(run, ResultId(1));
        assert!(history.run(ResultId(2)).is_err(), "what was refused left nothing");
        let (read, progress) = history.matrix(id).unwrap();
        assert_eq!(read, matrix);
        assert_eq!((progress.counts(), progress.spent), ((6, 1, 0), second));
        let figures = Figures { iops: 1000.0, latency_ns: 1e6, took: second };
        assert_eq!(progress.get(key), Some(&RunState::Done(figures)));
        assert_eq!(history.matrix_file_bytes(id, 4096).unwrap(), 4096);
        assert_eq!(history.matrix_file_bytes(id, 512).unwrap(), 4096);
        assert_eq!(history.matrix_results(id, 3).unwrap(), [(key, run, result)]);
    }

    #[test]
    fn what_a_dead_process_had_begun_is_planned_again_and_a_living_one_is_left_alone() {
        let (_dir, mut history) = history();
        let id = history.start_matrix(&Matrix::default(), "first").unwrap();
        let key = RunKey { point: 0, repeat: 0 };
        history.begin_matrix_run(id, key).unwrap();
        let in_use = history.take_matrix(id, "second", |owner| owner == "first");
        assert!(matches!(in_use, Err(Error::MatrixInUse { .. })));
        history.take_matrix(id, "second", NOBODY).unwrap();
        let other = RunKey { point: 1, repeat: 0 };
        history.skip_matrix_runs(id, &[(other, "enough".into())]).unwrap();
        history.begin_matrix_run(id, key).unwrap();
        assert!(history.leave_matrix(id).unwrap());
        assert!(history.matrix(id).unwrap().1.is_planned(key));
        history.take_matrix(id, "third", |_| true).unwrap();
    }

    #[test]
    fn a_matrix_of_which_nothing_is_done_is_forgotten() {
        let (_dir, mut history) = history();
        let id = history.start_matrix(&Matrix::default(), "me").unwrap();
        history.begin_matrix_run(id, RunKey { point: 0, repeat: 0 }).unwrap();
        assert!(!history.leave_matrix(id).unwrap());
        assert!(matches!(history.matrix(id), Err(Error::NoMatrix { .. })));
        assert_eq!(history.unfinished_matrix(None).unwrap(), None);
    }

    #[test]
    fn the_unfinished_matrix_of_a_definition_is_found() {
        let (_dir, mut history) = history();
        let (matrix, mut other) = (Matrix::default(), Matrix::default());
        other.runs.seed = 7;
        let first = history.start_matrix(&matrix, "me").unwrap();
        let second = history.start_matrix(&other, "me").unwrap();
        assert_eq!(history.unfinished_matrix(Some(&matrix)).unwrap(), Some(first));
        assert_eq!(history.unfinished_matrix(None).unwrap(), Some(second));
        let all: Vec<_> = matrix.order().into_iter().map(|key| (key, "enough".to_string())).collect();
        history.skip_matrix_runs(first, &all).unwrap();
        assert_eq!(history.unfinished_matrix(Some(&matrix)).unwrap(), None);
        let infos = history.matrices().unwrap();
        assert_eq!(
            infos.iter().map(|it| (it.id, it.planned, it.skipped)).collect::<Vec<_>>(),
            [(second, 7, 0), (first, 0, 7)]
        );
        assert!(matches!(history.matrix(MatrixId(9)), Err(Error::NoMatrix { .. })));
        assert!(matches!(history.take_matrix(MatrixId(9), "me", NOBODY), Err(Error::NoMatrix { .. })));
    }
}
