//! Easy on average, at the operating limit in some moments.

use crate::case::Case;
use crate::evidence::{COUNTED_BY_CAP, DEVICE, Grounds};
use crate::rows::saturated_or_degraded::give_way;
use crate::thresholds::{BURST_SHARE_MAX, UTILISATION_FULL, UTILISATION_NEAR};
use crate::{CapUse, Evidence};
use capability::Binding;
use workload::Unit;

/// How much is in use, on average and in each moment.
struct InUse {
    /// "the storage".
    of: String,
    binding: Binding,
    mean: Evidence,
    /// Each with when it ended.
    moments: Vec<(u64, f64)>,
}

impl InUse {
    fn of_storage(case: &Case) -> Option<InUse> {
        let used = case.figures.utilisation?;
        Some(InUse {
            of: "the storage".into(),
            binding: used.binding,
            mean: case.utilisation_fact(used.value),
            moments: case.utilisations.clone(),
        })
    }

    /// Of a storage that was never measured, a cap is known: of several the one that is reached most often.
    fn of_cap(case: &Case) -> Option<InUse> {
        let shares = |used: &CapUse| -> Vec<(u64, f64)> {
            let of_moment = |moment: &crate::Moment| {
                let same = moment.caps.iter().find(|one| one.cap == used.cap)?;
                Some((moment.ended_unix_ns, same.share()))
            };
            case.observation.moments.iter().filter_map(of_moment).collect()
        };
        let all = case.figures.caps.iter().map(|used| (used, shares(used)));
        let (used, moments) = all.max_by_key(|(_, moments)| full(moments).count())?;
        Some(InUse {
            of: format!("a cap of {} ({})", used.cap, used.cap.origin),
            binding: used.binding(),
            mean: case.observed("utilisation", used.share(), Unit::Share, COUNTED_BY_CAP),
            moments,
        })
    }
}

fn full(moments: &[(u64, f64)]) -> impl Iterator<Item = &(u64, f64)> {
    moments.iter().filter(|(_, used)| *used >= UTILISATION_FULL)
}

pub(crate) fn burst(case: &Case) -> Option<Grounds> {
    let is_measured = case.capability.is_some();
    let InUse { of, binding, mean: mean_fact, moments } =
        if is_measured { InUse::of_storage(case)? } else { InUse::of_cap(case)? };
    let mean = mean_fact.value;
    let over: Vec<&(u64, f64)> = full(&moments).collect();
    let share = over.len() as f64 / moments.len().max(1) as f64;
    if over.is_empty() || mean >= UTILISATION_NEAR || share > BURST_SHARE_MAX {
        return None;
    }
    let (at, highest) = over.iter().copied().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let source = if is_measured { case.model_source() } else { COUNTED_BY_CAP };
    let mut evidence = vec![
        Evidence { at, ..case.observed("highest utilisation of a moment", highest, Unit::Share, source) },
        case.observed("moments at the operating limit", share, Unit::Share, DEVICE),
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
    if let Some(other) = case.busy_neighbour(binding) {
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
