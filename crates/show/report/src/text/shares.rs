//! The members of a layout; threads and cores where a finding is about them.

use super::style::Style;
use super::table::Table;
use crate::number;
use findings::{Finding, FindingKind, Weight};
use workload::{CoreUse, RunResult, Tally};

const MEMBERS_MAX: usize = 32;
const THREADS_MAX: usize = 16;
const CORES_MAX: usize = 8;

fn is_reported(findings: &[Finding], kind: FindingKind) -> bool {
    findings.iter().any(|finding| finding.kind == kind && finding.weight != Weight::Good)
}

/// The members and their shares of the work.
pub(super) fn members(result: &RunResult, style: &Style) -> Vec<String> {
    let Some(layout) = result.layout.filter(|_| !result.members.is_empty()) else { return Vec::new() };
    let all: u64 = result.members.iter().map(|member| member.total().count).sum();
    let rate = |amount: f64| match result.elapsed_s() {
        seconds if seconds > 0.0 => number::rate(amount / seconds),
        _ => number::NONE.into(),
    };
    let table = Table::from_items(result.members.iter().take(MEMBERS_MAX))
        .left("member", |member| member.path.as_str())
        .right("of it", |member| workload::format_bytes(member.bytes))
        .right("I/Os", |member| number::count(member.total().count))
        .right("share", |member| number::share(member.total().count as f64 / all.max(1) as f64))
        .right("IOPS", |member| rate(member.total().count as f64))
        .right("MiB/s", |member| rate(member.total().bytes as f64 / 1_048_576.0))
        .right("outstanding", |member| rate(member.total().stall_ns as f64 / 1e9))
        .right("mean", |member| mean(&member.total()))
        .right("longest", |member| match member.total() {
            Tally { count: 0, .. } => number::NONE.into(),
            total => number::time(total.ns_max as f64),
        })
        .right("failed", |member| number::count(member.failed));
    let mut lines = vec![style.heading(&format!("Members ({layout})"))];
    lines.extend(table.flexible(0).lines(style));
    if result.members.len() > MEMBERS_MAX {
        lines.push(format!("  and {} more", result.members.len() - MEMBERS_MAX));
    }
    if let Some(only) = only_member(result) {
        lines.push(format!("  {only} did all of it"));
    }
    lines
}

/// The one member that all I/Os went to.
fn only_member(result: &RunResult) -> Option<&str> {
    let mut busy = result.members.iter().filter(|member| member.total().count > 0);
    let first = busy.next()?;
    busy.next().is_none().then_some(first.path.as_str())
}

fn mean(total: &Tally) -> String {
    total.mean_ns().filter(|ns| *ns > 0.0).map_or(number::NONE.into(), number::time)
}

pub(super) fn threads(result: &RunResult, findings: &[Finding], style: &Style) -> Vec<String> {
    let several = result.threads.len() > 1;
    if !several || !(is_reported(findings, FindingKind::Threads) || is_reported(findings, FindingKind::Cpu)) {
        return Vec::new();
    }
    let table = Table::from_items(result.threads.iter().enumerate().take(THREADS_MAX))
        .right("thread", |(at, _)| at.to_string())
        .right("I/Os", |(_, thread)| number::count(thread.total().count))
        .right("share", |(_, thread)| number::share(thread.total().count as f64 / result.ios().max(1) as f64))
        .right("bytes", |(_, thread)| workload::format_bytes(thread.total().bytes))
        .right("mean", |(_, thread)| mean(&thread.total()))
        .right("CPU", |(_, thread)| number::time(thread.cpu_ns as f64));
    let mut lines = vec![style.heading("Threads")];
    lines.extend(table.lines(style));
    if result.threads.len() > THREADS_MAX {
        lines.push(format!("  and {} more", result.threads.len() - THREADS_MAX));
    }
    lines
}

pub(super) fn cores(result: &RunResult, findings: &[Finding], style: &Style) -> Vec<String> {
    let matter = is_reported(findings, FindingKind::Cpu) || is_reported(findings, FindingKind::OtherLoad);
    if result.cores.is_empty() || !matter {
        return Vec::new();
    }
    let busy = |core: &CoreUse| core.user_percent + core.kernel_percent;
    let mut busiest: Vec<&CoreUse> = result.cores.iter().collect();
    busiest.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    let mean = |of: fn(&CoreUse) -> f64| result.cores.iter().map(of).sum::<f64>() / result.cores.len() as f64;
    let all = CoreUse {
        core: 0,
        user_percent: mean(|core| core.user_percent),
        kernel_percent: mean(|core| core.kernel_percent),
        idle_percent: mean(|core| core.idle_percent),
    };
    let busiest = busiest.into_iter().take(CORES_MAX).map(|core| (core.core.to_string(), core));
    let percent = |value: f64| number::share(value / 100.0);
    let table = Table::from_items(busiest.chain([("mean".to_owned(), &all)]))
        .right("core", |(name, _)| name.clone())
        .right("busy", |(_, core)| percent(busy(core)))
        .right("user", |(_, core)| percent(core.user_percent))
        .right("kernel", |(_, core)| percent(core.kernel_percent))
        .right("idle", |(_, core)| percent(core.idle_percent));
    let mut lines = vec![style.heading("CPU of the whole machine")];
    lines.extend(table.lines(style));
    if result.cores.len() > CORES_MAX {
        lines.push(format!("  the {CORES_MAX} busiest of {} cores", result.cores.len()));
    }
    lines
}
