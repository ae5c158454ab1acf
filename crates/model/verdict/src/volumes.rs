//! A database's volumes as one answer. Each is judged alone; this chooses, and reports the rest.
//!
//! ```text
//! problems on some volumes                  the one of these that sessions wait for most is the answer
//! else cannot-say with most of the waiting  that one: what is known is not what matters
//! else                                      the one with the smallest headroom
//! only cannot-say                           the one that sessions wait for most
//!
//! headroom   the smallest of all volumes', its low and high end likewise: the work needs each of them
//! doubts     what is not known of a volume with a notable part of the waiting
//! ```

use crate::thresholds::{MOST_OF_THE_WAITING, VOLUME_SHARE_MIN};
use crate::{Confidence, Verdict, VerdictKind};

/// A volume and the verdict on it alone.
#[derive(Clone, Debug)]
pub struct JudgedVolume<'a> {
    /// Name for people: its mount point or a directory on it, and the contents.
    pub name: String,
    /// The verdict on it.
    pub verdict: &'a Verdict,
    /// Number of sessions that wait for it on average: its mean outstanding I/Os.
    pub outstanding: f64,
}

/// The answer for a database on several volumes.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The volume that binds, an index into the volumes.
    pub volume: usize,
    /// The volume whose headroom it is; `None` where no headroom is known.
    pub headroom_of: Option<usize>,
    /// The verdict on the volume that binds, which names it, with the headroom of all.
    pub verdict: Verdict,
}

impl Answer {
    /// Chooses the volume that binds; `None` without volumes. One volume's verdict is the answer, unchanged.
    pub fn from_volumes(volumes: &[JudgedVolume]) -> Option<Answer> {
        let volume = binding(volumes)?;
        let mut verdict = volumes[volume].verdict.clone();
        let known = verdict.verdict != VerdictKind::CannotSay;
        let headroom_of = smallest_headroom(volumes).filter(|_| known);
        if volumes.len() > 1 {
            verdict.summary = format!("on {}: {}", volumes[volume].name, verdict.summary);
            let smallest = |figure: fn(&Verdict) -> Option<f64>| {
                let all = volumes.iter().filter_map(|volume| figure(volume.verdict));
                all.min_by(f64::total_cmp).filter(|_| known)
            };
            verdict.headroom = smallest(|verdict| verdict.headroom);
            verdict.headroom_low = smallest(|verdict| verdict.headroom_low);
            verdict.headroom_high = smallest(|verdict| verdict.headroom_high);
            verdict.headroom_reason = headroom_of.and_then(|at| volumes[at].verdict.headroom_reason.clone());
            for doubt in doubts(volumes, volume).into_iter().filter(|_| known) {
                verdict.doubts.push(doubt);
                verdict.confidence = one_step_off(verdict.confidence);
            }
        }
        Some(Answer { volume, headroom_of, verdict })
    }
}

fn binding(volumes: &[JudgedVolume]) -> Option<usize> {
    let all = || volumes.iter().enumerate();
    // Of equals the first, which is the volume of the data.
    let most_waited_for = |chosen: fn(VerdictKind) -> bool| {
        let chosen = all().filter(|(_, volume)| chosen(volume.verdict.verdict)).rev();
        chosen.max_by(|(_, a), (_, b)| a.outstanding.total_cmp(&b.outstanding)).map(|(at, _)| at)
    };
    if let Some(at) = most_waited_for(VerdictKind::needs_action) {
        return Some(at);
    }
    let unknown = most_waited_for(|kind| kind == VerdictKind::CannotSay);
    let outweighs = |at: &usize| share(volumes, *at) > MOST_OF_THE_WAITING;
    let known = || most_waited_for(|kind| kind != VerdictKind::CannotSay);
    unknown.filter(outweighs).or_else(|| smallest_headroom(volumes)).or_else(known).or(unknown)
}

fn smallest_headroom(volumes: &[JudgedVolume]) -> Option<usize> {
    let known = volumes.iter().enumerate().filter_map(|(at, volume)| Some((at, volume.verdict.headroom?)));
    known.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(at, _)| at)
}

/// A volume's part of the time that sessions wait, 0 to 1; 0 where none waits.
fn share(volumes: &[JudgedVolume], at: usize) -> f64 {
    let all: f64 = volumes.iter().map(|volume| volume.outstanding).sum();
    if all > 0.0 { volumes[at].outstanding / all } else { 0.0 }
}

fn doubts(volumes: &[JudgedVolume], answer: usize) -> Vec<String> {
    let others = volumes.iter().enumerate().filter(|(at, volume)| {
        *at != answer
            && volume.verdict.verdict == VerdictKind::CannotSay
            && share(volumes, *at) >= VOLUME_SHARE_MIN
    });
    let doubt = |(at, volume): (usize, &JudgedVolume)| {
        let percent = share(volumes, at) * 100.0;
        format!("on {}, {percent:.0} % of the time waited: {}", volume.name, volume.verdict.summary)
    };
    others.map(doubt).collect()
}

fn one_step_off(confidence: Confidence) -> Confidence {
    match confidence {
        Confidence::High => Confidence::Medium,
        Confidence::Medium | Confidence::Low => Confidence::Low,
    }
}
