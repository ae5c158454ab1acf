//! Easy on average, at the operating limit in some moments.

use crate::Evidence;
use crate::case::Case;
use crate::evidence::{DEVICE, Grounds};
use crate::rows::saturated_or_degraded::give_way;
use crate::thresholds::{BURST_SHARE_MAX, UTILISATION_FULL, UTILISATION_NEAR};
use workload::Unit;

pub(crate) fn burst(case: &Case) -> Option<Grounds> {
    let utilisation = case.figures.utilisation?;
    let mean = utilisation.value;
    let over: Vec<&(u64, f64)> = case.utilisations.iter().filter(|(_, u)| *u >= UTILISATION_FULL).collect();
    let share = over.len() as f64 / case.utilisations.len().max(1) as f64;
    if over.is_empty() || mean >= UTILISATION_NEAR || share > BURST_SHARE_MAX {
        return None;
    }
    let (at, highest) = over.iter().copied().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut evidence = vec![
        Evidence {
            at,
            ..case.observed("highest utilisation of a moment", highest, Unit::Share, case.model_source())
        },
        case.observed("moments at the operating limit", share, Unit::Share, DEVICE),
        case.utilisation_fact(mean),
    ];
    evidence.extend(case.latency());
    evidence.extend(case.neighbours());
    let summary = format!(
        "{:.0} % of the storage is used on average, but {} of {} moments were at its operating limit (up to {:.0} %)",
        mean * 100.0,
        over.len(),
        case.utilisations.len(),
        highest * 100.0
    );
    if let Some(other) = case.busy_neighbour(utilisation.binding) {
        let summary = format!("{summary}; {}", other.sentence());
        return Some(Grounds { summary, evidence, next_step: give_way(other) });
    }
    Some(Grounds {
        summary,
        evidence,
        next_step:
            "find what runs at those moments (checkpoint, index rebuild, backup) and spread it out, pace \
                    it, or move it to a quiet hour"
                .into(),
    })
}
