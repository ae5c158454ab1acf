//! Alerts. None has a constant for I/Os, latency or a queue: what is much for one disk is little for another.

use crate::rules::{P95_1D, P95_PER_DAY, P95_RANGE};

/// An alert.
#[derive(Clone, Debug)]
pub struct Alert {
    /// Its name.
    pub name: &'static str,
    /// When it fires.
    pub expression: String,
    /// How long that must hold.
    pub holds: &'static str,
    /// `critical`, `warning` or `info`.
    pub severity: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The meaning of the alert, with the value.
    pub description: &'static str,
}

/// The group of all of them.
pub(crate) const ALERT_GROUP: &str = "headroom-alerts";
/// Between two evaluations.
pub(crate) const ALERT_INTERVAL: &str = "1m";
/// The page with the runbooks, a heading for each alert.
pub const RUNBOOKS: &str = "docs/reference/fleet.md";

/// Where an alert's runbook is on that page.
pub(crate) fn runbook_anchor(name: &str) -> String {
    format!("#{}", name.to_lowercase())
}

/// A volume is the same in two series where these are.
const SAME_VOLUME: &str = "cluster, job, instance, mount";
/// A verdict that is older is stale.
const STALE_S: u32 = 300;
/// Measured longer ago, a storage may have changed.
const OLD_DAYS: u32 = 30;
/// A trend needs the percentiles of this many days.
const TREND_SAMPLES_MIN: u32 = 14 * P95_PER_DAY;

/// All of them. A verdict that is healthy or by which no session waits has none.
pub fn alerts() -> Vec<Alert> {
    let verdict = |word: &str| format!("headroom_verdict{{verdict=\"{word}\"}} == 1");
    vec![
        Alert {
            name: "HeadroomDemandExceedsCapability",
            expression: verdict("demand-exceeds-capability"),
            holds: "5m",
            severity: "warning",
            summary: "{{ $labels.instance }} {{ $labels.mount }}: more I/O is requested than the storage can give",
            description: "{{ $labels.source }}: utilisation is 90 % or more, or over 70 % with outstanding I/Os at the \
                          knee. Latency is what the storage gives at this load: less demand or more storage helps.",
        },
        Alert {
            name: "HeadroomStorageDegraded",
            expression: verdict("storage-degraded"),
            holds: "5m",
            severity: "critical",
            summary: "{{ $labels.instance }} {{ $labels.mount }}: storage is slower than it was measured, or fails",
            description: "{{ $labels.source }} waits far longer than this storage took at the same load when it \
                          was measured, or its I/Os fail or do not complete. headroom history incidents on the host says \
                          which.",
        },
        Alert {
            name: "HeadroomThrottled",
            expression: verdict("throttled"),
            holds: "5m",
            severity: "warning",
            summary: "{{ $labels.instance }} {{ $labels.mount }}: a limit slows {{ $labels.source }}",
            description: "A limit of a control group is reached, and the database waits for it. headroom history incidents on \
                          the host names it.",
        },
        Alert {
            name: "HeadroomExhaustedSoon",
            expression: format!(
                "predict_linear({P95_1D}[30d], 30 * 86400) >= 1\nand last_over_time({P95_1D}{P95_RANGE}) < 1\n\
                 and count_over_time({P95_1D}[30d]) >= {TREND_SAMPLES_MIN}"
            ),
            holds: "1h",
            severity: "info",
            summary: "{{ $labels.instance }} {{ $labels.mount }}: exhausted within 30 days at today's growth",
            description: "The daily 95th percentile of its utilisation reaches {{ $value | humanizePercentage }} \
                          in 30 days if it grows on as in the last 30. headroom fleet gives the range.",
        },
        Alert {
            name: "HeadroomCapabilityOld",
            expression: format!(
                "time() - headroom_capability_measured_timestamp_seconds > {OLD_DAYS} * 86400"
            ),
            holds: "1h",
            severity: "info",
            summary: "{{ $labels.instance }} {{ $labels.mount }}: measured {{ $value | humanizeDuration }} ago",
            description: "What the storage can give may have changed since. headroom measure, at a quiet time.",
        },
        Alert {
            name: "HeadroomNeverMeasured",
            expression: format!(
                "max without (verdict) (headroom_verdict)\nunless on ({SAME_VOLUME}) \
                 headroom_capability_measured_timestamp_seconds"
            ),
            holds: "1h",
            severity: "info",
            summary: "{{ $labels.instance }} {{ $labels.mount }}: never measured",
            description: "Nothing can be said about the headroom of {{ $labels.source }} until headroom measure ran \
                          on this volume.",
        },
        Alert {
            name: "HeadroomSourceDown",
            expression: "headroom_source_up == 0".into(),
            holds: "5m",
            severity: "warning",
            summary: "{{ $labels.instance }}: {{ $labels.source }} gives no counters",
            description: "The agent runs and cannot read this database: nothing is known of it. Its log says why.",
        },
        Alert {
            name: "HeadroomVerdictStale",
            expression: format!(
                "time() - last_over_time(headroom_verdict_timestamp_seconds[1h]) > {STALE_S}"
            ),
            holds: "5m",
            severity: "warning",
            summary: "{{ $labels.instance }} {{ $labels.mount }}: not judged for {{ $value | humanizeDuration }}",
            description: "The agent, the host or the path to it is down, or {{ $labels.source }} is gone. It is not \
                          healthy: nothing is known.",
        },
    ]
}
