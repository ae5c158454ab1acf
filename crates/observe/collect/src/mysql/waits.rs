//! Waits of threads: the file instruments by event, and two status counters of waits.
//!
//! `events_waits_summary_global_by_event_name` has the same measurements as one sum of reads, writes and syncs;
//! `file_summary_by_event_name` keeps them apart, and they mean different things.

use super::files::{self, Owner};
use super::statistics::{Schema, Statistics, Timed};
use filestats::waits::mysql::{self, Operation};
use filestats::{Epoch, Figure, Reason, WaitClass, WaitSample};

/// Status counters of waits that are not timed.
const COUNTED: [(&str, &str, WaitClass); 2] = [
    ("innodb_log_waits", "Innodb_log_waits", WaitClass::LogWrite),
    ("innodb_buffer_pool_wait_free", "Innodb_buffer_pool_wait_free", WaitClass::DataWrite),
];

pub(super) fn samples(statistics: &Statistics, owner: &Owner) -> Vec<WaitSample> {
    let mut waits = Vec::new();
    if let Schema::On(counted) = &statistics.schema {
        for row in counted.events.iter().filter(|row| counted.switches.counts(&row.event)) {
            let is_timed = counted.switches.times(&row.event);
            let kinds =
                [(Operation::Read, row.read), (Operation::Write, row.write), (Operation::Misc, row.misc)];
            let kinds = kinds.into_iter().filter_map(|(operation, timed)| {
                let class = mysql::class(&row.event, operation)?;
                Some((mysql::event(&row.event, operation), class, timed))
            });
            waits.extend(kinds.map(|(event, class, Timed { count, ns, .. })| WaitSample {
                instance: owner.name.into(),
                event,
                class,
                epoch: files::epoch(owner, &row.event),
                count: Figure::Known(count),
                wait_ns: if is_timed { Figure::Known(ns) } else { Figure::unknown(Reason::TimingOff) },
            }));
        }
    }
    waits.extend(COUNTED.iter().filter_map(|(name, event, class)| {
        let count = *statistics.status.get(*name)?;
        Some(WaitSample {
            instance: owner.name.into(),
            event: (*event).into(),
            class: *class,
            epoch: Epoch::for_run(owner.run),
            count: Figure::Known(count),
            // The server does not keep the time of these waits; without any it is 0.
            wait_ns: if count == 0 { Figure::Known(0) } else { Figure::unknown(Reason::NotCounted) },
        })
    }));
    waits
}
