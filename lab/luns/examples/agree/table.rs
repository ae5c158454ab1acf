//! The table.

use crate::measuring::{KNEE_OFF_MAX, KneeRow, MEAN_OFF_MAX, RATE_OFF_MAX, Row, off};
use std::collections::BTreeMap;
use workload::format_ns;

/// Prints all; whether all is within its limits.
pub fn print(rows: &[Row], knees: &[KneeRow]) -> bool {
    let models: BTreeMap<&str, char> = rows
        .iter()
        .map(|row| row.model)
        .chain(knees.iter().map(|row| row.model))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .zip('a'..)
        .collect();
    eprint!("{:90}\r", "");
    println!(
        "{:43}{:35} {:>19}{:>8}{:>20}{:>8}",
        "storage, and its model", "workload", "IOPS, simulated", "off", "mean, simulated", "off"
    );
    let mut all_within = true;
    let mut worst = [0.0_f64; 3];
    for row in rows {
        let (rate, mean) =
            (off(row.simulated.iops, row.measured.iops), off(row.simulated.mean_ns, row.measured.mean_ns));
        let within = rate.abs() <= RATE_OFF_MAX && mean.abs() <= MEAN_OFF_MAX;
        all_within &= within;
        (worst[0], worst[1]) = (worst[0].max(rate.abs()), worst[1].max(mean.abs()));
        println!(
            "{:41} {} {:35}{:>9.0} {:>10.0}{:>7.1}%{:>9} {:>10}{:>7.1}%  {}{}",
            row.tested,
            models[row.model],
            row.workload,
            row.measured.iops,
            row.simulated.iops,
            rate * 100.0,
            format_ns(row.measured.mean_ns),
            format_ns(row.simulated.mean_ns),
            mean * 100.0,
            verdict(within),
            repeated(row),
        );
    }
    println!("{:78} {:>19}{:>8}", "\nknee, outstanding", "measured, simulated", "off");
    for row in knees {
        let knee = off(row.simulated.outstanding, row.measured.outstanding);
        let within = knee.abs() <= KNEE_OFF_MAX;
        all_within &= within;
        worst[2] = worst[2].max(knee.abs());
        println!(
            "{:41} {} {:35}{:>9.2} {:>10.2}{:>7.1}%  {}",
            row.tested,
            models[row.model],
            row.workload,
            row.measured.outstanding,
            row.simulated.outstanding,
            knee * 100.0,
            verdict(within),
        );
    }
    println!();
    for (model, letter) in models {
        println!("model {letter}: {model}");
    }
    let [rate, mean, knee] = worst.map(|share| share * 100.0);
    println!(
        "furthest off: throughput {rate:.1} % of {:.0}, mean latency {mean:.1} % of {:.0}, knee {knee:.1} % of {:.0}",
        RATE_OFF_MAX * 100.0,
        MEAN_OFF_MAX * 100.0,
        KNEE_OFF_MAX * 100.0,
    );
    all_within
}

fn verdict(within: bool) -> &'static str {
    if within { "within" } else { "OUTSIDE" }
}

/// Remark on a row that was measured more often than others.
fn repeated(row: &Row) -> String {
    match (row.rounds, row.is_steady) {
        (2, true) => String::new(),
        (rounds, true) => format!(", measured {rounds} times: the first did not agree"),
        (rounds, false) => format!(", {rounds} measurements do not agree"),
    }
}
