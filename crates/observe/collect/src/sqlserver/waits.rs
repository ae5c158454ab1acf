//! Rows of `dm_os_wait_stats` as samples.

use super::files::{self, Owner};
use super::statistics::Statistics;
use filestats::waits::sqlserver;
use filestats::{Epoch, Figure, Reason, WaitSample};

/// The I/O waits. Their time is without the signal wait, which is for a processor.
pub(super) fn samples(statistics: &Statistics, owner: &Owner, reset: &str) -> Vec<WaitSample> {
    let sample = |row: &super::statistics::WaitRow| {
        let class = sqlserver::class(&row.event)?;
        let resource_ms = row.wait_ms.checked_sub(row.signal_ms);
        Some(WaitSample {
            instance: owner.name.into(),
            event: row.event.clone(),
            class,
            epoch: Epoch { run: owner.run.into(), reset: reset.into() },
            count: Figure::Known(row.count),
            wait_ns: resource_ms.map_or(Figure::unknown(Reason::NotCounted), files::nanoseconds),
        })
    };
    statistics.waits.iter().filter_map(sample).collect()
}
