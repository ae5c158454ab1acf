//! How many times today's work the storage could carry, and this host with it.
//!
//! ```text
//! work grows x times           then                                                        in the range
//! reads, page writes           x times as many                                             always
//! bytes of log records         x times as many; the rest of a block is rewritten less often
//! log writes                   F(x) = min(x F, 1 / L): one follows the other, and the      low: L of a storage at rest
//!                              commits that arrive during one share the next one           plan: L at the knee
//!                                                                                          high: none
//! commits of one session       x times their time, where only one session can commit       always
//! processors                   x times their time                                          low and plan
//!
//! headroom = the largest x at which no resource of the storage, no session and no processor is needed all of the time
//! ```
//!
//! Linear growth is the utilisation law (Denning and Buzen 1978). That commits share log writes is group commit (DeWitt et
//! al. 1984). At the knee N I/Os are outstanding, and one of them is the log's: it gets 1 / (N + 1) of the operations.

use crate::case::Case;
use crate::figures::{expected_commit_ns, utilisation};
use capability::{Flow, Side};
use workload::Pattern;

/// How many times today's demand can be carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Headroom {
    /// The figure to plan with.
    pub plan: f64,
    /// It is surely not less.
    pub low: f64,
    /// It is surely not more.
    pub high: f64,
    /// Why it is a range, or what else than the storage limits it.
    pub reason: Option<String>,
}

/// PostgreSQL writes its log in blocks of 8 KiB, and writes the last one again for the next commit. Engines with smaller blocks
/// rewrite less: for them this counts only where their writes are large.
const LOG_BLOCK_BYTES: f64 = 8192.0;
/// Device writes for one write of the log and its sync: the log's own, and up to three of the file system's journal (ext4:
/// descriptor, metadata, commit).
const WRITES_PER_SYNC_MAX: f64 = 4.0;
/// Outstanding I/Os at the knee where no curve has one.
const KNEE_DEFAULT: f64 = 16.0;
/// A range this narrow is one figure.
const RANGE_WORTH_SAYING: f64 = 1.25;

/// Today's flows, with those of the log apart.
struct Growth {
    /// All of them, as they are.
    all: Vec<Flow>,
    /// Without what the log's writes cost each, which commits share: few of the device's writes belong to the log.
    rest_most: Vec<Flow>,
    /// The same where many of them do.
    rest_least: Vec<Flow>,
    /// The log's writes, a second.
    log_per_s: f64,
    /// One of them.
    log_write: Flow,
}

