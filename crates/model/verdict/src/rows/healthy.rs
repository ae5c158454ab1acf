//! None of the other rows.

use crate::Evidence;
use crate::case::Case;
use crate::evidence::Grounds;
use crate::thresholds::{RATIO_DEGRADED, UTILISATION_NEAR};
use filestats::IoClass;
use workload::format_ns;

pub(crate) fn healthy(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let used = figures.utilisation.map(|u| u.value);
    let mut evidence: Vec<Evidence> = used.map(|value| case.utilisation_fact(value)).into_iter().collect();
    evidence.extend(case.latency());
    evidence.extend(case.highest_rate());
    let summary = match used {
        Some(used) => {
            // A doubt names the latency that does not agree.
            let slow = case.longest_wait().filter(|wait| wait.ratio >= RATIO_DEGRADED);
            let why = match slow {
                Some(wait) if wait.is_waking_up() => "latency is within 0.1 ms of what this storage gives",
                Some(_) => "hardly any session waits for this storage",
                None => "latency agrees with what this storage gives",
            };
            format!("{why}, and {:.0} % of it is in use", used * 100.0)
        }
        None => "the storage is hardly used: the reads are served from memory".into(),
    };
    let times = case.headroom().map_or(1.0, |headroom| headroom.plan);
    let broken = [(IoClass::Read, figures.read_ns()), (IoClass::LogWrite, figures.commit_ns())]
        .into_iter()
        .find_map(|(class, ns)| ns.filter(|ns| !case.service_level.kept(class, *ns)).map(|ns| (class, ns)));
    let next_step = match (broken, used) {
        (Some((class, ns)), _) => format!(
            "the service level is not kept ({} take {}), and that is what this storage gives: it needs storage \
             of a faster class, not tuning",
            if class == IoClass::LogWrite { "commits" } else { "reads" },
            format_ns(ns)
        ),
        (None, Some(used)) if used >= UTILISATION_NEAR => {
            format!("plan ahead: {times:.1} x today's demand is the limit, and bursts reach it earlier")
        }
        (None, Some(used)) if used > 0.001 => {
            format!("no action needed: the storage can carry {:.0} times this demand", times.max(1.0))
        }
        _ => "no action needed".into(),
    };
    Some(Grounds { summary, evidence, next_step })
}
