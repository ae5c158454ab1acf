//! `headroom fleet` with real servers: Prometheus, VictoriaMetrics, vmauth, vmalert and Alertmanager, as Debian has them.

mod answers;
mod bench;
#[expect(dead_code, reason = "verdicts and pages of report's tests; some of them are used here")]
#[path = "../../../report/tests/report/sample.rs"]
mod checks;
mod dashboards;
mod end_to_end;
mod identity;
mod incidents;
mod nodes;
mod packaged;
mod ranking;
mod rules;
mod servers;
mod synthetic;
mod tls;
