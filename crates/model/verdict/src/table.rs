use crate::case::Case;
use crate::evidence::{CAPABILITY, DATABASE, DEVICE, MODEL, cap_unit, fact};
use crate::figures::IOS_TO_COMPARE;
use crate::thresholds::{
    BURST_SHARE_MAX, COVERAGE_MIN, IOS_FROM_MEMORY_MIN, LATE_SPANS, OUTSTANDING_IDLE, RATIO_AGREES,
    RATIO_DEGRADED, SERIAL_COMMITS_MIN, SERIAL_MOMENT, SERIAL_OUTSTANDING, SERIAL_SHARE_MIN,
    UNTIMED_SHARE_MAX, UTILISATION_AT_KNEE, UTILISATION_LOW, UTILISATION_NEAR,
};
use crate::{Evidence, Figures, Moment, Observation, Verdict, VerdictKind};
use capability::{Capability, OTHER_STORAGE_RATIO};
use filestats::{IoClass, ServiceLevel};
use statistics::IOS_MIN;
use workload::format_ns;

/// What a row of the table finds: the sentence, the numbers and the advice.
struct Grounds {
    summary: String,
    evidence: Vec<Evidence>,
    next_step: String,
}

type Rule = fn(&Case) -> Option<Grounds>;

/// The decision table, read from the top: the first row whose condition holds is the verdict.
///
/// | verdict | condition |
/// |---|---|
/// | cannot say | no capability or one that no longer holds, under 100 I/Os, over half unknown, no timing |
/// | throttled | a cap set since the measurement is reached, latency above the curve |
/// | nobody waits | the device is over the service level, the database keeps it and waits under 10 % |
/// | demand exceeds capability | U at the knee (0.9), or N beyond it and U over 0.7; latency no stranger |
/// | storage degraded | latency 3 x what the curve expects at that N and size, U below the knee |
/// | not storage | the database's latency 3 x the curve's, the device's own agrees with it |
/// | burst | U low on average, at the knee in some seconds |
/// | serialized | N about 1 second for second, U low: the time goes into waiting one I/O at a time |
/// | healthy | none of these |
const TABLE: [(VerdictKind, Rule); 9] = [
    (VerdictKind::CannotSay, cannot_say),
    (VerdictKind::Throttled, throttled),
    (VerdictKind::NobodyWaits, nobody_waits),
    (VerdictKind::DemandExceedsCapability, demand_exceeds_capability),
    (VerdictKind::StorageDegraded, storage_degraded),
    (VerdictKind::NotStorage, not_storage),
    (VerdictKind::Burst, burst),
    (VerdictKind::Serialized, serialized),
    (VerdictKind::Healthy, healthy),
];

/// Judges what was observed by what the storage can give.
pub fn judge(
    observation: &Observation,
    capability: Option<&Capability>,
    service_level: &ServiceLevel,
) -> Verdict {
    let figures_of = |moments: &[Moment]| Figures::from_moments(moments, capability);
    let one = |moment: &Moment| figures_of(std::slice::from_ref(moment));
    let course = observation.moments.iter().filter_map(|moment| {
        let utilisation = one(moment).utilisation?;
        Some((moment.ended_unix_ns, utilisation.value))
    });
    let case = Case {
        observation,
        capability,
        service_level,
        figures: figures_of(&observation.moments),
        course: course.collect(),
        outstanding: stretches(observation).map(|moments| figures_of(moments).outstanding).collect(),
    };
    let found = TABLE.iter().find_map(|(kind, rule)| Some((*kind, rule(&case)?)));
    let (kind, grounds) = found.expect("the last row of the table always holds");
    let (confidence, doubts) = case.confidence(kind);
    let utilisation = case.figures.utilisation;
    Verdict {
        verdict: kind,
        summary: grounds.summary,
        confidence,
        doubts,
        utilisation: utilisation.map(|u| u.value),
        headroom: utilisation.filter(|u| u.value > 0.0).map(|u| 1.0 / u.value),
        binding: utilisation.map(|u| u.binding),
        evidence: grounds.evidence,
        next_step: grounds.next_step,
        place: case.figures.reads_place,
    }
}

