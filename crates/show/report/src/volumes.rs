//! The volumes of a database: the one that binds, and the others by falling time waited.

use crate::{Check, Tone, number, wording};
use verdict::{Verdict, VerdictKind};

/// One volume, as every format lists it.
pub(crate) struct VolumeRow<'a> {
    pub(crate) check: &'a Check,
    /// The verdict on it alone.
    pub(crate) verdict: &'a Verdict,
    /// Its part of the time that sessions wait for all volumes, 0 to 1; `None` where none waits.
    pub(crate) share_waited: Option<f64>,
}

/// All volumes of the database, the one that binds first.
pub(crate) fn volumes(check: &Check) -> Vec<VolumeRow<'_>> {
    let each: Vec<(&Check, f64)> = check.volumes().map(|volume| (volume, volume.outstanding())).collect();
    let all: f64 = each.iter().map(|(_, outstanding)| outstanding).sum();
    let rows = each.into_iter().map(|(check, outstanding)| VolumeRow {
        check,
        verdict: check.own_verdict(),
        share_waited: (all > 0.0 && all.is_finite()).then(|| outstanding / all),
    });
    let mut rows: Vec<VolumeRow> = rows.collect();
    let waited = |row: &VolumeRow| row.share_waited.unwrap_or(0.0);
    rows[1..].sort_by(|a, b| waited(b).total_cmp(&waited(a)));
    rows
}

impl VolumeRow<'_> {
    /// Uses of the files on it: "data, temp".
    pub(crate) fn roles(&self) -> String {
        self.check.roles()
    }

    pub(crate) fn verdict_text(&self) -> String {
        match self.is_unmeasured() {
            true => "never measured".into(),
            false => self.verdict.verdict.to_string(),
        }
    }

    /// Whether a measurement is what the verdict lacks.
    pub(crate) fn is_unmeasured(&self) -> bool {
        self.verdict.verdict == VerdictKind::CannotSay && self.check.capability.is_none()
    }

    pub(crate) fn tone(&self) -> Tone {
        Tone::from_verdict(self.verdict.verdict)
    }

    pub(crate) fn utilisation(&self) -> String {
        shown(self.verdict.utilisation, number::share)
    }

    pub(crate) fn headroom(&self) -> String {
        shown(self.verdict.headroom, |times| wording::headroom(Some(self.verdict.verdict), times))
    }

    pub(crate) fn waited(&self) -> String {
        shown(self.share_waited, number::share)
    }
}

fn shown(figure: Option<f64>, write: impl Fn(f64) -> String) -> String {
    figure.filter(|figure| figure.is_finite()).map_or(number::NONE.into(), write)
}
