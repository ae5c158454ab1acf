//! Contents of the dashboards: each panel is a title, a description, a unit and its expressions.

use crate::device_panels::{
    device_busy, device_bytes, device_latency, device_operations, device_outstanding,
};
use crate::file_panels::{SOURCE, file_bytes, file_latency, file_operations, slowest_percent, waits};
use crate::grafana::{Dashboard, RATIO, dashboard, graph, number, rate, series, table};
use crate::rules::{P95_1D, P95_RANGE, SHARED, UTILISATION};

/// All of them.
pub fn dashboards() -> Vec<Dashboard> {
    vec![fleet(), host(), volume(), database(), incident()]
}

const VOLUME: &str = "{{instance}} {{mount}}";
const DATABASE: &str = "{{instance}} {{mount}} {{source}}";
const BAD: &str = ",verdict!~\"healthy|nobody-waits|cannot-say\"";

fn fleet() -> Dashboard {
    let never = format!(
        "count(max without (verdict) ({}) unless on (cluster, job, instance, mount) {}) or vector(0)",
        series("headroom_verdict", ""),
        series("headroom_capability_measured_timestamp_seconds", "")
    );
    let panels = [
        number(
            "Volumes that need action",
            "Verdicts that need action now.",
            "none",
            format!("count({} == 1) or vector(0)", series("headroom_verdict", BAD)),
        ),
        number(
            "Open incidents",
            "Incidents that the agents hold open.",
            "none",
            format!("sum({})", series("headroom_incident_open", "")),
        ),
        number(
            "Never measured",
            "Volumes of which nothing can be said until headroom measure ran there.",
            "none",
            never,
        ),
        number(
            "Sources that give nothing",
            "Databases whose counters the agents cannot read.",
            "none",
            format!("count({} == 0) or vector(0)", series("headroom_source_up", "")),
        ),
        table(
            "Least headroom",
            "How many times today's demand can be carried: the 20 volumes with the least.",
            "none",
            format!("bottomk(20, {})", series("headroom_headroom_ratio", "")),
        ),
        graph(
            "Highest utilisation",
            "Share of the storage in use, of what runs out first; 100 % is the operating limit.",
            RATIO,
            vec![(format!("topk(10, {})", series("headroom_utilisation_ratio", "")), DATABASE)],
        ),
        graph(
            "Verdicts",
            "How many databases and volumes have each verdict.",
            "none",
            vec![(format!("sum by (verdict) ({})", series("headroom_verdict", "")), "{{verdict}}")],
        ),
        graph(
            "Daily 95th percentile of utilisation",
            "What a trend is computed from; recorded by headroom fleet rules.",
            RATIO,
            vec![(format!("topk(10, last_over_time({}{P95_RANGE}))", series(P95_1D, "")), DATABASE)],
        ),
        graph(
            "Arrays that hosts share",
            "The sum of what hosts with the same label storage ask of it, each measured alone.",
            RATIO,
            vec![(format!("last_over_time({SHARED}{{cluster=~\"$cluster\"}}[15m])"), "{{storage}}")],
        ),
        table(
            "Oldest capabilities",
            "How long ago volumes were measured.",
            "s",
            format!("topk(20, time() - {})", series("headroom_capability_measured_timestamp_seconds", "")),
        ),
        graph(
            "Lost pushes",
            "Requests that a server pushed to will never get; nothing where agents are scraped.",
            "cps",
            vec![(rate("headroom_pushes_dropped_total", ""), "{{instance}} {{reason}}")],
        ),
        table("Agents", "Hosts and the version of their agent.", "none", series("headroom_build_info", "")),
    ];
    dashboard("headroom-fleet", "Headroom / Fleet", &[], &panels)
}

