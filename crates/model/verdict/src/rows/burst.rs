//! Easy on average, at the operating limit in some moments.

use crate::Evidence;
use crate::case::Case;
use crate::evidence::{COUNTED_BY_CAP, DEVICE, Grounds, SEEN};
use crate::rows::saturated_or_degraded::give_way;
use crate::thresholds::{BURST_SHARE_MAX, UTILISATION_FULL, UTILISATION_NEAR};
use workload::Unit;

pub(crate) fn burst(case: &Case) -> Option<Grounds> {
    let (of, mean_fact, source, moments_source) = match (case.figures.utilisation, &case.cap_in_use) {
        (Some(used), _) => {
            ("the storage".to_owned(), case.utilisation_fact(used.value), case.model_source(), DEVICE)
        }
        (None, Some(used)) => {
            let cap = &used.cap;
            let fact = case.observed("utilisation", used.share(), Unit::Share, COUNTED_BY_CAP);
            (format!("a cap of {cap} ({})", cap.origin), fact, COUNTED_BY_CAP, COUNTED_BY_CAP)
        }
        (None, None) => {
            let used = case.seen_room()?.utilisation()?;
            let fact = case.observed("utilisation of what was seen full", used.value, Unit::Share, SEEN);
            ("what this storage was seen to give when it was full".into(), fact, SEEN, DEVICE)
        }
    };
    let mean = mean_fact.value;
    let moments = &case.utilisations;
    let over: Vec<&(u64, f64)> = moments.iter().filter(|(_, used)| *used >= UTILISATION_FULL).collect();
    let share = over.len() as f64 / moments.len().max(1) as f64;
    if over.is_empty() || mean >= UTILISATION_NEAR || share > BURST_SHARE_MAX {
        return None;
    }
    let (at, highest) = over.iter().copied().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut evidence = vec![
        Evidence { at, ..case.observed("highest utilisation of a moment", highest, Unit::Share, source) },
        case.observed("moments at the operating limit", share, Unit::Share, moments_source),
        mean_fact,
    ];
    evidence.extend(case.latency());
    evidence.extend(case.neighbours());
    let summary = format!(
        "{:.0} % of {of} is used on average, but {} of {} moments were at its operating limit (up to {:.0} %)",
        mean * 100.0,
        over.len(),
        moments.len(),
        highest * 100.0
    );
    // Other programs' I/O uses up no cap on the database's own group.
    let neighbour = case.figures.utilisation.and_then(|used| case.busy_neighbour(used.binding));
    if let Some(other) = neighbour {
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
