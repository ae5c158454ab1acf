//! Retention: old captures are removed until one is left in each period, and no difference is lost.
//!
//! ```text
//! captures of a source       a  b  c  d  e  f  g  h  i        one of each period is kept: a, e, i
//! rows of a long-lived file  1     2  3        3' .  .        2 is removed: 3 is the total from a to e
//! rows of a short-lived file       1     2  x                 both are kept: its work from c to e, and its end in f
//! ```
//!
//! **Captures.** The first capture of a source in each period (5 minutes, an hour) is kept. Of the others only these
//! are kept: one with a label, the first and the last of the source, and those on both sides of a gap that is longer
//! than the period or of unknown length (the source's clock fell: the machine restarted). Files, processes and epochs
//! that begin or end keep no capture: at most two captures of a period are kept, and two for each clock that fell.
//!
//! **Rows.** Counters are cumulative, so the last row of a file between two kept captures includes all rows before it.
//! A row is kept, under the number of its removed capture, where the last row does not replace it: the first row of a
//! file, the last one before the file was gone, and both rows where a counter fell or a time became known or unknown.
//! `files.first_capture_id` and `gone_capture_id` do not change. So the interval between two kept captures is the sum
//! of the intervals between them, file by file, files that lived only in between included. Where one of those is
//! unknown, that part of the sum is unknown (`series.rs` reads it). A kept capture reads as before.
//!
//! Waits are treated the same way.
//!
//! **Age.** A capture's age is the sum of the intervals between later captures of any source, each counted as one day at
//! most. A clock that is set ten years ahead therefore ages a capture by one day, not by ten years. See `cutoff`. A capture that
//! is dated in the future is as old as the next one of its source that is not.
//!
//! A call works for half a second in one transaction. The table `thinned` keeps how far a source was processed, so
//! that no capture is judged twice.

mod superseded;

use crate::exact::{Exact, exact};
use crate::statements::{first_row, rows};
use crate::{Error, History};
use filestats::Rules;
use rusqlite::{Connection, Row};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use superseded::{Group, PresentItems};

/// How far apart captures are kept, by their age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention(pub Vec<RetentionStep>);

/// Of captures older than `age`, one is kept in each `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionStep {
    /// Time since the capture.
    pub age: Duration,
    /// The period of which one capture is kept.
    pub every: Duration,
}

/// The result of one call of [`History::apply_retention`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinned {
    /// Captures that were removed.
    pub captures: usize,
    /// The call ended before all captures were judged: another call continues there.
    pub more: bool,
}

/// The most that an interval without captures adds to the age of earlier captures. A clock that is set ahead cannot be
/// distinguished from a machine that was off, and removed captures cannot be restored. One day is a seventh of the time for
/// which all captures are kept; captures of a machine that is off at night still age by the calendar.
const ABSENCE_NS_MAX: u64 = 24 * 3600 * 1_000_000_000;
/// Captures that one call judges at most.
const JUDGED_MAX: usize = 5_000;
/// Captures of a source that are judged together: two hours of them at the default interval.
const CHUNK: usize = 500;
/// A call begins no further captures after this time: other processes wait to write, and the service's watchdog expects
/// a notification.
const WORK_MAX: Duration = Duration::from_millis(500);

impl Default for Retention {
    /// All captures of the last 7 days, one in 5 minutes of the last 90 days, one an hour before that.
    fn default() -> Self {
        const DAY: u64 = 24 * 3600;
        let step = |days: u64, every_s: u64| RetentionStep {
            age: Duration::from_secs(days * DAY),
            every: Duration::from_secs(every_s),
        };
        Retention(vec![step(7, 300), step(90, 3600)])
    }
}

impl History {
    /// Removes captures that lie closer together than the retention allows, for about half a second.
    ///
    /// # Errors
    /// Where the file cannot be written; then nothing was removed.
    pub fn apply_retention(&mut self, retention: &Retention, now_unix_ns: u64) -> Result<Thinned, Error> {
        self.transact("thin old captures", |transaction| thin(transaction, retention, now_unix_ns))
    }
}

/// One step of the retention for one source: one capture in each `every_ns` is kept before an instant.
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

/// Work that one call may still do.
struct Budget {
    captures: usize,
    until: Instant,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.captures == 0 || Instant::now() >= self.until
    }
}

