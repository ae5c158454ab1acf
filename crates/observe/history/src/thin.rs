//! Retention: old captures are thinned, and no difference is lost.
//!
//! ```text
//! captures of a source       a  b  c  d  e  f  g  h  i        one of a stretch of time stays: a, e, i
//! rows of a file             1     2  3        3' .  .        2 goes: 3 tells all that was done from a to e
//! rows of one of that while        1     2  x                 both stay: what it did from c to e, and that it is gone in f
//! ```
//!
//! **Captures.** Of each stretch of time (5 minutes, an hour) the first capture of a source stays, and besides only one
//! with a label, the first and the last of the source, and those on both sides of a hole that is longer than the stretch
//! or of which the source's clock knows no length (it fell: the machine started anew). Nothing that files, processes or
//! epochs do keeps a capture: however many come and go, at most two of a stretch stay, and two for each such clock.
//!
//! **Rows.** Counters are cumulative, so that of a file's rows between two captures that stay the last one tells all.
//! What it cannot tell stays too, under the number of its capture, which is gone: the first row of a file (what it had
//! when it was first seen), the last one before it was gone, and both rows where it did not simply grow (a counter fell,
//! a time began or ceased to be known). `files.first_capture_id` and `gone_capture_id` stay as they are. So the interval
//! between two captures that stay is the sum of those that lay between, file by file, also of files that came and went
//! in it; where one of those was unknown, so is that part of the sum (`series.rs` reads it). What a capture that stays
//! shows is as it was.
//!
//! The same goes for waits.
//!
//! Work is done in calls of half a second, each a transaction; how far a source is thinned is kept in `thinned`, so that
//! nothing is looked at twice.

use crate::exact::Exact;
use crate::{Error, History, thin_rows};
use filestats::Rules;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, named_params};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// From which age on captures are kept how far apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention(pub Vec<Stretch>);

/// Captures older than `age` are kept one an `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Time since the capture.
    pub age: Duration,
    /// Between two that stay.
    pub every: Duration,
}

/// What one call did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinned {
    /// Captures that are gone.
    pub captures: usize,
    /// It ended before everything was looked at: another call goes on from there.
    pub more: bool,
}

/// Captures that one call looks at.
const LOOKED_AT_MAX: usize = 5_000;
/// Captures of a source that are looked at together: two hours of them.
const CHUNK: usize = 500;
/// No call goes on to further captures after so long: others want to write, and a supervisor wants a sign of life.
const WORK_MAX: Duration = Duration::from_millis(500);

impl Default for Retention {
    /// All of the last 7 days, one in 5 minutes of the last 90, one an hour before.
    fn default() -> Self {
        const DAY: u64 = 24 * 3600;
        let stretch = |days: u64, every_s: u64| Stretch {
            age: Duration::from_secs(days * DAY),
            every: Duration::from_secs(every_s),
        };
        Retention(vec![stretch(7, 300), stretch(90, 3600)])
    }
}

impl History {
    /// Removes captures that lie closer together than the retention has it, for half a second or a little longer.
    ///
    /// # Errors
    /// Where the file cannot be written; then nothing was removed.
    pub fn thin(&mut self, retention: &Retention, now_unix_ns: u64) -> Result<Thinned, Error> {
        let thinned = thin(&mut self.connection, retention, now_unix_ns);
        thinned.map_err(|source| Error::sqlite("thin old captures", &self.path, source))
    }
}

/// A source's captures that are to be one an `every_ns` up to an instant.
struct Task<'a> {
    source: &'a str,
    every_ns: u64,
    before_unix_ns: u64,
    now_unix_ns: u64,
}

struct Capture {
    id: i64,
    taken_unix_ns: u64,
    clock_ns: u64,
    labelled: bool,
}

/// Captures that go, all of them between one that stays and the next that does or is not judged yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Between {
    /// The one that stays before them.
    pub after: i64,
    /// The one that stays after them, or the last of them.
    pub until: i64,
    /// By number.
    pub gone: Vec<i64>,
}

/// What is left of one call.
struct Budget {
    captures: usize,
    until: Instant,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.captures == 0 || Instant::now() >= self.until
    }
}

fn thin(connection: &mut Connection, retention: &Retention, now_unix_ns: u64) -> rusqlite::Result<Thinned> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut budget = Budget { captures: LOOKED_AT_MAX, until: Instant::now() + WORK_MAX };
    let mut thinned = Thinned::default();
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let sources = sources(&transaction)?;
    'all: for stretch in retention.0.iter().filter(|stretch| !stretch.every.is_zero()) {
        let before_unix_ns = now_unix_ns.saturating_sub(nanos(stretch.age));
        for source in &sources {
            let task = Task { source, every_ns: nanos(stretch.every), before_unix_ns, now_unix_ns };
            while thin_chunk(&transaction, &task, &mut budget, &mut thinned.captures)? {
                if budget.is_spent() {
                    thinned.more = true;
                    break 'all;
                }
            }
        }
    }
    transaction.commit()?;
    Ok(thinned)
}

