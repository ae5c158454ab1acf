//! One agent under a steady load, scraped by Prometheus and pushing to VictoriaMetrics: the same series, and the same U.

use crate::nodes::{Ended, Node, wait_for};
use crate::rules::inlined;
use crate::servers::{Server, has_prometheus};
use crate::synthetic::now_unix_s;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

/// I/Os a second, far below what a loop device gives.
const RATE: &str = "300/s";
/// As long as the agent's window, so that both are means over the same time. With the rule's own 5 min the test would take that
/// long.
const WINDOW: &str = "[20s]";
/// Maximum difference of the two, in the median of `READINGS`: a single one may be right by chance.
const TOLERANCE: f64 = 0.05;
const READINGS: usize = 11;
const BETWEEN_READINGS: Duration = Duration::from_secs(2);
/// When both windows hold nothing but the load.
const SETTLED: Duration = Duration::from_secs(45);

/// Name and labels of each series of the agents.
fn series(server: &Server) -> BTreeSet<String> {
    // Of the two only a scrape has a way to say when a counter was zero beside its values.
    let found = server.query("{__name__=~\"headroom_.+\",__name__!~\".+_created\"}", now_unix_s());
    let labels =
        |one: &Value| -> BTreeMap<String, String> { serde_json::from_value(one["metric"].clone()).unwrap() };
    found.iter().map(|one| format!("{:?}", labels(one))).collect()
}

/// The one value of an expression.
fn value(server: &Server, expression: &str) -> Result<f64, String> {
    match &server.query(expression, now_unix_s())[..] {
        [one] => one["value"][1].as_str().and_then(|text| text.parse().ok()).ok_or_else(|| one.to_string()),
        other => Err(format!("{} series", other.len())),
    }
}

/// U by the device's counters over that of the agent.
fn ratio(server: &Server, by_counters: &str) -> Result<f64, String> {
    let agent = value(server, "headroom_utilisation_ratio")?;
    Ok(value(server, by_counters)? / agent)
}

/// The median of the ratio in each server, of readings that are taken after the load has settled.
fn compare(servers: [(&str, &Server); 2], by_counters: &str) {
    for (name, server) in servers {
        wait_for(&format!("a U by counters in {name}"), || ratio(server, by_counters).map(drop));
    }
    std::thread::sleep(SETTLED);
    let mut readings = [const { Vec::new() }; 2];
    for _ in 0..READINGS {
        for (ratios, (name, server)) in readings.iter_mut().zip(servers) {
            ratios.push(ratio(server, by_counters).unwrap_or_else(|why| panic!("{name}: {why}")));
        }
        std::thread::sleep(BETWEEN_READINGS);
    }
    for (mut ratios, (name, _)) in readings.into_iter().zip(servers) {
        ratios.sort_by(f64::total_cmp);
        println!("{name}: U by the counters over that of the agent: {ratios:.3?}");
        let median = ratios[READINGS / 2];
        assert!((median - 1.0).abs() < TOLERANCE, "{name}: {median:.3} is the median of {ratios:.3?}");
    }
}

#[test]
fn a_scraped_and_a_pushing_agent_are_one_host_and_both_servers_compute_its_utilisation() {
    if !has_prometheus() {
        return;
    }
    let Some(victoria) = Server::victoria_metrics("") else { return };
    let write = format!("{}/api/v1/write", victoria.url());
    let labels = ["--label", "cluster=east", "--label", "storage=array1"];
    let pushed_to = ["--remote-write", &write, "--push-every", "1s"];
    let Some(mut node) = Node::set_up(&[&labels[..], &pushed_to].concat()) else { return };
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: headroom\n    static_configs:\n      \
         - targets: ['{}']\n",
        node.instance()
    );
    let prometheus = Server::prometheus(tempfile::tempdir().unwrap(), &config).unwrap();
    let dir = node.disk.mount_point().to_str().unwrap();
    let mut load = node.headroom.command(&["run", dir, "--rate", RATE, "--writes", "30", "--block", "8K"]);
    load.args(["--size", "64M", "--duration", "10m"]).stdout(Stdio::null()).stderr(Stdio::null());
    let _load = Ended(load.spawn().unwrap());

    let by_counters = inlined("instance_mount:headroom_utilisation_ratio:rate5m").replace("[5m]", WINDOW);
    compare([("Prometheus", &prometheus), ("VictoriaMetrics", &victoria)], &by_counters);
    wait_for("the same series", || {
        let (scraped, pushed) = (series(&prometheus), series(&victoria));
        let differ: Vec<&String> = scraped.symmetric_difference(&pushed).collect();
        let is_known = scraped.len() > 50 && scraped.iter().all(|one| one.contains("\"cluster\": \"east\""));
        (is_known && differ.is_empty()).then_some(()).ok_or_else(|| format!("{differ:#?}"))
    });
    let ask = |server: &Server| {
        let answer = node.headroom.json(&["fleet", "--prometheus", &server.url()]);
        ["instance", "mount", "database", "labels"].map(|key| answer["volumes"][0][key].clone())
    };
    let host = ask(&prometheus);
    assert_eq!((&host[0], &host[3]["cluster"]), (&Value::from(node.instance()), &Value::from("east")));
    assert_eq!(host, ask(&victoria));

    // An agent that ends is not there any more at once, in both.
    node.end_agent();
    for (name, server) in [("Prometheus", &prometheus), ("VictoriaMetrics", &victoria)] {
        wait_for(&format!("an end in {name}"), || {
            let left = server.query("headroom_build_info", now_unix_s()).len();
            (left == 0).then_some(()).ok_or_else(|| format!("{left} series"))
        });
    }
}
