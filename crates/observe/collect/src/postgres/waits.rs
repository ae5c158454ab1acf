//! Waits of sessions, by event. PostgreSQL keeps no sums of waits, so they are sampled twice a second: each session that
//! waits adds the time since the last sample to its event. This is an estimate, good for long or frequent waits; the
//! number of waits is unknown. If pg_wait_sampling is installed, its profile (a sample every 10 ms, on the server) is used
//! instead.

use super::answer::{Columns, Table};
use super::server::{Server, ServerState};
use filestats::waits::postgres::class;
use filestats::{Epoch, Figure, Reason, WaitClass, WaitSample};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time between two samples.
pub const SAMPLED_EVERY: Duration = Duration::from_millis(500);

/// The most time that one sample accounts for, however late it is.
const LATE_MAX: Duration = Duration::from_secs(2);

/// Events that are counted; a server has about 80 of I/O.
const EVENTS_MAX: usize = 256;
/// Of the name of an event, which is kept: extensions name theirs with an identifier of up to 63 bytes.
const EVENT_BYTES_MAX: usize = 64;

const PROFILED: &str = "waits are of pg_wait_sampling's profile: estimates";

/// Sessions that wait, without those of this program, and whether I/O is timed. It returns at least one row.
pub(super) const SAMPLE_QUERY: &str = "
    SET LOCAL search_path = pg_catalog;
    SELECT wait_event, wait_event_type, count(pid) AS sessions,
           current_setting('track_io_timing') AS io_timing,
           current_setting('track_wal_io_timing') AS wal_timing
      FROM (SELECT 1) always LEFT JOIN pg_stat_activity
        ON wait_event_type IN ('IO', 'IPC', 'LWLock') AND pid <> pg_backend_pid()
       AND application_name IS DISTINCT FROM 'headroom'
     GROUP BY 1, 2";

/// Sums of waits since the connection was made.
pub(super) struct Waits {
    began_unix_ns: u64,
    last_sample: Instant,
    wait_ns: BTreeMap<String, (WaitClass, u64)>,
    wait_sampling: Option<String>,
}

impl Waits {
    pub fn new(server: &Server) -> Waits {
        Waits {
            began_unix_ns: host::unix_ns(),
            last_sample: Instant::now(),
            wait_ns: BTreeMap::new(),
            wait_sampling: server.wait_sampling.clone(),
        }
    }

    /// Adds a sample.
    pub fn add(&mut self, table: &Table) {
        let now = Instant::now();
        let elapsed = now.duration_since(self.last_sample).min(LATE_MAX);
        self.last_sample = now;
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        for row in table {
            if let (Some(event), Some(kind)) = (row.text("wait_event"), row.text("wait_event_type"))
                && let Some(class) = class(kind, event)
            {
                self.add_wait(event, class, elapsed_ns.saturating_mul(row.count("sessions").unwrap_or(0)));
            }
        }
    }

    fn add_wait(&mut self, event: &str, class: WaitClass, ns: u64) {
        let full = self.wait_ns.len() >= EVENTS_MAX || event.len() > EVENT_BYTES_MAX;
        match self.wait_ns.get_mut(event) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None if !full => drop(self.wait_ns.insert(event.to_owned(), (class, ns))),
            None => {}
        }
    }

    /// The query of pg_wait_sampling's profile, if it is installed.
    pub fn profile_statement(&self) -> Option<String> {
        let schema = self.wait_sampling.as_deref()?;
        Some(format!(
            "SELECT event, event_type, sum(count) AS looks,
                    current_setting('pg_wait_sampling.profile_period', true) AS period_ms
               FROM {schema}.pg_wait_sampling_profile
              WHERE event_type IN ('IO', 'IPC', 'LWLock') AND pid <> pg_backend_pid() GROUP BY 1, 2"
        ))
    }

    /// Uses own samples from now on.
    pub fn disable_profile(&mut self) {
        self.wait_sampling = None;
    }

    /// Nothing was sampled between two connections: the sums begin at zero with each.
    pub fn epoch(&self, state: &ServerState) -> Epoch {
        Epoch::for_run(format!("{} samples since {}", state.run, self.began_unix_ns))
    }

    /// The sums so far, and a remark on how they were counted. An event that is missing was not seen yet.
    pub fn samples(
        &self,
        server: &Server,
        state: &ServerState,
        profile: Option<Table>,
    ) -> (Vec<WaitSample>, String) {
        if let Some(profile) = profile {
            let note = PROFILED.to_owned();
            return (profile.iter().filter_map(|row| profile_sample(row, server, state)).collect(), note);
        }
        let epoch = self.epoch(state);
        let sampled = self.wait_ns.iter().map(|(event, (class, ns))| WaitSample {
            instance: server.instance.clone(),
            event: event.clone(),
            class: *class,
            epoch: epoch.clone(),
            count: Figure::unknown(Reason::NotCounted),
            wait_ns: Figure::Known(*ns),
        });
        let note = format!("waits are sampled every {} ms: estimates", SAMPLED_EVERY.as_millis());
        (if state.sees_all { sampled.collect() } else { Vec::new() }, note)
    }
}

fn profile_sample(row: &impl Columns, server: &Server, state: &ServerState) -> Option<WaitSample> {
    let (event, kind) = (row.text("event")?, row.text("event_type")?);
    let period_ns = row.count("period_ms")?.saturating_mul(1_000_000);
    Some(WaitSample {
        instance: server.instance.clone(),
        event: event.to_owned(),
        class: class(kind, event)?,
        epoch: Epoch::for_run(state.run.clone()),
        count: Figure::unknown(Reason::NotCounted),
        wait_ns: Figure::Known(row.count("looks")?.saturating_mul(period_ns)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_a_server_invents_are_kept_up_to_a_number_and_a_length() {
        let mut waits = Waits {
            began_unix_ns: 0,
            last_sample: Instant::now(),
            wait_ns: BTreeMap::new(),
            wait_sampling: None,
        };
        waits.add_wait(&"x".repeat(1 << 20), WaitClass::DataRead, 1);
        assert!(waits.wait_ns.is_empty());
        (0..10 * EVENTS_MAX).for_each(|at| waits.add_wait(&format!("event {at}"), WaitClass::DataRead, 1));
        assert_eq!(waits.wait_ns.len(), EVENTS_MAX);
    }
}
