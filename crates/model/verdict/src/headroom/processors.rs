//! How far the processors of the host carry the work.
//!
//! ```text
//! processor time of                            when the work is x times as much
//! the database, without what follows           x times
//!   writes and syncs of its log                as often as the log is written then: commits share it
//!   waking up for each transaction             none: a processor that always works neither sleeps nor gets cold
//!   switches between sessions                  x times; those that occur only on busy processors are added
//! its clients on this host                     x times, without waking up
//! the kernel for I/O                           as often as there are I/Os then
//! others                                       the same; those of low priority in its scheduling group give way, and count as idle:
//!                                              to a database, their caches are as cold as those of an idle processor
//! ```
//!
//! The first waits of a transaction (for its request, for the log) are long: meanwhile the processor sleeps, and its caches fill
//! with other things. Waking up costs what `measure` has seen, bare or virtual (an I/O whose thread sleeps for it, against one of
//! many, of which one is always complete), at least what cold caches do. The later waits of a transaction are short: a processor
//! that always works has switches between sessions in their place, which cost as much.

use super::{Growth, Headroom, RANGE_WORTH_SAYING, largest_factor};
use crate::ProcessorUse;
use crate::case::Case;
use crate::figures::{commit_cpu_ns, wake_cpu_ns};
use capability::Side;

/// Cost of a long wait, at least: a database's code and data are fetched into the caches again. Measured for points, updates,
/// single-row commits and batches of PostgreSQL: 30 to 45 us for each wait (`scripts/bench headroom`).
const COLD_CACHES_NS: f64 = 40_000.0;
/// How fast the caches of an idle processor become cold. Measured for single-row commits: the same 33 us after 0.5 ms and after
/// 1.6 ms, some 5 us after 0.04 ms.
const COOLING_NS: f64 = 250_000.0;
/// Long waits of each transaction that waits for I/O, at most: for its request, for its I/O, and for what follows.
const LONG_WAITS_MAX: f64 = 3.0;
/// Long waits of its client, at most: before the transaction, and for its I/O.
const CLIENT_LONG_WAITS_MAX: f64 = 2.0;
/// Part of a transaction's processor time that is taken to be left at least, however much its log and waking up seem to take of it.
/// Measured for single-row commits: 0.3 and 0.4 of an engine with one writer, 0.4 of MariaDB, 0.4 to 0.8 of PostgreSQL.
const WORK_MIN: f64 = 0.42;
/// Part of the processor time of its clients that is left at least. Measured for sysbench: 0.1 to 0.4 with
/// single-row commits, 0.6 to 1 with batches.
const CLIENT_WORK_MIN: f64 = 0.25;
/// Processor time of a switch between sessions that occurs only on busy processors. On an idle host a client sends its next request
/// before the database's thread sleeps: the client waits for each answer, and the thread for few requests. On a busy one the thread
/// waits for each. Inferred from batches of PostgreSQL: 3.5 waits for each of them while idle, 14 while busy.
const SWITCH_NS: f64 = 10_000.0;
/// All of these, at most, as a part of the database's processor time of today: a client may wait for other things too. 0.2 for batches.
const SWITCHES_MAX: f64 = 0.5;
/// Processors need up to this many times less for each transaction when there are many. Measured for single-row commits: of
/// PostgreSQL 4, of an engine with one writer 13 and 17.
const PROCESSOR_ECONOMY: f64 = 20.0;
/// Processors that were idle need up to this many times more for each transaction when all of them work, for switches between
/// sessions and cold caches; the busier they are, the more of it is there already. Measured for batches of PostgreSQL and
/// MariaDB: 1.2 to 1.3 beyond what waking up takes.
const PROCESSOR_CONGESTION: f64 = 1.3;
/// The highest such factor: to be on the safe side.
const PROCESSOR_CONGESTION_MAX: f64 = 2.0;
/// The part of the processors that a database can use whose log waits for a new cap: such a cap lets writes pass in bursts. Measured
/// for single-row commits and batches: 0.4 to 0.95. With 0.9, the figures are 0.7 to 1.2 of the truth, of MariaDB 0.6.
const BUSY_AT_CAP: f64 = 0.9;
/// Part of the processors that the scheduler leaves to many sessions beside other programs that would take all of them.
const FAIR_SHARE: f64 = 0.5;

/// Shares of the processors that grow differently.
struct Work {
    /// With the work.
    transactions: f64,
    /// With the writes of the log.
    log: f64,
    /// With the I/Os.
    kernel: f64,
}

impl Work {
    /// Share of the processors needed when the work is `factor` times as much.
    fn needed(&self, factor: f64, growth: Option<&Growth>) -> f64 {
        let log_writes = growth.map_or(factor, |growth| growth.log_writes_grown(factor));
        let ios = growth.map_or(factor, |growth| growth.ios_grown(factor));
        self.transactions * factor + self.log * log_writes + self.kernel * ios
    }

    fn largest_factor(&self, share: f64, growth: Option<&Growth>) -> f64 {
        largest_factor(|factor| self.needed(factor, growth) <= share).max(1.0)
    }
}