fn cannot_say(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let grounds = |summary: String, next_step: &str| {
        Some(Grounds { summary, evidence: case.volume(), next_step: next_step.into() })
    };
    let Some(database) = &figures.database else {
        let reason = case.observation.gaps().last();
        let why = reason.map_or("no file was seen twice".to_owned(), |reason| reason.to_string());
        return grounds(
            format!("no interval of the database's files is known: {why}"),
            "observe again, longer, while the database is in use",
        );
    };
    if figures.coverage < COVERAGE_MIN {
        let reason = case.observation.gaps().last().map(|reason| format!(" ({reason})")).unwrap_or_default();
        return grounds(
            format!("only {:.0} % of the observed time has known figures{reason}", figures.coverage * 100.0),
            "observe again without restarts and pauses",
        );
    }
    let from_memory = database.counters.read.count.saturating_sub(figures.storage_reads.count);
    let at_storage = database.counters.operations().saturating_sub(from_memory);
    if at_storage < IOS_MIN && from_memory < IOS_FROM_MEMORY_MIN {
        let beside = match from_memory {
            0 => String::new(),
            reads => format!(" beside {reads} reads from memory"),
        };
        return grounds(
            format!(
                "only {at_storage} I/Os{beside} in {:.0} s: a verdict needs at least {IOS_MIN}",
                figures.elapsed_s
            ),
            "observe while the database is busy, or longer with --duration",
        );
    }
    let untimed = figures.untimed;
    if untimed.count as f64 > UNTIMED_SHARE_MAX * untimed.of as f64 {
        let share = untimed.count as f64 / untimed.of as f64 * 100.0;
        return grounds(
            format!("the database does not time {share:.0} % of its I/Os, so that latency is unknown"),
            &timing_advice(&case.observation.notes),
        );
    }
    if case.capability.is_none() {
        return grounds(
            "this storage was never measured: nothing to compare the demand with".into(),
            "run `headroom measure` on the database's directory at a quiet time, then check again",
        );
    }
    if let Some(used) = figures.utilisation.map(|u| u.value).filter(|used| *used > OTHER_STORAGE_RATIO) {
        return grounds(
            format!("the storage gives {used:.1} x what it gave when it was measured: that no longer holds"),
            "run `headroom measure` again at a quiet time, then check again",
        );
    }
    None
}

/// What the source itself says of its timing, which has the statement that switches it on.
fn timing_advice(notes: &[String]) -> String {
    match notes {
        [] => "switch I/O timing on in the database and observe again".into(),
        notes => format!("switch I/O timing on in the database and observe again: {}", notes.join("; ")),
    }
}

/// Moments one by one, or of a source that tells late as many together as make its lateness small.
fn stretches(observation: &Observation) -> impl Iterator<Item = &[Moment]> {
    let elapsed_ns = |moment: &Moment| moment.database().map_or(0, |delta| delta.elapsed_ns);
    let least_ns = observation.told_late_ns.saturating_mul(LATE_SPANS);
    let mut rest = &observation.moments[..];
    std::iter::from_fn(move || {
        let mut sum_ns = 0_u64;
        let enough = rest.iter().position(|moment| {
            sum_ns = sum_ns.saturating_add(elapsed_ns(moment));
            sum_ns >= least_ns
        });
        // What is left at the end is too short to be looked at alone.
        let (stretch, after) = rest.split_at(enough? + 1);
        rest = after;
        Some(stretch)
    })
}

fn throttled(case: &Case) -> Option<Grounds> {
    let (cap, rate) = case.cap_reached()?;
    let wait = case.noticed_wait().filter(|wait| wait.ratio >= RATIO_AGREES)?;
    let mut evidence = vec![
        fact("cap in force", cap.per_second as f64, cap_unit(cap), &cap.origin, case.ended()),
        fact("rate at the device", rate, cap_unit(cap), DEVICE, case.ended()),
    ];
    evidence.extend(case.latency());
    evidence.extend(case.volume());
    Some(Grounds {
        summary: format!(
            "a cap of {cap} ({}) holds the storage back: {} take {:.1} x what they took without",
            cap.origin, wait.what, wait.times
        ),
        evidence,
        next_step: format!(
            "raise or lift the cap on device {} ({}), or bring the demand below it",
            cap.device, cap.origin
        ),
    })
}