fn host() -> Dashboard {
    let panels = [
        graph(
            "Utilisation",
            "Share of the storage in use; 100 % is the operating limit.",
            RATIO,
            vec![(series("headroom_utilisation_ratio", ""), DATABASE)],
        ),
        graph(
            "Headroom",
            "How many times today's demand can be carried.",
            "none",
            vec![(series("headroom_headroom_ratio", ""), DATABASE)],
        ),
        graph(
            "Latency over expected",
            LATENCY_TIMES,
            "none",
            vec![(latency_times(""), "{{mount}} {{source}} {{op}}")],
        ),
        graph(
            "Outstanding I/Os of databases",
            "Mean I/Os that each database waits for.",
            "none",
            vec![(series("headroom_demand_outstanding", ""), DATABASE)],
        ),
        device_operations(""),
        device_bytes(""),
        device_latency(""),
        device_outstanding(""),
        device_busy(""),
        graph(
            "Processors that agents use",
            "What Headroom itself costs; 100 % is one processor.",
            RATIO,
            vec![(of_agents(&rate("process_cpu_seconds_total", "")), "{{instance}}")],
        ),
        graph(
            "Memory that agents use",
            "What Headroom itself holds in memory.",
            "bytes",
            vec![(of_agents(&series("process_resident_memory_bytes", "")), "{{instance}}")],
        ),
        graph(
            "Open files of agents",
            "File descriptors of Headroom itself.",
            "none",
            vec![(of_agents(&series("process_open_fds", "")), "{{instance}}")],
        ),
        graph(
            "Age of agents",
            "Time since each agent started; one that starts again and again stays low.",
            "s",
            vec![(
                of_agents(&format!("time() - {}", series("process_start_time_seconds", ""))),
                "{{instance}}",
            )],
        ),
    ];
    dashboard("headroom-host", "Headroom / Host", &[], &panels)
}

/// Other programs expose series of the same names.
fn of_agents(expression: &str) -> String {
    format!("({expression}) and on (cluster, job, instance) {}", series("headroom_build_info", ""))
}

const MOUNT: &str = ",mount=~\"$mount\"";
const LATENCY_TIMES: &str = "Above 1 the storage is slower than its measured curve at that load.";

fn latency_times(further: &str) -> String {
    format!(
        "{} / {}",
        series("headroom_latency_seconds", further),
        series("headroom_expected_latency_seconds", further)
    )
}

fn volume() -> Dashboard {
    let panels = [
        graph(
            "Utilisation by agent and by counters",
            "The agent's own figure, and the one recomputed from the device's counters by the cost model. They differ where \
             limits count or load comes in bursts.",
            RATIO,
            vec![
                (series("headroom_utilisation_ratio", MOUNT), "{{mount}} {{source}}: agent"),
                (series(UTILISATION, MOUNT), "{{mount}}: counters"),
            ],
        ),
        graph(
            "Headroom and its range",
            "How many times today's demand can be carried: the figure to plan with, and both ends.",
            "none",
            vec![
                (series("headroom_headroom_ratio", MOUNT), "{{mount}} {{source}}"),
                (series("headroom_headroom_low_ratio", MOUNT), "{{mount}} {{source}} low"),
                (series("headroom_headroom_high_ratio", MOUNT), "{{mount}} {{source}} high"),
            ],
        ),
        table(
            "Measured curves: latency",
            "Mean latency that was measured with so many outstanding I/Os.",
            "s",
            series("headroom_curve_latency_seconds", MOUNT),
        ),
        table(
            "Measured curves: I/Os a second",
            "What was measured with so many outstanding I/Os.",
            "iops",
            series("headroom_curve_operations_per_second", MOUNT),
        ),
        table(
            "Knees",
            "Outstanding I/Os at which latency begins to pay for throughput.",
            "none",
            series("headroom_capability_knee_outstanding", MOUNT),
        ),
        graph(
            "Seen over known",
            "What the storage was seen to give over what is known of it, where that differs by 15 % for a day.",
            "none",
            vec![(series("headroom_capability_contradicted_ratio", MOUNT), "{{mount}} {{source}}")],
        ),
        table(
            "Highest rates",
            "I/Os a second of each curve.",
            "iops",
            series("headroom_capability_operations_per_second", MOUNT),
        ),
        table(
            "Cost of an I/O",
            "Time of the storage that each I/O takes, beside its bytes.",
            "s",
            series("headroom_capability_cost_seconds", MOUNT),
        ),
        table(
            "Cost of a MiB",
            "Time of the storage that the bytes take.",
            "s",
            format!("1048576 * {}", series("headroom_capability_cost_seconds_per_byte", MOUNT)),
        ),
        table(
            "Shared part of the cost",
            "What reads and writes take from each other.",
            RATIO,
            series("headroom_capability_sharing_ratio", MOUNT),
        ),
        table(
            "Limits on I/Os",
            "Of the databases' control groups, a second.",
            "iops",
            series("headroom_cap_operations_per_second", MOUNT),
        ),
        table(
            "Limits on bytes",
            "Of the databases' control groups, a second.",
            "Bps",
            series("headroom_cap_bytes_per_second", MOUNT),
        ),
        table(
            "Devices",
            "What each volume's device is, and on which it lies.",
            "none",
            series("headroom_device_info", MOUNT),
        ),
        device_operations(MOUNT),
        device_bytes(MOUNT),
        device_latency(MOUNT),
        device_outstanding(MOUNT),
    ];
    dashboard(
        "headroom-volume",
        "Headroom / Volume",
        &[("mount", "headroom_verdict_timestamp_seconds")],
        &panels,
    )
}

