use crate::evidence::{Evidence, More};
use crate::figure::{FigureUnit, Measure};
use serde::{Deserialize, Serialize};
use workload::RunResult;

/// One side of a comparison: a run, or repeats of it.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Name for the reader: "run 12", "3 March".
    pub name: &'a str,
    /// At least one.
    pub runs: &'a [RunResult],
}

/// How sure an answer must be, and what does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparisonRules"))]
pub struct Rules {
    /// Differences of rates, means and medians within this share do not matter; of p90 and above, five times it.
    pub margin: f64,
    /// How often the same growing data are analysed, this time included: each analysis may be wrong only with
    /// its part of the 5 %.
    pub looks: u32,
    /// Number of comparisons made side by side.
    pub comparisons: u32,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { margin: 0.02, looks: 1, comparisons: 1 }
    }
}

/// All verdicts of a family together are wrong by chance at most this often where nothing differs.
pub(crate) const ERROR_MAX: f64 = 0.05;

impl Rules {
    /// Confidence of one interval, so that the intervals of all interim analyses hold together in 95 % of cases.
    pub(crate) fn confidence(&self) -> f64 {
        1.0 - ERROR_MAX / f64::from(self.looks.max(1))
    }

    fn error_max(&self) -> f64 {
        ERROR_MAX / f64::from(self.looks.max(1)) / f64::from(self.comparisons.max(1))
    }
}

/// B compared with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparisonVerdict"))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better beyond noise: more I/Os, shorter latency.
    Faster,
    /// Worse beyond noise.
    Slower,
    /// Whatever difference there is lies within the margin.
    NoDifference,
    /// Faster in one headline figure, slower in another.
    Mixed,
    /// The data do not decide.
    CannotTell,
}

impl Verdict {
    /// The verdict on several workloads together.
    pub fn overall(comparisons: &[Comparison]) -> Verdict {
        let any = |verdict| comparisons.iter().any(|compared| compared.verdict == verdict);
        let (slower, faster) = (any(Verdict::Slower), any(Verdict::Faster));
        match () {
            () if any(Verdict::Mixed) || (slower && faster) => Verdict::Mixed,
            () if slower => Verdict::Slower,
            () if any(Verdict::CannotTell) => Verdict::CannotTell,
            () if faster => Verdict::Faster,
            () => Verdict::NoDifference,
        }
    }
}

/// A difference in percent of A, and the 95 % interval that the verdict follows from: corrected for the number of figures
/// (Holm) unless the verdict is that there is no difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// 100 x (B / A - 1).
    pub percent: f64,
    /// Lower end; `None` where it has no bound.
    pub percent_low: Option<f64>,
    /// Upper end; `None` where it has no bound.
    pub percent_high: Option<f64>,
    /// Probability of a difference as large where there is none, before correction.
    pub p: f64,
    /// The error probability after Holm's correction for the figures of its family.
    pub p_corrected: f64,
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedFigures"))]
pub struct Row {
    /// The curve, among several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// "IOPS", "p99 of reads".
    pub figure: String,
    /// Its unit.
    pub unit: FigureUnit,
    /// Whether the answer rests on it; the others describe.
    pub headline: bool,
    /// More is faster; or less is.
    pub higher_is_faster: bool,
    /// The share within which a difference does not matter.
    pub margin: f64,
    /// Of A; the mean of repeats.
    pub a: Option<f64>,
    /// Of B.
    pub b: Option<f64>,
    /// B against A in percent; `None` where one of both is not there.
    pub percent: Option<f64>,
    /// The difference with its interval; `None`: see `not_compared`.
    pub difference: Option<Difference>,
    /// Why there is no interval and so no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// The answer for this figure.
    pub verdict: Verdict,
    /// Further or longer runs that would decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<More>,
}

/// A condition in which A and B are not alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mismatch {
    /// The parameter.
    pub what: String,
    /// In A.
    pub a: String,
    /// In B.
    pub b: String,
}

/// Source of the estimate of the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparisonMethod"))]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// From second to second within one run each.
    WithinRuns,
    /// From run to run of two groups.
    Groups,
    /// From pair to pair of interleaved runs.
    Pairs,
    /// Of the points of measured curves.
    Curves,
}

/// B compared with A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The workload: "random 8 KiB reads".
    pub what: String,
    /// Name of A.
    pub a: String,
    /// Name of B.
    pub b: String,
    /// Number of runs of A.
    pub runs_a: usize,
    /// Number of runs of B.
    pub runs_b: usize,
    /// Source of the estimate of the noise.
    pub method: Method,
    /// Rules that hold for all figures.
    pub rules: Rules,
    /// The figures.
    pub rows: Vec<Row>,
    /// Further differences of A and B: then the difference may come from there.
    pub mismatches: Vec<Mismatch>,
    /// Doubts that the reader must know to trust the answer.
    pub doubts: Vec<String>,
    /// The answer, by the headline figures.
    pub verdict: Verdict,
    /// Further or longer runs that would decide an open answer.
    pub more: Option<More>,
    /// The answer in words.
    pub summary: String,
}