fn thin(connection: &Connection, retention: &Retention, now_unix_ns: u64) -> rusqlite::Result<Thinned> {
    let mut budget = Budget { captures: JUDGED_MAX, until: Instant::now() + WORK_MAX };
    let mut thinned = Thinned::default();
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let sources = sources(connection)?;
    'all: for step in retention.0.iter().filter(|step| !step.every.is_zero()) {
        let before_unix_ns = cutoff(connection, now_unix_ns, nanos(step.age))?;
        for source in &sources {
            // With a clock that is behind, all captures would count as judged, and none is judged twice.
            if newest_unix_ns(connection, source)?.is_some_and(|newest| newest > now_unix_ns) {
                continue;
            }
            let task = Task { source, every_ns: nanos(step.every), before_unix_ns, now_unix_ns };
            while thin_chunk(connection, &task, &mut budget, &mut thinned.captures)? {
                if budget.is_spent() {
                    thinned.more = true;
                    break 'all;
                }
            }
        }
    }
    Ok(thinned)
}

/// The names of the sources: one index look-up each, however many captures there are.
fn sources(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let query = "WITH RECURSIVE next (source) AS (SELECT min(source) FROM captures UNION ALL \
         SELECT (SELECT min(source) FROM captures WHERE source > next.source) FROM next WHERE source IS NOT NULL) \
         SELECT source FROM next WHERE source IS NOT NULL";
    rows(connection, query, [], |row| row.get(0))
}

/// The instant before which captures are older than `age_ns`.
///
/// ```text
/// captures  a a a a              b b b b b b  now      age of the last a: one day, and the time from the first b to now
///                  \_ 10 years _/
/// ```
///
/// Two iterations go back at least one day, which bounds the loop by twice the age in days.
fn cutoff(connection: &Connection, now_unix_ns: u64, age_ns: u64) -> rusqlite::Result<u64> {
    let first = "SELECT min(taken_unix_ns) FROM captures WHERE taken_unix_ns >= ? AND taken_unix_ns < ?";
    let last = "SELECT max(taken_unix_ns) FROM captures WHERE taken_unix_ns < ?";
    let number = |row: &Row<'_>| row.get::<_, Option<Exact>>(0);
    let (mut at, mut left_ns) = (now_unix_ns, age_ns);
    loop {
        let day = (Exact(at.saturating_sub(ABSENCE_NS_MAX)), Exact(at));
        let earlier = match first_row(connection, first, day, number)?.flatten() {
            None => first_row(connection, last, [Exact(at)], number)?.flatten(),
            within_a_day => within_a_day,
        };
        let Some(Exact(earlier)) = earlier else { break };
        let passed_ns = (at - earlier).min(ABSENCE_NS_MAX);
        if passed_ns >= left_ns {
            break;
        }
        (at, left_ns) = (earlier, left_ns - passed_ns);
    }
    Ok(at.saturating_sub(left_ns))
}

/// The wall clock of a source's newest capture.
fn newest_unix_ns(connection: &Connection, source: &str) -> rusqlite::Result<Option<u64>> {
    let query = "SELECT taken_unix_ns FROM captures WHERE source = ? ORDER BY id DESC LIMIT 1";
    first_row(connection, query, [source], |row| exact(row, 0))
}

/// Thins the next captures of a source. Returns whether there may be more to do.
fn thin_chunk(
    connection: &Connection,
    task: &Task<'_>,
    budget: &mut Budget,
    removed: &mut usize,
) -> rusqlite::Result<bool> {
    let every_ns = i64::try_from(task.every_ns).unwrap_or(i64::MAX);
    let query = "SELECT capture_id FROM thinned WHERE source = ? AND every_ns = ?";
    let begin: Option<i64> = first_row(connection, query, (task.source, every_ns), |row| row.get(0))?;
    let captures = captures(connection, task.source, begin.unwrap_or(0))?;
    budget.captures = budget.captures.saturating_sub(captures.len());
    let after_unix_ns = match captures.last() {
        Some(last) if last.taken_unix_ns > task.now_unix_ns => next_unix_ns(connection, task, last.id)?,
        _ => None,
    };
    let judged = judge(&captures, after_unix_ns.unwrap_or(task.now_unix_ns), task);
    let Some(Judged { groups, mut kept, mut more }) = judged else { return Ok(false) };
    if let (Some(first), Some(last)) = (groups.first(), groups.last()) {
        let items = PresentItems::read(connection, task.source, first.after, last.until)?;
        for (at, group) in groups.iter().enumerate() {
            if at > 0 && budget.is_spent() {
                (kept, more) = (group.after, true);
                break;
            }
            items.remove_superseded_rows(connection, group)?;
            for id in &group.removed {
                connection.prepare_cached("DELETE FROM captures WHERE id = ?")?.execute([id])?;
            }
            *removed += group.removed.len();
        }
    }
    if begin != Some(kept) {
        connection
            .prepare_cached("INSERT OR REPLACE INTO thinned (source, every_ns, capture_id) VALUES (?, ?, ?)")?
            .execute((task.source, every_ns, kept))?;
    }
    Ok(more)
}

