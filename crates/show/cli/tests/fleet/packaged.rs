//! Files in `packaging` for a fleet, as the programs that read them check them.

use crate::nodes::{Ended, wait_for};
use crate::rules::{promtool, write_rules};
use crate::servers::{Server, free_port, has_prometheus, request};
use programs::Headroom;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use yaml_rust2::{Yaml, YamlLoader};

fn packaging(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging").join(part)
}

/// Copies the files of `packaging`, with the rules beside them.
fn copy_packaged(to: &Path) {
    for entry in std::fs::read_dir(packaging("prometheus")).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    write_rules(to);
}

/// The files of `packaging`, with the rules beside them, as each program checks its own.
#[test]
fn the_packaged_configurations_are_accepted_by_their_programs() {
    if !has_prometheus() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    copy_packaged(dir.path());
    promtool(&["check", "config", "prometheus.yml"], dir.path());
    let nowhere = "http://127.0.0.1:1";
    let checks: [(&str, Vec<String>); 3] = [
        ("amtool", vec!["check-config".into(), "alertmanager.yml".into()]),
        (
            "vmagent",
            vec![
                "-dryRun".into(),
                "-promscrape.config=vmagent.yml".into(),
                format!("-remoteWrite.url={nowhere}"),
            ],
        ),
        (
            "vmalert",
            vec![
                "-dryRun".into(),
                "-rule=headroom-*.yml".into(),
                format!("-datasource.url={nowhere}"),
                format!("-notifier.url={nowhere}"),
            ],
        ),
    ];
    for (program, arguments) in checks {
        match Command::new(program).args(&arguments).current_dir(dir.path()).output() {
            Ok(output) => assert!(output.status.success(), "{program}: {output:?}"),
            Err(error) => println!("skipped: {program} cannot be started: {error}"),
        }
    }
}

/// The ways to find hosts that stand in the configuration as comments: each group of lines begins with a sentence.
#[test]
fn the_examples_of_other_ways_to_find_hosts_are_accepted() {
    if !has_prometheus() {
        return;
    }
    let text = std::fs::read_to_string(packaging("prometheus/prometheus.yml")).unwrap();
    let comments = text.lines().filter_map(|line| line.strip_prefix("    # "));
    let mut examples: Vec<Vec<&str>> = Vec::new();
    for line in comments {
        if line.starts_with("Or from") {
            examples.push(Vec::new());
        } else if let Some(example) = examples.last_mut() {
            example.push(line);
        }
    }
    assert_eq!(examples.len(), 2, "{examples:#?}");
    for (example, name) in examples.iter().zip(["http_sd_configs", "kubernetes_sd_configs"]) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("token"), "sesame").unwrap();
        let lines: String = example.iter().map(|line| format!("    {line}\n")).collect();
        let config = format!("scrape_configs:\n  - job_name: headroom\n{lines}");
        std::fs::write(dir.path().join("prometheus.yml"), config).unwrap();
        // Debian's Prometheus is built without Kubernetes; vmagent reads the same configuration.
        if name == "http_sd_configs" {
            promtool(&["check", "config", "prometheus.yml"], dir.path());
        }
        let mut command = Command::new("vmagent");
        command.args(["-dryRun", "-promscrape.config=prometheus.yml", "-promscrape.config.strictParse"]);
        command.arg("-remoteWrite.url=http://127.0.0.1:1").current_dir(dir.path());
        match command.output() {
            Ok(output) => {
                assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            }
            Err(error) => println!("skipped: no vmagent: {error}"),
        }
    }
}

#[test]
fn the_packaged_configurations_start_as_they_are() {
    if !has_prometheus() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    copy_packaged(dir.path());
    let config = std::fs::read_to_string(dir.path().join("prometheus.yml")).unwrap();
    let server = Server::prometheus(dir, &config).unwrap();
    let dir = server.dir.path();
    let rules = request(server.port, "GET /api/v1/rules", "").unwrap();
    assert!(rules.contains("headroom-days") && rules.contains("HeadroomThrottled"), "{rules}");
    let (vmagent, vmalert) = (free_port(), free_port());
    let [url, path] = [server.url(), format!("{}/api/v1/write", server.url())];
    let programs = [
        (
            "vmagent",
            vmagent,
            vec!["-promscrape.config=vmagent.yml".into(), format!("-remoteWrite.url={path}")],
        ),
        (
            "vmalert",
            vmalert,
            vec![
                "-rule=headroom-*.yml".into(),
                format!("-datasource.url={url}"),
                format!("-remoteWrite.url={url}"),
                format!("-remoteRead.url={url}"),
                "-notifier.url=http://127.0.0.1:9093".into(),
            ],
        ),
    ];
    for (program, port, arguments) in programs {
        let mut command = Command::new(program);
        command.args(arguments).arg(format!("-httpListenAddr=127.0.0.1:{port}")).current_dir(dir);
        let Ok(child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            println!("skipped: no {program}");
            continue;
        };
        let _running = Ended(child);
        wait_for(program, || request(port, "GET /health", "").map(drop).ok_or_else(String::new));
    }
}