/// A figure before it is judged.
pub(crate) struct Candidate {
    pub subject: Option<String>,
    pub figure: String,
    pub unit: FigureUnit,
    pub headline: bool,
    pub higher_is_faster: bool,
    /// `None`: described only, no verdict.
    pub margin: Option<f64>,
    pub a: Result<f64, String>,
    pub b: Result<f64, String>,
    pub evidence: Result<Evidence, String>,
}

impl Candidate {
    pub(crate) fn new(measure: Measure, figure: String, rules: &Rules) -> Candidate {
        Candidate {
            subject: None,
            figure,
            unit: measure.unit(),
            headline: false,
            higher_is_faster: measure.higher_is_faster(),
            margin: (measure != Measure::Max).then(|| measure.margin(rules.margin)),
            a: Err(String::new()),
            b: Err(String::new()),
            evidence: Err(String::new()),
        }
    }
}

impl Comparison {
    /// The figures and the answer; each side is its name and how many runs it has. Conditions, doubts and the summary
    /// are the caller's.
    pub(crate) fn judge(
        a: (&str, usize),
        b: (&str, usize),
        method: Method,
        candidates: &[Candidate],
        rules: &Rules,
    ) -> Comparison {
        let rows = judge(candidates, rules);
        Comparison {
            what: String::new(),
            a: a.0.into(),
            b: b.0.into(),
            runs_a: a.1,
            runs_b: b.1,
            method,
            rules: *rules,
            mismatches: Vec::new(),
            doubts: Vec::new(),
            verdict: answer(&rows),
            more: more(&rows),
            rows,
            summary: String::new(),
        }
    }
}

/// Judges all figures: those of the headline are one family, the others another.
fn judge(candidates: &[Candidate], rules: &Rules) -> Vec<Row> {
    let p_of =
        |candidate: &Candidate| candidate.evidence.as_ref().map_or(None, |evidence| Some(evidence.p()));
    let p: Vec<Option<f64>> = candidates.iter().map(p_of).collect();
    let family = |headline: bool| {
        let judged = |(candidate, p): (&Candidate, &Option<f64>)| {
            if candidate.headline == headline { *p } else { None }
        };
        holm(&candidates.iter().zip(&p).map(judged).collect::<Vec<_>>())
    };
    let (headline, others) = (family(true), family(false));
    let corrected = headline.iter().zip(&others).map(|(a, b)| a.or(*b));
    candidates.iter().zip(corrected).map(|(candidate, p)| row(candidate, p, rules)).collect()
}

/// Holm's step-down correction (1979): the chance that any of the true "no difference" is rejected stays within
/// the bound, however the figures depend on each other.
fn holm(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = p.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut corrected, mut so_far) = (vec![None; p.len()], 0.0_f64);
    for (step, (at, p)) in order.iter().enumerate() {
        so_far = so_far.max(p * (order.len() - step) as f64).min(1.0);
        corrected[*at] = Some(so_far);
    }
    corrected
}

fn row(candidate: &Candidate, p_corrected: Option<f64>, rules: &Rules) -> Row {
    let (a, b) = (candidate.a.as_ref().ok().copied(), candidate.b.as_ref().ok().copied());
    let margin = candidate.margin.unwrap_or(0.0);
    let mut row = Row {
        subject: candidate.subject.clone(),
        figure: candidate.figure.clone(),
        unit: candidate.unit,
        headline: candidate.headline,
        higher_is_faster: candidate.higher_is_faster,
        margin,
        a,
        b,
        percent: a.zip(b).map(|(a, b)| 100.0 * (b / a - 1.0)),
        difference: None,
        not_compared: None,
        verdict: Verdict::CannotTell,
        more: None,
    };
    let evidence = match (&candidate.a, &candidate.b, &candidate.evidence) {
        (Err(why), _, _) | (_, Err(why), _) | (_, _, Err(why)) => {
            row.not_compared = Some(why.clone());
            return row;
        }
        (_, _, Ok(evidence)) => evidence,
    };
    let percent = |ln: f64| ln.is_finite().then(|| 100.0 * (ln.exp() - 1.0));
    let p_corrected = p_corrected.unwrap_or(1.0);
    let ln_margin = margin.ln_1p();
    let (verdict, (low, high)) = decide(evidence, p_corrected, ln_margin, candidate.higher_is_faster, rules);
    row.percent = percent(evidence.ln_ratio());
    row.difference = Some(Difference {
        percent: percent(evidence.ln_ratio()).unwrap_or(0.0),
        percent_low: percent(low).or(if low == f64::NEG_INFINITY { Some(-100.0) } else { None }),
        percent_high: percent(high),
        p: evidence.p(),
        p_corrected,
    });
    if candidate.margin.is_none() {
        row.not_compared = Some("described, not judged".into());
        return row;
    }
    row.verdict = verdict;
    if verdict == Verdict::CannotTell {
        row.more = evidence.missing(1.0 - rules.error_max(), ln_margin);
    }
    row
}