/// The next captures of a source, from `begin`.
fn captures(connection: &Connection, source: &str, begin: i64) -> rusqlite::Result<Vec<Capture>> {
    let query = "SELECT id, taken_unix_ns, clock_ns, label IS NOT NULL FROM captures WHERE source = ? \
         AND id >= ? ORDER BY id LIMIT ?";
    rows(connection, query, (source, begin, CHUNK as i64), |row| {
        Ok(Capture {
            id: row.get(0)?,
            taken_unix_ns: exact(row, 1)?,
            clock_ns: exact(row, 2)?,
            labelled: row.get(3)?,
        })
    })
}

/// The wall clock of a source's next capture after this one that is not dated in the future.
fn next_unix_ns(connection: &Connection, task: &Task<'_>, id: i64) -> rusqlite::Result<Option<u64>> {
    let query = "SELECT taken_unix_ns FROM captures WHERE source = ? AND id > ? AND taken_unix_ns <= ? ORDER BY id LIMIT 1";
    first_row(connection, query, (task.source, id, Exact(task.now_unix_ns)), |row| exact(row, 0))
}

/// Captures of a source that are to be removed.
struct Judged {
    groups: Vec<Group>,
    /// The last capture that is known to be kept.
    kept: i64,
    /// Later captures may be old enough too.
    more: bool,
}

/// Decides which captures are removed; `None` without any capture. The first is kept. The last is not judged, because it
/// may be the source's newest. `after_unix_ns` is the date that counts for those at the end that are dated in the future.
fn judge(captures: &[Capture], after_unix_ns: u64, task: &Task<'_>) -> Option<Judged> {
    let mut kept = captures.first()?;
    let dates = credible_dates(captures, after_unix_ns, task.now_unix_ns);
    let mut groups = Vec::new();
    let mut removed = Vec::new();
    let mut young = false;
    for (three, date) in captures.windows(3).zip(&dates[1..]) {
        let [before, capture, after] = three else { continue };
        young = *date >= task.before_unix_ns;
        if young {
            break;
        }
        // By its own date: were the clock behind now, the credible dates of many captures would be one.
        let same = kept.taken_unix_ns / task.every_ns == capture.taken_unix_ns / task.every_ns;
        if same && !capture.labelled && !task.is_edge(before, capture) && !task.is_edge(capture, after) {
            removed.push(capture.id);
            continue;
        }
        if !removed.is_empty() {
            groups.push(Group { after: kept.id, until: capture.id, removed: std::mem::take(&mut removed) });
        }
        kept = capture;
    }
    if let Some(until) = removed.last() {
        groups.push(Group { after: kept.id, until: *until, removed });
    }
    Some(Judged { groups, kept: kept.id, more: !young && captures.len() == CHUNK })
}

/// The date by which each capture ages: its own, or that of the next capture whose clock was right.
fn credible_dates(captures: &[Capture], after_unix_ns: u64, now_unix_ns: u64) -> Vec<u64> {
    let mut next = after_unix_ns;
    let mut dates: Vec<u64> = captures
        .iter()
        .rev()
        .map(|capture| {
            if capture.taken_unix_ns <= now_unix_ns {
                next = capture.taken_unix_ns;
            }
            next
        })
        .collect();
    dates.reverse();
    dates
}

impl Task<'_> {
    /// Whether the captures on both sides of an interval are kept: it is longer than the period, or of unknown length.
    fn is_edge(&self, earlier: &Capture, later: &Capture) -> bool {
        let gap = later.taken_unix_ns.saturating_sub(earlier.taken_unix_ns) >= self.every_ns;
        let elapsed_ns = later.clock_ns.checked_sub(earlier.clock_ns);
        let unknown = elapsed_ns.is_none_or(|ns| ns == 0 || ns > Rules::default().gap_ns_max);
        gap || unknown
    }
}
