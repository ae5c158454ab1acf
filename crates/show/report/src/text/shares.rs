//! The members of a layout; threads and cores where a finding is about them.

use super::style::Style;
use super::table::{Align, Cell, Table};
use crate::number;
use findings::{Finding, FindingKind, Weight};
use workload::{CoreUse, RunResult};

const MEMBERS_MAX: usize = 32;
const THREADS_MAX: usize = 16;
const CORES_MAX: usize = 8;

fn is_reported(findings: &[Finding], kind: FindingKind) -> bool {
    findings.iter().any(|finding| finding.kind == kind && finding.weight != Weight::Good)
}

/// Which member did the work.
pub(super) fn members(result: &RunResult, style: &Style) -> Vec<String> {
    let Some(layout) = result.layout.filter(|_| !result.members.is_empty()) else { return Vec::new() };
    let mut table = Table::new(&[
        ("member", Align::Left),
        ("of it", Align::Right),
        ("I/Os", Align::Right),
        ("share", Align::Right),
        ("IOPS", Align::Right),
        ("MiB/s", Align::Right),
        ("outstanding", Align::Right),
        ("mean", Align::Right),
        ("longest", Align::Right),
        ("failed", Align::Right),
    ]);
    let all: u64 = result.members.iter().map(|member| member.total().count).sum();
    let seconds = result.elapsed_s();
    for member in result.members.iter().take(MEMBERS_MAX) {
        let total = member.total();
        let rate =
            |amount: f64| if seconds > 0.0 { number::rate(amount / seconds) } else { number::NONE.into() };
        let mean = total.mean_ns().filter(|ns| *ns > 0.0);
        table.push(vec![
            member.path.as_str().into(),
            workload::format_bytes(member.bytes).into(),
            number::count(total.count).into(),
            number::share(total.count as f64 / all.max(1) as f64).into(),
            rate(total.count as f64).into(),
            rate(total.bytes as f64 / 1_048_576.0).into(),
            rate(total.stall_ns as f64 / 1e9).into(),
            mean.map_or(number::NONE.into(), number::time).into(),
            if total.count == 0 { number::NONE.into() } else { number::time(total.ns_max as f64) }.into(),
            number::count(member.failed).into(),
        ]);
    }
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

pub(super) fn threads(result: &RunResult, findings: &[Finding], style: &Style) -> Vec<String> {
    let several = result.threads.len() > 1;
    if !several || !(is_reported(findings, FindingKind::Threads) || is_reported(findings, FindingKind::Cpu)) {
        return Vec::new();
    }
    let mut table = Table::new(&[
        ("thread", Align::Right),
        ("I/Os", Align::Right),
        ("share", Align::Right),
        ("bytes", Align::Right),
        ("mean", Align::Right),
        ("CPU", Align::Right),
    ]);
    for (at, thread) in result.threads.iter().enumerate().take(THREADS_MAX) {
        let total = thread.total();
        let mean = total.mean_ns().filter(|ns| *ns > 0.0);
        table.push(vec![
            at.to_string().into(),
            number::count(total.count).into(),
            number::share(total.count as f64 / result.ios().max(1) as f64).into(),
            workload::format_bytes(total.bytes).into(),
            mean.map_or(number::NONE.into(), number::time).into(),
            number::time(thread.cpu_ns as f64).into(),
        ]);
    }
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
    let mut table = Table::new(&[
        ("core", Align::Right),
        ("busy", Align::Right),
        ("user", Align::Right),
        ("kernel", Align::Right),
        ("idle", Align::Right),
    ]);
    let busy = |core: &CoreUse| core.user_percent + core.kernel_percent;
    let percent = |value: f64| Cell::from(number::share(value / 100.0));
    let mut push = |name: String, core: &CoreUse| {
        let (user, kernel) = (percent(core.user_percent), percent(core.kernel_percent));
        table.push(vec![name.into(), percent(busy(core)), user, kernel, percent(core.idle_percent)]);
    };
    let mut busiest: Vec<&CoreUse> = result.cores.iter().collect();
    busiest.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    for core in busiest.iter().take(CORES_MAX) {
        push(core.core.to_string(), core);
    }
    let mean = |of: fn(&CoreUse) -> f64| result.cores.iter().map(of).sum::<f64>() / result.cores.len() as f64;
    let all = CoreUse {
        core: 0,
        user_percent: mean(|core| core.user_percent),
        kernel_percent: mean(|core| core.kernel_percent),
        idle_percent: mean(|core| core.idle_percent),
    };
    push("mean".into(), &all);
    let mut lines = vec![style.heading("CPU of the whole machine")];
    lines.extend(table.lines(style));
    if result.cores.len() > CORES_MAX {
        lines.push(format!("  the {CORES_MAX} busiest of {} cores", result.cores.len()));
    }
    lines
}