impl Case<'_> {
    /// Lowers the headroom of the storage to that of the processors, where they run out first.
    pub(super) fn with_processors(&self, room: Headroom, growth: Option<&Growth>) -> Headroom {
        let Some(used) = self.observation.processors().filter(|used| used.own > 0.0) else { return room };
        let grows = used.own + used.clients;
        let available =
            |congestion: f64| (1.0 - used.others) / (1.0 + (congestion - 1.0) * idle_share(&used));
        let alike = Work { transactions: grows, log: 0.0, kernel: used.kernel };
        let least = alike.largest_factor(available(PROCESSOR_CONGESTION_MAX), growth);
        let share = available(PROCESSOR_CONGESTION).max(FAIR_SHARE);
        let work = self.busy_work(&used, growth);
        let capped_from = growth.map_or(f64::INFINITY, Growth::log_waits_for_cap_from);
        let limit = match work.largest_factor(share, growth) {
            limit if limit > capped_from => work.largest_factor(share * BUSY_AT_CAP, growth).max(capped_from),
            limit => limit,
        };
        let high = room.high.min(PROCESSOR_ECONOMY / grows);
        if limit >= room.plan {
            let may = || "the processors may run out first".to_owned();
            let reason = room.reason.or_else(|| (least * RANGE_WORTH_SAYING < room.plan).then(may));
            return Headroom { low: room.low.min(least), high: high.max(room.plan), reason, ..room };
        }
        let reason = Some(run_out_first(&used, room.plan));
        Headroom { plan: limit, low: room.low.min(least).min(limit), high: high.max(limit), reason }
    }

    /// Number of processors that the database's work of today would keep busy if they never slept; 0 where that is not
    /// known.
    pub(super) fn busy_processors(&self) -> f64 {
        let Some(used) = self.observation.processors() else { return 0.0 };
        self.busy_work(&used, None).transactions * f64::from(used.count)
    }

    /// Processor time of a transaction on processors that always work.
    fn busy_work(&self, used: &ProcessorUse, growth: Option<&Growth>) -> Work {
        let seconds_to_share = 1.0 / f64::from(used.count.max(1));
        let wake_ns = self.capability.and_then(wake_cpu_ns).unwrap_or(0.0);
        let log = growth.zip(self.capability).and_then(|(growth, capability)| {
            // Waking up after it is among the waits.
            let each_ns = (commit_cpu_ns(capability, growth.log_bytes_each)? - wake_ns).max(0.0);
            Some(growth.log_per_s * each_ns / 1e9 * seconds_to_share)
        });
        let log = log.filter(|_| used.count > 0).unwrap_or(0.0).min(used.own * (1.0 - WORK_MIN));
        let waiting_per_s = self.waiting_transactions_per_s(growth);
        let own_long_per_s = used.own_waits_per_s.min(waiting_per_s * LONG_WAITS_MAX);
        let clients_long_per_s = used.clients_waits_per_s.min(waiting_per_s * CLIENT_LONG_WAITS_MAX);
        let sleeps_per_s = own_long_per_s + clients_long_per_s;
        // Processors that work for others do not sleep either.
        let idle = idle_share(used);
        let slept_ns = idle * f64::from(used.count) * 1e9 / sleeps_per_s.max(1.0);
        let long_wait_ns = if used.count > 0 { wake_ns.max(cold_ns(slept_ns)) * idle } else { 0.0 };
        let waking = |waits_per_s: f64| waits_per_s * long_wait_ns / 1e9 * seconds_to_share;
        let own = (used.own - log - waking(own_long_per_s)).max(used.own * WORK_MIN) + added_switches(used);
        let clients = (used.clients - waking(clients_long_per_s)).max(used.clients * CLIENT_WORK_MIN);
        Work { transactions: own + clients, log, kernel: used.kernel }
    }

    /// Transactions a second that wait for I/O, at most.
    fn waiting_transactions_per_s(&self, growth: Option<&Growth>) -> f64 {
        let reads = self.figures.flows().into_iter().flatten().filter(|flow| flow.side == Side::Read);
        let waited_for =
            reads.map(|flow| flow.per_second).sum::<f64>() + growth.map_or(0.0, |growth| growth.log_per_s);
        self.observation.commits_per_s().map_or(waited_for, |commits_per_s| commits_per_s.min(waited_for))
    }
}

/// The share of the processors that switches take which occur only on busy processors.
fn added_switches(used: &ProcessorUse) -> f64 {
    if used.count == 0 {
        return 0.0;
    }
    let per_s = (used.clients_waits_per_s - used.own_waits_per_s).max(0.0) * idle_share(used);
    (per_s * SWITCH_NS / 1e9 / f64::from(used.count)).min(used.own * SWITCHES_MAX)
}

/// Time to fetch code and data into the caches again after a sleep of `slept_ns`.
fn cold_ns(slept_ns: f64) -> f64 {
    COLD_CACHES_NS * (1.0 - (-slept_ns / COOLING_NS).exp())
}

fn idle_share(used: &ProcessorUse) -> f64 {
    (1.0 - used.others - used.own - used.clients - used.kernel).clamp(0.0, 1.0)
}

fn run_out_first(used: &ProcessorUse, storage_alone: f64) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let part = |of: &str, share: f64| match share {
        0.0 => String::new(),
        share => format!("{of} {}, ", percent(share)),
    };
    format!(
        "the processors run out first: the database uses {} of them, {}{}others {}, and the storage alone would \
         carry {storage_alone:.0} x",
        percent(used.own),
        part("its clients", used.clients),
        part("the kernel for its I/O", used.kernel),
        percent(used.others),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_cold_after_a_long_sleep_and_warm_after_a_short_one() {
        assert!(cold_ns(1.6e6) > 0.99 * COLD_CACHES_NS);
        assert!((0.8..0.9).contains(&(cold_ns(0.5e6) / COLD_CACHES_NS)));
        assert!(cold_ns(40_000.0) < 0.15 * COLD_CACHES_NS);
    }
}
