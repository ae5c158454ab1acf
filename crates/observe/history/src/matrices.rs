//! Test matrices: their definitions, and the state of their runs.

use crate::exact::{Exact, Json, exact};
use crate::results::storable;
use crate::runs::insert_run;
use crate::statements::{first_row, insert, rows};
use crate::{EntryKind, Error, History, ResultId};
use host::unix_ns;
use matrix::{Figures, Matrix, Progress, RunKey, RunState};
use rusqlite::{Connection, named_params};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use workload::RunResult;

/// The number of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct MatrixId(pub i64);

/// A matrix and the progress of its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        self.transact("start a matrix", |connection| {
            let id = insert(
                connection,
                "matrices",
                &[
                    ("name", &matrix.name),
                    ("created_unix_ns", &Exact(unix_ns())),
                    ("definition", &Json(matrix)),
                    ("spent_ns", &0),
                    ("owner", &owner),
                ],
            )?;
            let mut insert = connection.prepare(
                "INSERT INTO matrix_points (matrix, point, repeat, seed, state) VALUES (?, ?, ?, ?, 'planned')",
            )?;
            for key in matrix.order() {
                let seed = Exact(matrix.seed(key, &points[key.point]));
                insert.execute((id, key.point, key.repeat, seed))?;
            }
            Ok(MatrixId(id))
        })
    }

    /// All matrices, the newest first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn matrices(&self) -> Result<Vec<MatrixInfo>, Error> {
        let query = "SELECT id, name, created_unix_ns, definition, sum(state IN ('planned', 'running')), \
             sum(state = 'done'), sum(state = 'skipped') \
             FROM matrices JOIN matrix_points ON matrix = id GROUP BY id ORDER BY id DESC";
        self.rows("list the matrices", query, [], |row| {
            Ok(MatrixInfo {
                id: MatrixId(row.get(0)?),
                name: row.get(1)?,
                created_unix_ns: exact(row, 2)?,
                targets: row.get::<_, Json<Matrix>>(3)?.0.targets,
                planned: exact(row, 4)?,
                done: exact(row, 5)?,
                skipped: exact(row, 6)?,
            })
        })
    }

    /// A matrix and the runs that are done. The kept seeds must be those that the definition yields: another order or
    /// seed would be another matrix.
    ///
    /// # Errors
    /// [`Error::NoMatrix`]; [`Error::ForeignMatrix`] where another version of Headroom gave other seeds.
    pub fn matrix(&self, id: MatrixId) -> Result<(Matrix, Progress), Error> {
        let query = "SELECT definition, spent_ns FROM matrices WHERE id = ?";
        let (found, rows) = self.execute("read a matrix", |connection| {
            let found = first_row(connection, query, [id.0], |row| Ok((row.get(0)?, exact(row, 1)?)))?;
            Ok((found, read_states(connection, id)?))
        })?;
        let no_matrix = || Error::NoMatrix { id: id.0, path: self.path.clone() };
        let (Json(matrix), spent_ns): (Json<Matrix>, u64) = found.ok_or_else(no_matrix)?;
        // Before the points are listed: another process may have changed the definition to one of any number of runs.
        if matrix.point_count().saturating_mul(matrix.runs.repeats.into()) != rows.len() as u64 {
            return Err(Error::ForeignMatrix { id: id.0, path: self.path.clone() });
        }
        let points = matrix.points();
        let mut progress = Progress::new(&matrix);
        let known = |key: &RunKey, seed: u64| {
            key.repeat < matrix.runs.repeats
                && points.get(key.point).is_some_and(|point| matrix.seed(*key, point) == seed)
        };
        if rows.iter().any(|(key, seed, _)| !known(key, *seed)) {
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
        let definition = named_params! { ":definition": matrix.map(Json) };
        let found = self.first_row("look for a matrix", query, definition, |row| row.get(0))?;
        Ok(found.flatten().map(MatrixId))
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
        self.transact("take over a matrix", |connection| {
            let query = "SELECT owner FROM matrices WHERE id = ?";
            match first_row(connection, query, [id.0], |row| row.get::<_, Option<String>>(0))? {
                None => return Ok(Err(Error::NoMatrix { id: id.0, path })),
                Some(Some(before)) if before != owner && lives(&before) => {
                    return Ok(Err(Error::MatrixInUse { id: id.0, owner: before }));
                }
                Some(_) => {}
            }
            connection.execute("UPDATE matrices SET owner = ? WHERE id = ?", (owner, id.0))?;
            plan_again(connection, id).map(Ok)
        })?
    }

    /// Ends the ownership of a matrix; a run that was begun is planned again. A matrix without any result is removed.
    /// Returns whether it is kept.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn leave_matrix(&mut self, id: MatrixId) -> Result<bool, Error> {
        self.transact("leave a matrix", |connection| {
            plan_again(connection, id)?;
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
        let begin = "UPDATE matrix_points SET state = 'running' \
             WHERE matrix = ? AND point = ? AND repeat = ? AND state = 'planned'";
        let began = self
            .execute("begin a run", |connection| connection.execute(begin, (id.0, key.point, key.repeat)))?;
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
        let json = storable(EntryKind::Run, result)?;
        let took_ns = nanos(took);
        let kept = self.transact("keep a run of a matrix", |connection| {
            let query =
                "SELECT state = 'running' FROM matrix_points WHERE matrix = ? AND point = ? AND repeat = ?";
            let row = (id.0, key.point, key.repeat);
            if first_row(connection, query, row, |row| row.get(0))? != Some(true) {
                return Ok(None);
            }
            let run = insert_run(connection, None, result, &json)?;
            connection.execute(
                "UPDATE matrix_points SET state = 'done', run = ?, took_ns = ? \
                 WHERE matrix = ? AND point = ? AND repeat = ?",
                (run.0, Exact(took_ns), id.0, key.point, key.repeat),
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
        self.transact("skip runs of a matrix", |connection| {
            let mut update = connection.prepare(
                "UPDATE matrix_points SET state = 'skipped', reason = ? \
                 WHERE matrix = ? AND point = ? AND repeat = ? AND state = 'planned'",
            )?;
            for (key, reason) in skipped {
                update.execute((reason, id.0, key.point, key.repeat))?;
            }
            Ok(())
        })
    }

    /// Adds time that a matrix took beside its runs.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn spend_matrix_time(&mut self, id: MatrixId, time: Duration) -> Result<(), Error> {
        self.transact("note the time of a matrix", |connection| spend(connection, id, nanos(time)))
    }

    /// The size of a matrix's test files: the one noted first, so that it does not change when the matrix is
    /// continued on a disk with less room.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn matrix_file_bytes(&mut self, id: MatrixId, wanted: u64) -> Result<u64, Error> {
        self.transact("note the size of a test file", |connection| {
            let note = "UPDATE matrices SET file_bytes = ? WHERE id = ? AND file_bytes IS NULL";
            connection.execute(note, (Exact(wanted), id.0))?;
            connection.query_row("SELECT file_bytes FROM matrices WHERE id = ?", [id.0], |row| exact(row, 0))
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
        let query = "SELECT repeat, run, json FROM matrix_points JOIN runs ON runs.id = run \
             WHERE matrix = ? AND point = ? ORDER BY repeat";
        self.rows("read the runs of a matrix", query, (id.0, point), |row| {
            let Json(result) = row.get(2)?;
            Ok((RunKey { point, repeat: row.get(0)? }, ResultId(row.get(1)?), result))
        })
    }
}

fn read_states(connection: &Connection, id: MatrixId) -> rusqlite::Result<Vec<(RunKey, u64, RunState)>> {
    let query = "SELECT point, repeat, seed, state, reason, took_ns, iops, latency_ns FROM matrix_points \
         LEFT JOIN runs ON runs.id = run WHERE matrix = ? ORDER BY point, repeat";
    rows(connection, query, [id.0], |row| {
        let state = match row.get::<_, String>(3)?.as_str() {
            "done" => RunState::Done(Figures {
                iops: row.get(6)?,
                latency_ns: row.get::<_, Option<f64>>(7)?.unwrap_or(0.0),
                took: Duration::from_nanos(exact(row, 5)?),
            }),
            "skipped" => RunState::Skipped { reason: row.get(4)? },
            _ => RunState::Planned,
        };
        Ok((RunKey { point: row.get(0)?, repeat: row.get(1)? }, exact(row, 2)?, state))
    })
}

/// A run that was begun and not finished is planned again.
fn plan_again(connection: &Connection, id: MatrixId) -> rusqlite::Result<()> {
    let plan = "UPDATE matrix_points SET state = 'planned' WHERE matrix = ? AND state = 'running'";
    connection.execute(plan, [id.0]).map(drop)
}

fn spend(connection: &Connection, id: MatrixId, ns: u64) -> rusqlite::Result<()> {
    let query = "SELECT spent_ns FROM matrices WHERE id = ?";
    let spent_ns = connection.query_row(query, [id.0], |row| exact(row, 0))?.saturating_add(ns);
    connection.execute("UPDATE matrices SET spent_ns = ? WHERE id = ?", (Exact(spent_ns), id.0)).map(drop)
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

    #[test]
    fn a_changed_definition_with_more_runs_than_memory_holds_is_refused() {
        let (_dir, mut history) = history();
        let id = history.start_matrix(&Matrix::default(), "me").unwrap();
        let repeats = "UPDATE matrices SET definition = json_set(definition, '$.runs.repeats', 4294967295)";
        assert_eq!(history.connection.execute(repeats, []).unwrap(), 1);
        assert!(matches!(history.matrix(id), Err(Error::ForeignMatrix { .. })));
    }
}