/// `scripts/test.d/fleet-files` checks the rest of the manifest against the schema of Kubernetes' API.
#[test]
fn the_agent_of_the_manifest_takes_its_arguments() {
    let manifest = std::fs::read_to_string(packaging("kubernetes/agent.yaml")).unwrap();
    let after = manifest.lines().skip_while(|line| line.trim() != "args:").skip(1);
    let entries = after.map(str::trim).take_while(|line| line.starts_with("- ") || line.starts_with('#'));
    let arguments: Vec<&str> = entries.filter_map(|line| line.strip_prefix("- ")).collect();
    assert!(arguments.len() > 3 && arguments[0] == "agent", "{arguments:?}");
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create_new(true).write(true).mode(0o400).open(&tokens).unwrap();
    file.write_all(b"sesame-sesame-sesame\n").unwrap();
    // Values that Kubernetes puts in their place.
    let place = |text: &str| {
        text.replace("/etc/headroom/tokens", tokens.to_str().unwrap())
            .replace("/var/lib/headroom", dir.path().to_str().unwrap())
            .replace("$(NODE_NAME)", "node-1")
    };
    let mut command = Command::new(programs::built().join("headroom"));
    let output =
        command.args(arguments.iter().map(|text| place(text))).arg("--check-config").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn jsonnet_evaluates_the_mixin_to_the_files() {
    let dir = tempfile::tempdir().unwrap();
    write_rules(dir.path());
    assert!(Headroom::new().run(&["fleet", "dashboards", dir.path().to_str().unwrap()]).status.success());
    let evaluate = |expression: &str| -> Option<Value> {
        let mut command = Command::new("jsonnet");
        command.arg("-e").arg(format!("local mixin = import 'mixin.libsonnet'; {expression}"));
        let output = command.current_dir(dir.path()).output();
        let output = output.inspect_err(|error| println!("skipped: no jsonnet: {error}")).ok()?;
        assert!(output.status.success(), "{expression}: {}", String::from_utf8_lossy(&output.stderr));
        Some(serde_json::from_slice(&output.stdout).unwrap())
    };
    let Some(dashboards) = evaluate("mixin.grafanaDashboards") else { return };
    for (name, json) in crate::dashboards::dashboards() {
        assert_eq!(dashboards[format!("{name}.json")], json, "{name}");
    }
    let alerts =
        evaluate("(mixin + {_config+:: {headroomRunbooks: 'http://wiki/storage'}}).prometheusAlerts");
    let rule = alerts.unwrap()["groups"][0]["rules"][2].clone();
    assert_eq!(rule["annotations"]["runbook_url"], "http://wiki/storage#headroomthrottled", "{rule:#}");
    // A list of YAML's values is one of JSON's.
    for (field, file) in
        [("prometheusRules", mixin::rules()), ("prometheusAlerts", mixin::alerts(mixin::RUNBOOKS))]
    {
        let written = YamlLoader::load_from_str(&file.text).unwrap();
        let evaluated =
            YamlLoader::load_from_str(&evaluate(&format!("mixin.{field}")).unwrap().to_string()).unwrap();
        assert_eq!(sorted(&evaluated[0]), sorted(&written[0]), "{field}");
    }
}

/// A value as text with its keys in order.
fn sorted(value: &Yaml) -> String {
    match value {
        Yaml::Hash(fields) => {
            let fields: BTreeMap<&str, String> =
                fields.iter().map(|(key, value)| (key.as_str().unwrap(), sorted(value))).collect();
            format!("{fields:?}")
        }
        Yaml::Array(values) => format!("{:?}", values.iter().map(sorted).collect::<Vec<_>>()),
        one => format!("{one:?}"),
    }
}