fn nobody_waits(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let device = figures.device.as_ref()?;
    let over = [
        ("device read latency", IoClass::Read, device.counters.read),
        ("device write latency", IoClass::Write, device.counters.write),
    ]
    .into_iter()
    .filter(|(_, _, ops)| ops.count >= IOS_TO_COMPARE)
    .filter_map(|(what, class, ops)| Some((what, class, ops.latency_ns().known()?)))
    .find(|(_, class, latency_ns)| !case.service_level.kept(*class, *latency_ns));
    let (what, _, latency_ns) = over?;
    let reads_kept = figures.read_ns().is_none_or(|ns| case.service_level.kept(IoClass::Read, ns));
    let commits_kept = figures.commit_ns().is_none_or(|ns| case.service_level.kept(IoClass::LogWrite, ns));
    if figures.outstanding >= OUTSTANDING_IDLE || !reads_kept || !commits_kept {
        return None;
    }
    let mut evidence = vec![
        fact(what, latency_ns, "ns", DEVICE, case.ended()),
        fact("sessions waiting on average", figures.outstanding, "I/Os", DATABASE, case.ended()),
    ];
    evidence.extend(case.volume());
    Some(Grounds {
        summary: format!(
            "the device answers in {}, but the database hardly waits for it and keeps its service level",
            format_ns(latency_ns)
        ),
        evidence,
        next_step: "nothing to do: the slow I/O is background work that no session waits for".into(),
    })
}

fn demand_exceeds_capability(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let utilisation = figures.utilisation?;
    let beyond_knee = figures.reads_place.as_ref().is_some_and(|place| {
        let knee =
            case.capability.and_then(|it| it.curve(&place.curve)).and_then(|curve| curve.knee.as_ref());
        knee.is_some_and(|knee| place.outstanding >= knee.low.max(1.0))
    });
    let over =
        utilisation.value >= UTILISATION_AT_KNEE || (beyond_knee && utilisation.value >= UTILISATION_NEAR);
    if !over || case.noticed_wait().is_some_and(|wait| wait.ratio >= RATIO_DEGRADED) {
        return None;
    }
    let mut evidence = vec![case.utilisation_fact(utilisation.value)];
    evidence.extend(case.knee());
    evidence.extend(case.latency());
    evidence.extend(case.volume());
    let same_cap = case.observation.caps.iter().find(|cap| case.capped_when_measured(cap));
    let limit = same_cap.map_or(String::new(), |cap| {
        format!(" (the limit is a cap that was there when it was measured: {cap})")
    });
    Some(Grounds {
        summary: format!(
            "the workload asks {:.0} % of what this storage gives, bound by {}{limit}",
            utilisation.value * 100.0,
            utilisation.binding
        ),
        evidence,
        next_step: format!(
            "ask for less (more memory for caching, missing indexes, less data read) or give more {}: \
             faster or striped storage; tuning latency alone will not help",
            utilisation.binding
        ),
    })
}

fn storage_degraded(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let wait = case.noticed_wait().filter(|wait| wait.ratio >= RATIO_DEGRADED)?;
    if wait.device_ratio.is_some_and(|ratio| ratio < RATIO_DEGRADED) {
        // The layer below is as fast as ever: the time is added above it.
        return None;
    }
    let mut evidence = case.latency();
    evidence.extend(wait.device_fact(case));
    evidence.extend(case.knee());
    evidence.extend(figures.utilisation.map(|u| case.utilisation_fact(u.value)));
    evidence.extend(case.volume());
    Some(Grounds {
        summary: format!(
            "{} take {:.1} x what this storage gave at the same load when it was measured",
            wait.what, wait.times
        ),
        evidence,
        next_step:
            "look below the database: a failing or rebuilding disk, a busy neighbour, a changed volume \
                    or path; measure again at a quiet time to confirm"
                .into(),
    })
}

fn not_storage(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let wait = case.noticed_wait().filter(|wait| wait.ratio >= RATIO_DEGRADED)?;
    let mut evidence = case.latency();
    evidence.extend(wait.device_fact(case));
    evidence.extend(figures.utilisation.map(|u| case.utilisation_fact(u.value)));
    evidence.extend(case.volume());
    Some(Grounds {
        summary: format!(
            "{} take {:.1} x as long as the curve expects, but the device itself answers as measured",
            wait.what, wait.times
        ),
        evidence,
        next_step:
            "look between the database and the device: CPU shortage, a throttle on bytes or I/Os, the \
                    file system's journal, encryption or backup filters, the network of a remote volume"
                .into(),
    })
}

