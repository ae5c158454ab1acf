//! The text report of diskspd 2.2.

use crate::profile::Profile;
use crate::report::parameters::{Form, parameters, size};
use crate::report::tables::{io_tables, percentiles, time_spans};
use crate::report::view::Span;
use crate::report::{Report, SystemFacts};
use std::fmt::{Result, Write};
use workload::CoreUse;

const FORM: Form = Form {
    unit: "   MiB/s  ",
    file_size: size,
    size,
    outstanding: "number of outstanding I/O operations per thread",
    always_tells_stride: false,
    before_span: "\n",
};

/// The report that diskspd 2.2 prints, to the byte; these cells differ where diskspd is wrong:
///
/// * a percentile with fewer than ten samples above it is `N/A` (diskspd prints the maximum), and so is all
///   of the total column where there are no samples (diskspd: 0.000);
/// * `IopsStdDev` is `N/A` where no bucket was measured to its end (diskspd: 0.00);
/// * a machine whose CPU use is not known has no CPU table.
///
/// Wait statistics (`-vs`) are left out: this engine has no lookaside to count.
pub fn text(report: &Report<'_>) -> String {
    written(|out| {
        parameters(out, report.command_line, report.profile, FORM)?;
        system(out, report.system)?;
        time_spans(out, report, FORM, |out, span| time_span(out, span, report.system))
    })
}

/// The part of [`text`] that repeats the request: all that `-Rp` prints.
pub fn profile_text(command_line: &str, profile: &Profile) -> String {
    written(|out| parameters(out, command_line, profile, FORM))
}

pub(crate) fn written(write: impl FnOnce(&mut String) -> Result) -> String {
    let mut out = String::new();
    write(&mut out).expect("a string takes any text");
    out
}

fn system(out: &mut String, system: &SystemFacts) -> Result {
    write!(out, "System information:\n\n")?;
    writeln!(out, "\tcomputer name: {}", system.computer_name)?;
    write!(out, "\tstart time: {}\n\n", system.start_time())?;
    if !system.cpus.is_empty() {
        writeln!(out, "\tcpu count:\t\t{}", system.cpus.len())?;
        writeln!(out, "\tcore count:\t\t{}", system.distinct(|cpu| cpu.core).len())?;
        // Groups of 64 processors are a matter of Windows.
        writeln!(out, "\tgroup count:\t\t1")?;
        writeln!(out, "\tnode count:\t\t{}", system.distinct(|cpu| cpu.node).len())?;
        writeln!(out, "\tsocket count:\t\t{}", system.distinct(|cpu| cpu.socket).len())?;
        let several_kinds = if system.efficiency_class_max() > 0 { "y" } else { "n" };
        writeln!(out, "\theterogeneous cores:\t{several_kinds}")?;
    }
    writeln!(out, "\n\tactive power scheme:\t{}", system.power_scheme())
}

fn time_span(out: &mut String, span: &Span<'_>, system: &SystemFacts) -> Result {
    if span.requested.shares_outstanding() {
        writeln!(out, "request count:\t\t{}", span.requested.outstanding_total)?;
    }
    cpu_table(out, span.cores(), system)?;
    io_tables(out, span, FORM)?;
    if !span.requested.measure_latency {
        return Ok(());
    }
    let groups = span.by_path();
    if groups.len() > 1 {
        for (path, results) in &groups {
            writeln!(out, "\nLatency distribution: {path}")?;
            percentiles(out, results)?;
        }
    }
    writeln!(out, "\nTotal latency distribution:")?;
    percentiles(out, &span.results)
}

/// ```text
/// Socket | Node | Core | Class | CPU |  Usage |  User  | Kernel |  Idle
/// ```
///
/// A column before `CPU` is there only where the machine has more than one of its kind.
fn cpu_table(out: &mut String, cores: &[CoreUse], system: &SystemFacts) -> Result {
    if cores.is_empty() {
        return Ok(());
    }
    let fastest = system.efficiency_class_max();
    let sockets = system.distinct(|cpu| cpu.socket).len() > 1;
    let nodes = system.distinct(|cpu| cpu.node).len() > 1;
    let (threads, classes) = (system.has_hardware_threads(), fastest > 0);
    let columns = [(sockets, "Socket | "), (nodes, "Node | "), (threads, "Core | "), (classes, "Class | ")];
    let heading: String = columns.iter().filter(|(shown, _)| *shown).map(|(_, name)| *name).collect();
    let border = "-".repeat(heading.len() + 40);
    writeln!(out, "\n{heading}CPU |  Usage |  User  | Kernel |  Idle\n{border}")?;
    for core in cores {
        let cpu = system.cpu(core.core);
        if sockets {
            write!(out, "{:>7}| ", cpu.socket)?;
        }
        if nodes {
            write!(out, "{:>5}| ", cpu.node)?;
        }
        if threads {
            write!(out, "{:>5}| ", cpu.core)?;
        }
        if classes {
            let mark = if cpu.efficiency_class == fastest { 'P' } else { ' ' };
            write!(out, "{:>5}{mark}| ", cpu.efficiency_class)?;
        }
        writeln!(out, "{:>4}| {}", core.core, percents(core, "| "))?;
    }
    let indent = " ".repeat(heading.len());
    writeln!(out, "{border}\n{indent}avg.| {}", percents(&average(cores), "| "))
}

/// Usage, user, kernel and idle; 2.0.17 has another space before the kernel's.
pub(crate) fn percents(core: &CoreUse, before_kernel: &str) -> String {
    let CoreUse { user_percent: user, kernel_percent: kernel, idle_percent: idle, .. } = *core;
    format!("{:>6.2}%| {user:>6.2}%{before_kernel}{kernel:>6.2}%| {idle:>6.2}%", user + kernel)
}

pub(crate) fn average(cores: &[CoreUse]) -> CoreUse {
    let mean = |of: fn(&CoreUse) -> f64| cores.iter().map(of).sum::<f64>() / cores.len() as f64;
    CoreUse {
        core: 0,
        user_percent: mean(|core| core.user_percent),
        kernel_percent: mean(|core| core.kernel_percent),
        idle_percent: mean(|core| core.idle_percent),
    }
}