/// The verdict on a figure, and the interval of the logarithm of b / a that it follows from: one without zero where there
/// is a difference, within the margin where there is none that matters.
fn decide(
    evidence: &Evidence,
    p_corrected: f64,
    ln_margin: f64,
    higher_is_faster: bool,
    rules: &Rules,
) -> (Verdict, (f64, f64)) {
    let alone = evidence.interval(rules.confidence());
    if alone.0 >= -ln_margin && alone.1 <= ln_margin {
        return (Verdict::NoDifference, alone);
    }
    // Among several figures each has to hold at Holm's level: p <= level exactly where p_corrected <= error_max.
    let p = evidence.p();
    let level =
        if p > 0.0 && p_corrected > 0.0 { rules.error_max() * p / p_corrected } else { rules.error_max() };
    let (low, high) = evidence.interval(1.0 - level.min(1.0 - rules.confidence()));
    let excludes_zero = low > 0.0 || high < 0.0;
    if p_corrected <= rules.error_max() && evidence.agrees() && excludes_zero {
        let is_faster = (evidence.ln_ratio() > 0.0) == higher_is_faster;
        return (if is_faster { Verdict::Faster } else { Verdict::Slower }, (low, high));
    }
    // No difference stays possible also where only the test by order says so.
    (Verdict::CannotTell, (low.min(0.0), high.max(0.0)))
}

/// The answer of the headline figures together.
fn answer(rows: &[Row]) -> Verdict {
    let headline: Vec<Verdict> = rows.iter().filter(|row| row.headline).map(|row| row.verdict).collect();
    let any = |verdict| headline.contains(&verdict);
    match (any(Verdict::Slower), any(Verdict::Faster)) {
        (true, true) => Verdict::Mixed,
        (true, false) => Verdict::Slower,
        (false, true) => Verdict::Faster,
        (false, false) if any(Verdict::CannotTell) || headline.is_empty() => Verdict::CannotTell,
        (false, false) => Verdict::NoDifference,
    }
}

/// Further or longer runs that would decide all open headline figures.
fn more(rows: &[Row]) -> Option<More> {
    let size = |more: &More| match more {
        More::Pairs(count) | More::Runs(count) => f64::from(*count),
        More::Seconds(seconds) => *seconds,
    };
    let open: Vec<&Row> =
        rows.iter().filter(|row| row.headline && row.verdict == Verdict::CannotTell).collect();
    // One that nothing within reason decides leaves the answer open.
    let all: Option<Vec<More>> = open.iter().map(|row| row.more).collect();
    all?.into_iter().max_by(|a, b| size(a).total_cmp(&size(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_corrects_the_smallest_most() {
        let corrected = holm(&[Some(0.01), None, Some(0.04), Some(0.03)]);
        let expected = [Some(0.03), None, Some(0.06), Some(0.06)];
        for (found, expected) in corrected.iter().zip(expected) {
            match (found, expected) {
                (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12, "{corrected:?}"),
                (found, expected) => assert_eq!(*found, expected),
            }
        }
    }

    #[test]
    fn an_interval_contains_no_difference_where_the_verdict_cannot_tell_and_only_there() {
        // Ratios of five pairs: one that is clear, one that is so alone but not among twenty figures, one that is not.
        let figure = |ratios: [f64; 5]| {
            let evidence = Evidence::from_ratios(&ratios, crate::evidence::Design::Pairs);
            let candidate = Candidate::new(Measure::Iops, "IOPS".into(), &Rules::default());
            Candidate { a: Ok(100.0), b: Ok(110.0), evidence, ..candidate }
        };
        let mut candidates = vec![figure([0.10, 0.11, 0.09, 0.10, 0.105])];
        candidates.push(figure([0.05, 0.12, 0.20, 0.09, 0.14]));
        candidates.extend((0..18).map(|_| figure([0.10, -0.09, 0.05, -0.04, 0.01])));
        let rows = judge(&candidates, &Rules::default());
        for row in &rows {
            let difference = row.difference.unwrap();
            let (low, high) = (difference.percent_low.unwrap(), difference.percent_high.unwrap());
            let excludes = low > 0.0 || high < 0.0;
            assert_eq!(excludes, row.verdict != Verdict::CannotTell, "{row:?}");
        }
        assert_eq!((rows[0].verdict, rows[1].verdict), (Verdict::Faster, Verdict::CannotTell));
        assert!(rows[1].difference.unwrap().p < 0.05, "alone it would be clear");
    }
}
