//! Recording rules.
//!
//! ```text
//! headroom-rates        operations and bytes a second of each device and direction, latency, mean outstanding I/Os
//! headroom-costs        the cost of an I/O and of a byte: sequential where I/Os are large
//! headroom-parts        rate x cost                                          for each direction
//! headroom-utilisation  max(reads, writes, what they share) = U              by the counters, beside the agent's own
//! headroom-days         95th percentile of a day, twice a day; sums of hosts that share an array: headroom-arrays
//! ```
//!
//! The law is that of `capability`'s cost model. The agent's own U is of 1 s moments and knows caps; this one is a mean over
//! five minutes, for the past and as a check.

/// Rules that are evaluated together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: &'static str,
    /// Between two evaluations.
    pub interval: &'static str,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// A recording rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The series' name: level, metric, operation.
    pub record: &'static str,
    /// The expression.
    pub expression: String,
}

/// From this many bytes on an I/O costs as much as a sequential one: as the agent decides.
const SEQUENTIAL_BYTES_MIN: u32 = 128 * 1024;

const OPERATIONS: &str = "instance_mount_op:headroom_device_operations:rate5m";
const BYTES: &str = "instance_mount_op:headroom_device_bytes:rate5m";
const COST: &str = "instance_mount_op:headroom_capability_cost_seconds:used";
const COST_PER_BYTE: &str = "instance_mount_op:headroom_capability_cost_seconds_per_byte:used";
const OF_OPERATIONS: &str = "instance_mount_op:headroom_utilisation_of_operations:rate5m";
const OF_BYTES: &str = "instance_mount_op:headroom_utilisation_of_bytes:rate5m";
/// U by the counters.
pub(crate) const UTILISATION: &str = "instance_mount:headroom_utilisation_ratio:rate5m";
/// The daily percentile.
pub(crate) const P95_1D: &str = "instance_mount:headroom_utilisation_ratio:p95_1d";
/// Number of its values in a day.
pub(crate) const P95_PER_DAY: u32 = 2;
/// A range that has the newest one, whenever it is queried.
pub(crate) const P95_RANGE: &str = "[13h]";
/// The sum over hosts that share an array.
pub(crate) const SHARED: &str = "storage:headroom_utilisation_ratio:sum";

/// All groups, in the order in which they build on each other.
pub fn groups() -> Vec<Group> {
    vec![rates(), costs(), parts(), utilisation(), arrays(), days()]
}

fn rates() -> Group {
    let of_both = |read: &str, write: &str| {
        let of = |op: &str, name: &str| {
            format!("label_replace(sum without (device) (rate({name}[5m])), \"op\", \"{op}\", \"\", \"\")")
        };
        format!("{}\nor\n{}", of("read", read), of("write", write))
    };
    let latency = |time: &str, count: &str| format!("rate({time}[5m])\n/\n(rate({count}[5m]) > 0)");
    Group {
        name: "headroom-rates",
        interval: "1m",
        rules: vec![
            Rule {
                record: OPERATIONS,
                expression: of_both("headroom_device_reads_total", "headroom_device_writes_total"),
            },
            Rule {
                record: BYTES,
                expression: of_both(
                    "headroom_device_read_bytes_total",
                    "headroom_device_written_bytes_total",
                ),
            },
            Rule {
                record: "instance_device:headroom_read_latency_seconds:rate5m",
                expression: latency("headroom_device_read_time_seconds_total", "headroom_device_reads_total"),
            },
            Rule {
                record: "instance_device:headroom_write_latency_seconds:rate5m",
                expression: latency(
                    "headroom_device_write_time_seconds_total",
                    "headroom_device_writes_total",
                ),
            },
            Rule {
                record: "instance_device:headroom_outstanding:rate5m",
                expression: "rate(headroom_device_read_time_seconds_total[5m])\n\
                             + rate(headroom_device_write_time_seconds_total[5m])"
                    .into(),
            },
        ],
    }
}

fn costs() -> Group {
    let used = |name: &str| {
        let large = format!("({BYTES} / {OPERATIONS} >= {SEQUENTIAL_BYTES_MIN})");
        format!(
            "max without (pattern) (\n  {name}{{pattern=\"sequential\"}} and ignoring (pattern) {large}\n  or\n  \
             {name}{{pattern=\"random\"}} unless ignoring (pattern) {large}\n)"
        )
    };
    Group {
        name: "headroom-costs",
        interval: "1m",
        rules: vec![
            Rule { record: COST, expression: used("headroom_capability_cost_seconds") },
            Rule { record: COST_PER_BYTE, expression: used("headroom_capability_cost_seconds_per_byte") },
        ],
    }
}

fn parts() -> Group {
    Group {
        name: "headroom-parts",
        interval: "1m",
        rules: vec![
            Rule { record: OF_OPERATIONS, expression: format!("{OPERATIONS} * {COST}") },
            Rule { record: OF_BYTES, expression: format!("{BYTES} * {COST_PER_BYTE}") },
        ],
    }
}

fn utilisation() -> Group {
    let shared = |part: &str, series: &str| {
        format!(
            "sum without (op) ({series}) * ignoring (part) headroom_capability_sharing_ratio{{part=\"{part}\"}}"
        )
    };
    let of_one = format!("max without (op) ({OF_OPERATIONS} + {OF_BYTES})");
    let of_both = format!("{}\n      + {}", shared("operations", OF_OPERATIONS), shared("bytes", OF_BYTES));
    let largest = format!(
        "max without (resource) (\n  label_replace({of_one}, \"resource\", \"one\", \"\", \"\")\n  or\n  \
         label_replace(\n    {of_both},\n    \"resource\", \"both\", \"\", \"\"\n  )\n)"
    );
    Group {
        name: "headroom-utilisation",
        interval: "1m",
        rules: vec![
            Rule { record: UTILISATION, expression: largest },
            Rule {
                record: "instance_mount:headroom_utilisation_ratio:agent",
                expression: "max without (source) (headroom_utilisation_ratio)".into(),
            },
        ],
    }
}

fn arrays() -> Group {
    let each = "max without (source) (headroom_utilisation_ratio{storage!=\"\"})";
    Group {
        name: "headroom-arrays",
        interval: "1m",
        rules: vec![Rule { record: SHARED, expression: format!("sum by (cluster, storage) ({each})") }],
    }
}

/// Rare, because trends read 30 and 60 days of it: at 5 min an alert over 1,000 hosts would read 43 million samples a minute.
/// Twice a day: each day has a sample even if one is missed.
fn days() -> Group {
    Group {
        name: "headroom-days",
        interval: "12h",
        rules: vec![Rule {
            record: P95_1D,
            expression: "quantile_over_time(0.95, headroom_utilisation_ratio[1d])".into(),
        }],
    }
}
