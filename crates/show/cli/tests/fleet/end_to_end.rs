//! Three agents on three disks, a Prometheus that scrapes two of them and is written to by the vmagent that scrapes the third,
//! vmalert and Alertmanager: the third's disk is throttled and freed again.

use crate::nodes::{Ended, Node, wait_for};
use crate::rules::write_rules;
use crate::servers::{Server, free_port, has_prometheus, request};
use programs::Headroom;
use serde_json::Value;
use std::process::{Command, Stdio};
use workload::CapKind;

/// Writes a second of the throttled disk: the paced commits of a small database need several times that.
const CAP: u64 = 12;

/// Scrape configuration of Prometheus and vmagent.
fn scrape_config(targets: &[String]) -> String {
    let targets: Vec<String> = targets.iter().map(|target| format!("'{target}'")).collect();
    format!(
        "global: {{scrape_interval: 2s}}\nscrape_configs:\n  - job_name: headroom\n    static_configs:\n      \
         - targets: [{}]\n",
        targets.join(", ")
    )
}

/// Scrapes that agent, and writes to the server.
fn start_vmagent(server: &Server, instance: String) -> Option<Ended> {
    let dir = server.dir.path();
    std::fs::write(dir.join("vmagent.yml"), scrape_config(&[instance])).unwrap();
    let mut command = Command::new("vmagent");
    command.args(["-promscrape.config=vmagent.yml", "-remoteWrite.flushInterval=1s"]);
    command.arg(format!("-remoteWrite.url={}/api/v1/write", server.url())).current_dir(dir);
    command.arg("-remoteWrite.tmpDataPath=vmagent").arg(format!("-httpListenAddr=127.0.0.1:{}", free_port()));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.inspect_err(|error| println!("skipped: no vmagent: {error}")).ok().map(Ended)
}

fn start_alertmanager(server: &Server) -> Option<(Ended, u16)> {
    let (port, dir) = (free_port(), server.dir.path());
    std::fs::write(
        dir.join("alertmanager.yml"),
        "route: {receiver: none, group_wait: 1s, group_interval: 1s}\nreceivers: [{name: none}]\n",
    )
    .unwrap();
    let mut command = Command::new("prometheus-alertmanager");
    command.args(["--config.file=alertmanager.yml", "--storage.path=alerts", "--cluster.listen-address="]);
    command.arg(format!("--web.listen-address=127.0.0.1:{port}")).current_dir(dir);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.inspect_err(|error| println!("skipped: no Alertmanager: {error}")).ok()?;
    wait_for("an Alertmanager", || request(port, "GET /-/ready", "").map(drop).ok_or_else(String::new));
    Some((Ended(child), port))
}

/// With the alerts of `headroom fleet alerts`, which hold for a shorter time and are evaluated more often.
fn start_vmalert(server: &Server, alertmanager: u16) -> Option<Ended> {
    let dir = server.dir.path();
    write_rules(dir);
    let alerts = std::fs::read_to_string(dir.join("headroom-alerts.yml")).unwrap();
    let quick = alerts.replace("for: 5m", "for: 4s").replace("interval: 1m", "interval: 2s");
    std::fs::write(dir.join("headroom-alerts.yml"), quick).unwrap();
    let mut command = Command::new("vmalert");
    command.arg("-rule=headroom-*.yml").arg(format!("-datasource.url={}", server.url()));
    command
        .arg(format!("-remoteWrite.url={}", server.url()))
        .arg(format!("-remoteRead.url={}", server.url()));
    command.arg(format!("-notifier.url=http://127.0.0.1:{alertmanager}"));
    command.arg(format!("-httpListenAddr=127.0.0.1:{}", free_port())).current_dir(dir);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.inspect_err(|error| println!("skipped: no vmalert: {error}")).ok().map(Ended)
}

/// Instances with an active alert of a throttled volume.
fn throttled(alertmanager: u16) -> Vec<String> {
    let answer = request(alertmanager, "GET /api/v2/alerts?active=true", "").unwrap_or_default();
    // Chunked or not, the JSON is what stands between the brackets.
    let json = answer.find('[').zip(answer.rfind(']')).map(|(begin, end)| &answer[begin..=end]);
    let alerts: Vec<Value> = json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let named = alerts.iter().map(|alert| &alert["labels"]);
    let named = named.filter(|labels| labels["alertname"] == "HeadroomThrottled");
    named.map(|labels| labels["instance"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_throttled_disk_becomes_rank_1_its_alert_arrives_and_clears() {
    if !has_prometheus() {
        return;
    }
    let made: Vec<Option<Node>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| Node::set_up(&[]))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let Some(mut nodes) = made.into_iter().collect::<Option<Vec<Node>>>() else { return };
    let scraped: Vec<String> = [&nodes[0], &nodes[2]].map(Node::instance).into();
    let server = Server::prometheus(tempfile::tempdir().unwrap(), &scrape_config(&scraped)).unwrap();
    let Some(_vmagent) = start_vmagent(&server, nodes[1].instance()) else { return };
    let Some((_alertmanager, alertmanager)) = start_alertmanager(&server) else { return };
    let Some(_vmalert) = start_vmalert(&server, alertmanager) else { return };
    let headroom = Headroom::new();
    let ask = || headroom.json(&["fleet", "--prometheus", &server.url()]);
    let verdicts = |answer: &Value| -> Vec<String> {
        let volumes = answer["volumes"].as_array().unwrap();
        volumes.iter().map(|volume| volume["verdict"].as_str().unwrap_or_default().to_owned()).collect()
    };
    wait_for("three that are judged", || {
        let answer = ask();
        let found = verdicts(&answer);
        let are_judged =
            found.len() == 3 && found.iter().all(|verdict| verdict != "cannot-say" && verdict != "throttled");
        are_judged.then_some(()).ok_or_else(|| format!("{answer:#}"))
    });
    assert!(throttled(alertmanager).is_empty());

    let instance = nodes[1].instance();
    if !nodes[1].disk.throttle(CapKind::WriteIops, CAP) {
        return;
    }
    wait_for("rank 1", || {
        let answer = ask();
        let first = &answer["volumes"][0];
        let is_it = first["instance"] == instance.as_str() && first["verdict"] == "throttled";
        is_it.then_some(()).ok_or_else(|| format!("{answer:#}"))
    });
    wait_for("an alert", || {
        let active = throttled(alertmanager);
        (active == [instance.clone()]).then_some(()).ok_or_else(|| format!("{active:?}"))
    });

    nodes[1].disk.unthrottle();
    wait_for("another verdict", || {
        let answer = ask();
        let is_over = verdicts(&answer).iter().all(|verdict| verdict != "throttled");
        is_over.then_some(()).ok_or_else(|| format!("{answer:#}"))
    });
    wait_for("no alert", || {
        let active = throttled(alertmanager);
        active.is_empty().then_some(()).ok_or_else(|| format!("{active:?}"))
    });
}