fn burst(case: &Case) -> Option<Grounds> {
    let mean = case.figures.utilisation?.value;
    let over: Vec<&(u64, f64)> = case.course.iter().filter(|(_, u)| *u >= UTILISATION_AT_KNEE).collect();
    let share = over.len() as f64 / case.course.len().max(1) as f64;
    if over.is_empty() || mean >= UTILISATION_NEAR || share > BURST_SHARE_MAX {
        return None;
    }
    let (at, highest) = over.iter().copied().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut evidence = vec![
        fact("highest utilisation of a moment", highest, "share", MODEL, at),
        fact("moments over the knee", share, "share", DEVICE, case.ended()),
        case.utilisation_fact(mean),
    ];
    evidence.extend(case.latency());
    evidence.extend(case.volume());
    Some(Grounds {
        summary: format!(
            "{:.0} % of the storage is used on average, but {} of {} moments were over the knee (up to {:.0} %)",
            mean * 100.0,
            over.len(),
            case.course.len(),
            highest * 100.0
        ),
        evidence,
        next_step:
            "find what runs at those moments (checkpoint, index rebuild, backup) and spread it out, pace \
                    it, or move it to a quiet hour"
                .into(),
    })
}

fn serialized(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let low = figures.utilisation.is_none_or(|u| u.value < UTILISATION_LOW);
    // Many sessions that wait now and then may have a mean of 1 as well, but not second for second.
    let alike = case.outstanding.iter().filter(|n| SERIAL_MOMENT.contains(n)).count();
    let share = alike as f64 / case.outstanding.len().max(1) as f64;
    let by_commits = figures.commit_share() > figures.outstanding / 2.0;
    let least = if by_commits { SERIAL_COMMITS_MIN } else { SERIAL_OUTSTANDING.start };
    let one = least..SERIAL_OUTSTANDING.end;
    if !low || !one.contains(&figures.outstanding) || share < SERIAL_SHARE_MIN {
        return None;
    }
    let mut evidence =
        vec![fact("I/Os outstanding on average", figures.outstanding, "I/Os", DATABASE, case.ended())];
    evidence.extend(figures.utilisation.map(|u| case.utilisation_fact(u.value)));
    evidence.extend(case.knee());
    let one_at_a_time = "the storage is nearly idle, yet the database always waits for one I/O";
    let (summary, next_step) = if by_commits {
        let commit_ns = figures.commit_ns()?;
        let per_second = figures.commits.count as f64 / figures.elapsed_s;
        let (many, one) = if figures.commits_through { ("log writes", "write") } else { ("syncs", "sync") };
        evidence.push(fact(many, per_second, "1/s", DATABASE, case.ended()));
        evidence.push(fact("time waited for each", commit_ns, "ns", case.commits_source(), case.ended()));
        let advice = match case.batching() {
            Some((batch, gain, log_ns)) => {
                let measured = case.measured();
                evidence.push(fact("commit of 60 KiB, measured", log_ns, "ns", CAPABILITY, measured));
                evidence.push(fact("gain by batching, estimated", gain, "times", CAPABILITY, measured));
                format!(
                    "batch: {batch} commits in one transaction fit into one commit of 60 KiB, which takes {} \
                     here: about {gain:.0} x the rows in the same time",
                    format_ns(log_ns)
                )
            }
            None => format!("batch several changes into one transaction: one {one} then serves them all"),
        };
        let summary = format!(
            "{one_at_a_time}: {per_second:.0} {many} a second, {} waited for each",
            format_ns(commit_ns)
        );
        (summary, advice)
    } else {
        let wide = case.widest().map_or(String::new(), |(n, times)| {
            format!(": with {n} in flight this storage gives {times:.0} x the I/Os")
        });
        let advice = format!("ask for several pages at once (prefetch, read-ahead, more sessions){wide}");
        (format!("{one_at_a_time}, a read at a time"), advice)
    };
    evidence.extend(case.latency());
    evidence.extend(case.volume());
    Some(Grounds { summary, evidence, next_step })
}

fn healthy(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let used = figures.utilisation.map(|u| u.value);
    let mut evidence: Vec<Evidence> = used.map(|value| case.utilisation_fact(value)).into_iter().collect();
    evidence.extend(case.latency());
    evidence.extend(case.knee());
    evidence.extend(case.volume());
    let summary = match used {
        Some(used) => format!(
            "latency agrees with what this storage gives, and {:.0} % of it is asked for",
            used * 100.0
        ),
        None => "the storage is hardly asked for anything: the reads are served from memory".into(),
    };
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
        (None, Some(used)) if used >= UTILISATION_NEAR => format!(
            "plan ahead: {:.1} x today's demand is the limit, and bursts reach it earlier",
            1.0 / used
        ),
        (None, Some(used)) if used > 0.001 => {
            format!("nothing to do: the storage could carry {:.0} x this demand", (1.0 / used).max(1.0))
        }
        _ => "nothing to do".into(),
    };
    Some(Grounds { summary, evidence, next_step })
}
