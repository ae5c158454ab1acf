//! Rules and alerts as promtool checks and tests them.

use crate::checks;
use crate::servers::{Server, fill, has_prometheus};
use crate::synthetic::{SyntheticHost, SyntheticVolume, now_unix_s, openmetrics, with_labels};
use capability::{Capability, CostModel, Curve, Maximum};
use checks::{Load, curve};
use incidents::Subject;
use metrics::{AgentState, DeviceOps, DeviceState, Format, SourceState, SubjectState};
use report::Check;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use verdict::{Figures, VerdictKind};
use workload::Shape;
use yaml_rust2::{Yaml, YamlLoader};

pub fn promtool(arguments: &[&str], dir: &Path) {
    let output = Command::new("promtool").args(arguments).current_dir(dir).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {arguments:?}: {}", String::from_utf8_lossy(&said));
}

/// The files of `headroom fleet rules` and `alerts`.
pub fn write_rules(dir: &Path) {
    let headroom = programs::Headroom::new();
    for what in ["rules", "alerts"] {
        let output = headroom.run(&["fleet", what, dir.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The agent's metrics of a database with this judgement.
fn exposition(check: &Check) -> String {
    let figures = Figures::from_moments(&check.observation.moments, check.capability.as_ref());
    let judged = SubjectState {
        verdict: check.verdict.verdict,
        confidence: check.verdict.confidence,
        judged_unix_ns: 0,
        since_unix_ns: 0,
        headroom: None,
        binding: check.verdict.binding,
        utilisation: check.verdict.utilisation,
        outstanding: Some(figures.outstanding),
        read: metrics::Latency::default(),
        commit: metrics::Latency::default(),
        incident_open: check.verdict.verdict.needs_action(),
        contradicted: None,
        caps: Default::default(),
    };
    let mut state = AgentState { version: "0.1.0".into(), ..AgentState::default() };
    state.subjects.insert(Subject { mount: "/data".into(), database: "postgres:".into() }, judged);
    if let Some(capability) = &check.capability {
        let capability = Capability { measured_unix_ns: 0, ..capability.clone() };
        state.capabilities.insert("/data".into(), Arc::new(capability));
    }
    state.sources.insert("postgres:".into(), SourceState { up: Some(true), ..SourceState::default() });
    state.text(Format::Prometheus)
}

/// A storage with `servers` parallel units, each of which takes `service_ns`.
fn storage(servers: f64, service_ns: f64) -> Capability {
    let read = Shape::random_read(8192);
    let shapes = [read, Shape::random_write(8192), Shape::sequential_read(524_288)];
    let curves: Vec<Curve> = shapes.map(|shape| curve(shape, servers, service_ns)).into();
    let maxima = shapes.map(|workload| {
        let iops = servers * 1e9 / service_ns;
        Maximum { workload, iops, iops_half_width: 0.01 * iops }
    });
    Capability { curves, cost_model: CostModel::fit(&maxima, &[]).ok(), ..checks::capability() }
}

fn steady(reads: f64, latency_ns: f64, capability: Capability) -> Check {
    checks::check(&checks::steady(Load::reads(reads, latency_ns), 24), Some(capability), Vec::new())
}

/// Series that keep their values, as promtool's tests have them.
fn input(series: &[(String, String)]) -> String {
    let line = |(name, value): &(String, String)| {
        format!("      - series: '{}'\n        values: '{value}+0x400'\n", name.replace('\'', "''"))
    };
    series.iter().map(line).collect()
}

/// One test of promtool: with this input the alert fires at that time, or is silent.
fn alert_test(input: &str, alert: &str, fires: bool) -> String {
    format!(
        "  - interval: 1m\n    input_series:\n{input}    promql_expr_test:\n      \
         - expr: 'count(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}) or vector(0)'\n        \
         eval_time: 100m\n        exp_samples:\n          - labels: '{{}}'\n            value: {}\n",
        u8::from(fires)
    )
}

fn run_tests(tests: &str, evaluation: &str, files: &str) {
    let dir = tempfile::tempdir().unwrap();
    write_rules(dir.path());
    let text = format!("rule_files: [{files}]\nevaluation_interval: {evaluation}\ntests:\n{tests}");
    std::fs::write(dir.path().join("tests.yml"), text).unwrap();
    promtool(&["test", "rules", "tests.yml"], dir.path());
}

const LABELS: &str = "instance=\"db1:9187\",job=\"headroom\"";

#[test]
fn the_documented_sum_over_devices_counts_no_io_twice() {
    if !has_prometheus() {
        return;
    }
    let documentation = include_str!("../../../../../docs/reference/metrics.md");
    let begin = documentation.find("`sum by (instance) (").unwrap() + 1;
    let expression = documentation[begin..].split('`').next().unwrap();
    let mut state = AgentState::default();
    let mut add = |mount: &str, device: &str, parent: &str, count: u64| {
        let reads = DeviceOps { count, ..DeviceOps::default() };
        let parents = vec![parent.to_owned()];
        let device = DeviceState { device: device.into(), parents, reads, ..DeviceState::default() };
        state.devices.insert(mount.into(), device);
    };
    // One device at two mount points, an image in a file on it, and a second partition of the same disk.
    add("/data", "vda1", "vda", 100);
    add("/srv", "vda1", "vda", 100);
    add("/image", "loop0", "vda1", 30);
    add("/log", "vda2", "vda", 7);
    let series = input(&with_labels(&state.text(Format::Prometheus), LABELS));
    let test = format!(
        "  - interval: 1m\n    input_series:\n{series}    promql_expr_test:\n      - expr: '{expression}'\n        \
         eval_time: 10m\n        exp_samples:\n          - labels: '{{instance=\"db1:9187\"}}'\n            value: 107\n"
    );
    run_tests(&test, "1m", "");
}

#[test]
fn promtool_accepts_the_rules_and_the_alerts() {
    if !has_prometheus() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    write_rules(dir.path());
    promtool(&["check", "rules", "headroom-rules.yml", "headroom-alerts.yml"], dir.path());
}

#[test]
fn an_alert_of_demand_fires_at_the_knee_of_this_storage_and_at_no_constant() {
    if !has_prometheus() {
        return;
    }
    // 3,000 I/Os a second where 12,700 were measured; 300 where 308 were; N = 20 where the knee is at 64.
    let with_room = steady(3_000.0, 1.15e6, checks::capability());
    let saturated = steady(300.0, 60.0e6, storage(2.0, 6.5e6));
    let wide = steady(100_000.0, 0.2e6, storage(64.0, 0.2e6));
    assert_ne!(with_room.verdict.verdict, VerdictKind::DemandExceedsCapability);
    assert_eq!(saturated.verdict.verdict, VerdictKind::DemandExceedsCapability);
    assert!((19.0..22.0).contains(&Figures::from_moments(&wide.observation.moments, None).outstanding));
    let alert = "HeadroomDemandExceedsCapability";
    let tests: String = [(with_room, false), (saturated, true), (wide, false)]
        .iter()
        .map(|(check, fires)| alert_test(&input(&with_labels(&exposition(check), LABELS)), alert, *fires))
        .collect();
    run_tests(&tests, "1m", "headroom-alerts.yml");
}

#[test]
fn each_alert_of_a_verdict_fires_for_it_and_none_for_another() {
    if !has_prometheus() {
        return;
    }
    let judged = [
        (checks::degraded(), "HeadroomStorageDegraded"),
        (checks::throttled(), "HeadroomThrottled"),
        (checks::healthy(), ""),
        (checks::serialized(), ""),
    ];
    let alerts = ["HeadroomDemandExceedsCapability", "HeadroomStorageDegraded", "HeadroomThrottled"];
    let mut tests = String::new();
    for (check, fires) in &judged {
        let input = input(&with_labels(&exposition(check), LABELS));
        tests.extend(alerts.iter().map(|alert| alert_test(&input, alert, alert == fires)));
    }
    run_tests(&tests, "1m", "headroom-alerts.yml");
}

#[test]
fn what_is_unknown_fires_and_what_is_known_is_silent() {
    if !has_prometheus() {
        return;
    }
    let healthy = with_labels(&exposition(&checks::healthy()), LABELS);
    let known = input(&healthy);
    let changed = |change: &dyn Fn(&(String, String)) -> Option<String>| -> String {
        healthy.iter().filter_map(change).collect()
    };
    let line =
        |name: &str, values: &str| Some(format!("      - series: '{name}'\n        values: '{values}'\n"));
    let unmeasured = changed(&|(name, value)| {
        (!name.starts_with("headroom_capability")).then(|| line(name, &format!("{value}+0x400")))?
    });
    let down = changed(&|(name, value)| match name.starts_with("headroom_source_up") {
        true => line(name, "0+0x400"),
        false => line(name, &format!("{value}+0x400")),
    });
    // Times go on with the clock, which begins at 0.
    let judged = |values: &'static str| {
        changed(&move |(name, value)| match name.starts_with("headroom_verdict_timestamp") {
            true => line(name, values),
            false => line(name, &format!("{value}+0x400")),
        })
    };
    let old = changed(&|(name, value)| match name.starts_with("headroom_capability_measured") {
        true => line(name, "-2678400+0x400"),
        false => line(name, &format!("{value}+0x400")),
    });
    let tests = [
        alert_test(&known, "HeadroomNeverMeasured", false),
        alert_test(&unmeasured, "HeadroomNeverMeasured", true),
        alert_test(&known, "HeadroomSourceDown", false),
        alert_test(&down, "HeadroomSourceDown", true),
        alert_test(&judged("0+60x400"), "HeadroomVerdictStale", false),
        alert_test(&judged("0+60x80 4800+0x400"), "HeadroomVerdictStale", true),
        // The host is gone: its series end.
        alert_test(&judged("0+60x80"), "HeadroomVerdictStale", true),
        alert_test(&known, "HeadroomCapabilityOld", false),
        alert_test(&old, "HeadroomCapabilityOld", true),
    ];
    run_tests(&tests.concat(), "1m", "headroom-alerts.yml");
}

#[test]
fn the_trend_fires_for_what_grows_to_its_limit_within_a_month() {
    if !has_prometheus() {
        return;
    }
    // The values that the rule records twice a day, and the time of the evaluation: after 30 days, ten hours after the newest
    // one, after 15 days. The last series has too few days.
    let tests: String = [
        ("0.4+0.0072x60", "43200m", true),
        ("0.4+0.0072x60", "43080m", true),
        ("0.4+0.01x60", "21600m", true),
        ("0.4+0x60", "43200m", false),
        ("1.1+0x60", "43200m", false),
        ("0.7+0.0144x14", "10000m", false),
    ]
        .iter()
        .map(|(values, at, fires)| {
            let name = "instance_mount:headroom_utilisation_ratio:p95_1d";
            let series = format!("{name}{{{LABELS},mount=\"/data\",source=\"postgres:\"}}");
            let count = "count(ALERTS{alertname=\"HeadroomExhaustedSoon\",alertstate=\"firing\"}) or vector(0)";
            format!(
                "  - interval: 12h\n    input_series:\n      - series: '{series}'\n        values: '{values}'\n    \
                 promql_expr_test:\n      - expr: '{count}'\n        eval_time: {at}\n        exp_samples:\n          \
                 - labels: '{{}}'\n            value: {}\n",
                u8::from(*fires)
            )
        })
        .collect();
    run_tests(&tests, "1h", "headroom-alerts.yml");
}

/// U of 400 random reads of 8 KiB and 100 writes of 16 KiB a second, the load of all synthetic devices, by the cost model.
fn synthetic_utilisation() -> f64 {
    let model = checks::capability().cost_model.unwrap();
    let flow = |side, per_second, bytes| capability::Flow {
        side,
        pattern: workload::Pattern::Random,
        per_second,
        bytes,
    };
    let flows = [flow(capability::Side::Read, 400.0, 8192.0), flow(capability::Side::Write, 100.0, 16_384.0)];
    model.utilisation(&flows).value
}

/// Series that go on each minute as they did in the first one.
fn growing_input(hosts: &[SyntheticHost], added: &str) -> String {
    let mut input = String::new();
    for host in hosts {
        let [first, second] = [0, 60]
            .map(|later| with_labels(&host.exposition(1_800_000_000 + later), &labels_of(host, added)));
        for ((name, value), (_, next)) in first.iter().zip(&second) {
            let [from, to]: [f64; 2] = [value, next].map(|text| text.parse().unwrap());
            let name = name.replace('\'', "''");
            // Writing into a String cannot fail.
            let _ = writeln!(input, "      - series: '{name}'\n        values: '{from}+{}x120'", to - from);
        }
    }
    input
}

fn labels_of(host: &SyntheticHost, added: &str) -> String {
    format!("instance=\"{}\",job=\"headroom\",cluster=\"{}\"{added}", host.instance, host.cluster)
}

#[test]
fn promtool_records_by_the_written_rules_what_the_cost_model_says_and_the_sum_of_an_array() {
    if !has_prometheus() {
        return;
    }
    let headrooms = [2.5, 4.0];
    let hosts = headrooms.map(|headroom| {
        let instance = format!("db{headroom}:9187");
        SyntheticHost::new(&instance, "east", vec![SyntheticVolume::healthy("/data", headroom)])
    });
    let sum: f64 = headrooms.iter().map(|headroom| 1.0 / headroom).sum();
    // The recorded series, their number, and the value of each.
    let expected = [
        ("instance_mount_op:headroom_device_operations:rate5m{op=\"read\"}", 2, 400.0),
        ("instance_mount_op:headroom_device_bytes:rate5m{op=\"write\"}", 2, 100.0 * 16_384.0),
        ("instance_mount:headroom_utilisation_ratio:rate5m", 2, synthetic_utilisation()),
        ("instance_device:headroom_read_latency_seconds:rate5m", 2, 1.2e-3),
        ("instance_device:headroom_write_latency_seconds:rate5m", 2, 1.2e-3),
        ("instance_device:headroom_outstanding:rate5m", 2, 500.0 * 1.2e-3),
        ("instance_mount:headroom_utilisation_ratio:agent{instance=\"db2.5:9187\"}", 1, 1.0 / headrooms[0]),
        ("instance_mount:headroom_utilisation_ratio:agent{instance=\"db4:9187\"}", 1, 1.0 / headrooms[1]),
        ("storage:headroom_utilisation_ratio:sum{cluster=\"east\",storage=\"array1\"}", 1, sum),
    ];
    let mut test = format!(
        "  - interval: 1m\n    input_series:\n{}    promql_expr_test:\n",
        growing_input(&hosts, ",storage=\"array1\"")
    );
    for (series, count, value) in expected {
        // promtool compares floating-point numbers bit by bit.
        let _ = write!(
            test,
            "      - expr: 'count(abs({series} / {value} - 1) < 0.001)'\n        eval_time: 100m\n        \
             exp_samples:\n          - labels: '{{}}'\n            value: {count}\n"
        );
    }
    run_tests(&test, "1m", "headroom-rules.yml");
}

#[test]
fn utilisation_by_the_counters_is_that_of_the_cost_model() {
    if !has_prometheus() {
        return;
    }
    let (expected, now) = (synthetic_utilisation(), now_unix_s());
    let host = SyntheticHost::new("db1:9187", "east", vec![SyntheticVolume::healthy("/data", 3.0)]);
    let dir = tempfile::tempdir().unwrap();
    let times: Vec<u64> = (now - 1800..now + 300).step_by(30).collect();
    fill(dir.path(), &openmetrics(&[host], &times));
    let server = Server::prometheus(dir, "global: {}\n").unwrap();
    let found = server.query(&inlined("instance_mount:headroom_utilisation_ratio:rate5m"), now);
    assert_eq!(found.len(), 1, "{found:#?}");
    let value: f64 = found[0]["value"][1].as_str().unwrap().parse().unwrap();
    assert!((value / expected - 1.0).abs() < 0.05, "{value} by query, {expected} by the model");
}

/// The expression of a rule, with the expressions of the rules that it uses in their place.
pub fn inlined(record: &str) -> String {
    let rules = rules();
    let mut text = rules.iter().find(|(name, _)| name == record).unwrap().1.clone();
    // Each rule uses only those before it.
    for (earlier, expression) in rules.iter().rev() {
        text = text.replace(earlier, &format!("({expression})"));
    }
    text
}

/// The names of the recording rules and their expressions, in the order in which they build on each other.
pub fn rules() -> Vec<(String, String)> {
    let document = YamlLoader::load_from_str(&mixin::rules().text).unwrap().remove(0);
    let groups = document["groups"].as_vec().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_vec().unwrap());
    let text = |rule: &Yaml, field: &str| rule[field].as_str().unwrap().to_owned();
    rules.map(|rule| (text(rule, "record"), text(rule, "expr"))).collect()
}