fn database() -> Dashboard {
    let panels = [
        graph(
            "Verdict",
            "1 for the verdict that holds.",
            "none",
            vec![(format!("{} == 1", series("headroom_verdict", SOURCE)), "{{mount}} {{verdict}}")],
        ),
        graph(
            "Utilisation",
            "Of the volumes that its files lie on.",
            RATIO,
            vec![(series("headroom_utilisation_ratio", SOURCE), "{{mount}}")],
        ),
        graph(
            "Latency",
            "Reads from the storage and commits, and what the measured curves expect.",
            "s",
            vec![
                (series("headroom_latency_seconds", SOURCE), "{{mount}} {{op}}"),
                (series("headroom_expected_latency_seconds", SOURCE), "{{mount}} {{op}} expected"),
            ],
        ),
        graph(
            "Latency over expected",
            LATENCY_TIMES,
            "none",
            vec![(latency_times(SOURCE), "{{mount}} {{op}}")],
        ),
        graph(
            "Outstanding I/Os",
            "Mean I/Os that it waits for.",
            "none",
            vec![(series("headroom_demand_outstanding", SOURCE), "{{mount}}")],
        ),
        file_operations(),
        file_bytes(),
        file_latency(),
        slowest_percent(),
        waits(),
        graph(
            "Source",
            "1: the last sample gave counters.",
            "none",
            vec![(series("headroom_source_up", SOURCE), "{{source}}")],
        ),
        graph(
            "Samples that gave nothing",
            "A second of the last minutes.",
            "cps",
            vec![(rate("headroom_source_failures_total", SOURCE), "{{source}}")],
        ),
        graph(
            "Time of a sample",
            "How long reading the counters took.",
            "s",
            vec![(series("headroom_source_collection_duration_seconds", SOURCE), "{{source}}")],
        ),
        graph(
            "Age of the counters",
            "Time since counters were last read.",
            "s",
            vec![(
                format!("time() - {}", series("headroom_source_last_success_timestamp_seconds", SOURCE)),
                "{{source}}",
            )],
        ),
    ];
    dashboard("headroom-database", "Headroom / Database", &[("source", "headroom_source_up")], &panels)
}

fn incident() -> Dashboard {
    let panels = [
        graph(
            "Open incidents",
            "1 while one is open.",
            "none",
            vec![(series("headroom_incident_open", ""), DATABASE)],
        ),
        graph(
            "Verdicts that need action",
            "1 while the verdict holds.",
            "none",
            vec![(series("headroom_verdict", BAD), "{{instance}} {{mount}} {{verdict}}")],
        ),
        table(
            "Time since the verdict changed",
            "How long each verdict has held.",
            "s",
            format!("time() - {}", series("headroom_verdict_since_timestamp_seconds", "")),
        ),
        graph(
            "Utilisation",
            "100 % is the operating limit.",
            RATIO,
            vec![(series("headroom_utilisation_ratio", ""), DATABASE)],
        ),
        graph(
            "Latency over expected",
            LATENCY_TIMES,
            "none",
            vec![(latency_times(""), "{{instance}} {{mount}} {{op}}")],
        ),
        table("What runs out first", "The resource that binds.", "none", series("headroom_binding", "")),
        table("Confidence", "1 low, 2 medium, 3 high.", "none", series("headroom_verdict_confidence", "")),
        graph(
            "Age of verdicts",
            "Time since each was reached; an agent judges every few seconds.",
            "s",
            vec![(format!("time() - {}", series("headroom_verdict_timestamp_seconds", "")), VOLUME)],
        ),
    ];
    dashboard("headroom-incident", "Headroom / Incident", &[], &panels)
}