impl Case<'_> {
    /// How far today's demand could grow; `None` without a capability or without I/O.
    pub(crate) fn headroom(&self) -> Option<Headroom> {
        let used = self.figures.utilisation.filter(|used| used.value > 0.0)?.value;
        let now = 1.0 / used;
        let single = |x: f64| Headroom { plan: x, low: x, high: x, reason: None };
        let mut room = match (self.observation.commits_one_by_one, self.growth()) {
            (false, Some(growth)) => self.shared_log(&growth, now).unwrap_or_else(|| single(now)),
            _ => single(now),
        };
        if self.observation.commits_one_by_one {
            room = self.one_by_one(room);
        }
        Some(self.with_processors(room))
    }

    fn growth(&self) -> Option<Growth> {
        let (figures, all) = (&self.figures, self.figures.flows()?);
        let writes = *all.iter().find(|flow| flow.side == Side::Write && flow.per_second > 0.0)?;
        let commits = figures.commits;
        if commits.count == 0 || figures.elapsed_s <= 0.0 {
            return None;
        }
        let per_s = |count: f64| count / figures.elapsed_s;
        let log_per_s = per_s(commits.count as f64).min(writes.per_second);
        let log_bytes_each = commits.average_bytes().known().unwrap_or(0.0);
        let database_writes = figures.database.as_ref().map_or(0, |all| all.counters.write.count);
        let data_per_s = per_s(database_writes.saturating_sub(commits.count) as f64);
        let device_most =
            (writes.per_second - data_per_s).min(log_per_s * WRITES_PER_SYNC_MAX).max(log_per_s);
        // Of each write, what the next one does not write again.
        let kept = |bytes: f64| if bytes >= LOG_BLOCK_BYTES { bytes - LOG_BLOCK_BYTES + 1.0 } else { bytes };
        let rest = |log_ios: f64, record_bytes_each: f64| {
            let left = (writes.per_second - log_ios).max(0.0);
            let bytes = (writes.per_second * writes.bytes - log_per_s * log_bytes_each).max(0.0);
            let mut flows: Vec<Flow> = all.iter().filter(|flow| flow.side == Side::Read).copied().collect();
            if left > 0.0 {
                flows.push(Flow { per_second: left, bytes: bytes / left, ..writes });
            }
            let records = log_per_s * record_bytes_each;
            // Bytes alone: one I/O in a long time.
            flows.push(Flow {
                side: Side::Write,
                pattern: Pattern::Sequential,
                per_second: 1e-6,
                bytes: records * 1e6,
            });
            flows
        };
        Some(Growth {
            rest_most: rest(log_per_s, log_bytes_each),
            rest_least: rest(device_most, kept(log_bytes_each)),
            log_per_s: device_most,
            log_write: Flow { per_second: 1.0, bytes: log_bytes_each.max(512.0), ..writes },
            all,
        })
    }

    /// Commits of many sessions share the writes of the log.
    fn shared_log(&self, growth: &Growth, now: f64) -> Option<Headroom> {
        let capability = self.capability?;
        let used = |flows: &[Flow]| utilisation(capability, flows).map(|used| used.value);
        let largest = |rest: f64, room: f64| if rest > 0.0 { room / rest } else { f64::INFINITY };
        // At rest: the log's writes may take as much of the operations as they take one after the other.
        let bytes = growth.log_write.bytes;
        let at_rest_ns = expected_commit_ns(capability, bytes).or_else(|| self.figures.commit_ns())?;
        let ios_each = growth.log_per_s * self.figures.elapsed_s / self.figures.commits.count as f64;
        let log_flow = Flow { per_second: ios_each * 1e9 / at_rest_ns, ..growth.log_write };
        let low = largest(used(&growth.rest_most)?, 1.0 - used(&[log_flow])?).max(now);
        let knee =
            self.figures.reads_place.as_ref().and_then(|place| capability.curve(&place.curve)?.knee.as_ref());
        let outstanding = knee.map_or(KNEE_DEFAULT, |knee| knee.outstanding.max(1.0));
        let rest = used(&growth.rest_least)?;
        let plan = largest(rest, outstanding / (outstanding + 1.0)).max(low);
        let high = largest(rest, 1.0).max(plan);
        let _ = &growth.all;
        if !high.is_finite() {
            return None;
        }
        let reason = (high > low * RANGE_WORTH_SAYING)
            .then(|| "commits share log writes as they become many".to_owned());
        Some(Headroom { plan, low, high, reason })
    }

    /// One session can commit at a time: their time adds up.
    fn one_by_one(&self, room: Headroom) -> Headroom {
        let share = self.figures.commit_share();
        if share <= 0.0 || 1.0 / share >= room.low {
            return room;
        }
        let chain = 1.0 / share;
        Headroom {
            plan: chain,
            low: chain,
            high: chain,
            reason: Some(format!(
                "one session at a time can commit, and commits take {:.0} % of the time",
                share * 100.0
            )),
        }
    }

    fn with_processors(&self, room: Headroom) -> Headroom {
        let busy = self.observation.processors_busy().filter(|busy| *busy > 0.0);
        let Some(limit) = busy.map(|busy| 1.0 / busy).filter(|limit| *limit < room.plan) else { return room };
        let storage = room.plan;
        let reason = format!(
            "the processors of this host run out first: they are {:.0} % busy, and the storage alone would carry {storage:.0} x",
            100.0 / limit
        );
        let low = room.low.min(limit);
        Headroom { plan: limit, low, high: room.high, reason: Some(reason) }
    }
}