/// Without looking at every capture.
fn sources(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut rows = connection.prepare_cached(
        "WITH RECURSIVE next (source) AS (SELECT min(source) FROM captures UNION ALL \
         SELECT (SELECT min(source) FROM captures WHERE source > next.source) FROM next WHERE source IS NOT NULL) \
         SELECT source FROM next WHERE source IS NOT NULL",
    )?;
    rows.query_map([], |row| row.get(0))?.collect()
}

/// Thins the next captures of a source; whether there may be more to do.
fn thin_chunk(
    connection: &Connection,
    task: &Task<'_>,
    budget: &mut Budget,
    removed: &mut usize,
) -> rusqlite::Result<bool> {
    let every_ns = i64::try_from(task.every_ns).unwrap_or(i64::MAX);
    let begin: Option<i64> = connection
        .prepare_cached("SELECT capture_id FROM thinned WHERE source = ? AND every_ns = ?")?
        .query_row((task.source, every_ns), |row| row.get(0))
        .optional()?;
    let captures = captures(connection, task.source, begin.unwrap_or(0))?;
    budget.captures = budget.captures.saturating_sub(captures.len());
    let Some(Judged { all, mut stays, mut more }) = judge(&captures, task) else { return Ok(false) };
    if let (Some(first), Some(last)) = (all.first(), all.last()) {
        let rows = thin_rows::Present::over(connection, task.source, first.after, last.until)?;
        for (at, between) in all.iter().enumerate() {
            if at > 0 && budget.is_spent() {
                (stays, more) = (between.after, true);
                break;
            }
            rows.thin(connection, between)?;
            for id in &between.gone {
                connection.prepare_cached("DELETE FROM captures WHERE id = ?")?.execute([id])?;
            }
            *removed += between.gone.len();
        }
    }
    if begin != Some(stays) {
        connection
            .prepare_cached("INSERT OR REPLACE INTO thinned (source, every_ns, capture_id) VALUES (?, ?, ?)")?
            .execute((task.source, every_ns, stays))?;
    }
    Ok(more)
}

/// The captures of a source from that one on.
fn captures(connection: &Connection, source: &str, begin: i64) -> rusqlite::Result<Vec<Capture>> {
    let mut rows = connection.prepare_cached(
        "SELECT id, taken_unix_ns, clock_ns, label IS NOT NULL FROM captures WHERE source = :source \
         AND id >= :begin ORDER BY id LIMIT :limit",
    )?;
    let capture = |row: &rusqlite::Row<'_>| {
        let (Exact(taken_unix_ns), Exact(clock_ns)) = (row.get(1)?, row.get(2)?);
        Ok(Capture { id: row.get(0)?, taken_unix_ns, clock_ns, labelled: row.get(3)? })
    };
    let parameters = named_params! { ":source": source, ":begin": begin, ":limit": CHUNK as i64 };
    rows.query_map(parameters, capture)?.collect()
}

/// Which of a source's captures go; `None` without any.
struct Judged {
    all: Vec<Between>,
    /// The last that is known to stay.
    stays: i64,
    /// Captures after these may be old enough.
    more: bool,
}

/// The first of them stays, and the last one is not judged: it may be the newest.
fn judge(captures: &[Capture], task: &Task<'_>) -> Option<Judged> {
    let mut stays = captures.first()?;
    let mut all = Vec::new();
    let mut gone = Vec::new();
    let mut young = false;
    for three in captures.windows(3) {
        let [before, capture, after] = three else { continue };
        // What claims to be of the future has a wrong clock: it stays, and keeps nobody from going on.
        let from_the_future = capture.taken_unix_ns > task.now_unix_ns;
        young = capture.taken_unix_ns >= task.before_unix_ns && !from_the_future;
        if young {
            break;
        }
        let same = stays.taken_unix_ns / task.every_ns == capture.taken_unix_ns / task.every_ns;
        if same
            && !from_the_future
            && !capture.labelled
            && !task.is_edge(before, capture)
            && !task.is_edge(capture, after)
        {
            gone.push(capture.id);
            continue;
        }
        if !gone.is_empty() {
            all.push(Between { after: stays.id, until: capture.id, gone: std::mem::take(&mut gone) });
        }
        stays = capture;
    }
    if let Some(until) = gone.last() {
        all.push(Between { after: stays.id, until: *until, gone });
    }
    Some(Judged { all, stays: stays.id, more: !young && captures.len() == CHUNK })
}

impl Task<'_> {
    /// Whether captures on both sides of an interval stay: it is longer than the stretch, or of no known length.
    fn is_edge(&self, earlier: &Capture, later: &Capture) -> bool {
        let hole = later.taken_unix_ns.saturating_sub(earlier.taken_unix_ns) >= self.every_ns;
        let elapsed_ns = later.clock_ns.checked_sub(earlier.clock_ns);
        let unknown = elapsed_ns.is_none_or(|ns| ns == 0 || ns > Rules::default().gap_ns_max);
        hole || unknown
    }
}
