use crate::comparison::{Candidate, Comparison, Method, Rules, Side};
use crate::evidence::{Design, Evidence};
use crate::figure::{Figure, Measure, Operations};
use crate::single_run::SliceSeries;
use crate::stated::Stated;
use crate::{comparable, words};
use workload::RunResult;

/// Compares B with A: one run each by the noise within them, repeats by the noise between them.
pub fn runs(a: Side<'_>, b: Side<'_>, rules: &Rules) -> Comparison {
    if a.runs.len() == 1 && b.runs.len() == 1 {
        return single(a, b, rules);
    }
    repeats(a, b, Method::Groups, rules, &|a, b| Evidence::from_groups(a, b))
}

/// Compares B with A by the pairs that they form, run by run in that order: what both of a pair share (the
/// time of day, the state of the storage) is no noise. Runs without a partner are left out.
pub fn pairs(a: Side<'_>, b: Side<'_>, rules: &Rules) -> Comparison {
    let count = a.runs.len().min(b.runs.len());
    let (a, b) = (Side { runs: &a.runs[..count], ..a }, Side { runs: &b.runs[..count], ..b });
    repeats(a, b, Method::Pairs, rules, &|a, b| {
        let ln_ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
        Evidence::from_ratios(&ln_ratios, Design::Pairs)
    })
}

/// Compares measured runs (B) with stated figures (A).
pub fn stated(stated: &[Stated], measured: Side<'_>, rules: &Rules) -> Comparison {
    let runs = measured.runs;
    let single = runs.len() == 1;
    let candidates: Vec<Candidate> = stated
        .iter()
        .map(|stated| {
            let values = values(stated.figure, runs);
            let evidence = match &values {
                Err(why) => Err(why.clone()),
                Ok(values) if single => SliceSeries::from_run(&runs[0]).and_then(|series| {
                    let estimate = series.estimate(stated.figure, values[0])?;
                    let ln_ratio = estimate.ln() - stated.value.ln();
                    Ok(Evidence::Within { a: None, b: estimate, ln_ratio, seconds: series.seconds() })
                }),
                Ok(values) => {
                    let ln_ratios = values.iter().map(|value| value.ln() - stated.value.ln());
                    Evidence::from_ratios(&ln_ratios.collect::<Vec<_>>(), Design::One)
                }
            };
            let figure = stated.figure;
            Candidate {
                headline: true,
                a: Ok(stated.value),
                b: values.map(|values| typical(&values)),
                evidence,
                ..Candidate::new(figure.measure, figure.to_string(), rules)
            }
        })
        .collect();
    let method = if single { Method::WithinRuns } else { Method::Groups };
    let a = Side { name: "stated", runs: &[] };
    finish(a, measured, method, &candidates, rules)
}

fn single(a: Side<'_>, b: Side<'_>, rules: &Rules) -> Comparison {
    let (run_a, run_b) = (&a.runs[0], &b.runs[0]);
    let series = SliceSeries::from_run(run_a).and_then(|a| Ok((a, SliceSeries::from_run(run_b)?)));
    let candidates = candidates(a, b, rules, &|figure, _, _| {
        let (series_a, series_b) = series.as_ref().map_err(Clone::clone)?;
        let estimate_a = series_a.estimate(figure, figure.value(run_a)?)?;
        let estimate_b = series_b.estimate(figure, figure.value(run_b)?)?;
        let ln_ratio = estimate_b.ln() - estimate_a.ln();
        let seconds = series_a.seconds().min(series_b.seconds());
        Ok(Evidence::Within { a: Some(estimate_a), b: estimate_b, ln_ratio, seconds })
    });
    finish(a, b, Method::WithinRuns, &candidates, rules)
}

/// Evidence from the logarithms of the figures of both sides' runs.
type FromValues<'a> = &'a dyn Fn(&[f64], &[f64]) -> Result<Evidence, String>;

fn repeats(a: Side<'_>, b: Side<'_>, method: Method, rules: &Rules, evidence: FromValues<'_>) -> Comparison {
    let ln = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let candidates = candidates(a, b, rules, &|_, a, b| evidence(&ln(a), &ln(b)));
    finish(a, b, method, &candidates, rules)
}

/// Evidence from a figure's values of both sides' runs.
type FromFigure<'a> = &'a dyn Fn(Figure, &[f64], &[f64]) -> Result<Evidence, String>;

fn candidates(a: Side<'_>, b: Side<'_>, rules: &Rules, evidence: FromFigure<'_>) -> Vec<Candidate> {
    let all: Vec<&RunResult> = a.runs.iter().chain(b.runs).collect();
    let headline = headline(&all);
    figures(&all)
        .into_iter()
        .map(|figure| {
            let (values_a, values_b) = (values(figure, a.runs), values(figure, b.runs));
            let evidence = match (&values_a, &values_b) {
                (Ok(a), Ok(b)) => evidence(figure, a, b),
                (Err(why), _) | (_, Err(why)) => Err(why.clone()),
            };
            Candidate {
                headline: headline.contains(&figure),
                a: values_a.map(|values| typical(&values)),
                b: values_b.map(|values| typical(&values)),
                evidence,
                ..Candidate::new(figure.measure, figure.to_string(), rules)
            }
        })
        .collect()
}

fn finish(a: Side<'_>, b: Side<'_>, method: Method, candidates: &[Candidate], rules: &Rules) -> Comparison {
    words::with_summary(Comparison {
        what: b.runs.first().map_or_else(String::new, |run| words::workload(&run.workload)),
        mismatches: comparable::runs(a.runs, b.runs),
        doubts: comparable::doubts(a, b, method),
        ..Comparison::judge((a.name, a.runs.len()), (b.name, b.runs.len()), method, candidates, rules)
    })
}

/// The figures that the runs have: rates, then latencies of each kind of operation.
fn figures(runs: &[&RunResult]) -> Vec<Figure> {
    let does = |operations: Operations| runs.iter().any(|run| operations.latency(run).is_some());
    let rate = |measure, operations| Figure { measure, operations };
    let mut figures = vec![rate(Measure::Iops, Operations::All), rate(Measure::Throughput, Operations::All)];
    if does(Operations::Reads) && does(Operations::Writes) {
        figures.extend([rate(Measure::Iops, Operations::Reads), rate(Measure::Iops, Operations::Writes)]);
    }
    if does(Operations::Syncs) {
        figures.push(rate(Measure::Iops, Operations::Syncs));
    }
    for operations in [
        Operations::Reads,
        Operations::Writes,
        Operations::ReadResponses,
        Operations::WriteResponses,
        Operations::Syncs,
    ] {
        if does(operations) {
            figures.extend(Measure::LATENCIES.map(|measure| Figure { measure, operations }));
        }
    }
    figures
}

/// Figures that decide the answer: IOPS, and of reads and writes p99, or the mean where p99 has too few I/Os
/// behind it in any run. Of an open loop latency counts from when an I/O was due, where that is known of each
/// run and there are repeats (one run keeps no series of it). Chosen by counts alone, never by the outcome.
fn headline(runs: &[&RunResult]) -> Vec<Figure> {
    let mut headline = vec![Figure { measure: Measure::Iops, operations: Operations::All }];
    for (operations, response) in
        [(Operations::Reads, Operations::ReadResponses), (Operations::Writes, Operations::WriteResponses)]
    {
        let everywhere = |operations: Operations| runs.iter().all(|run| operations.latency(run).is_some());
        let operations = if runs.len() > 2 && everywhere(response) { response } else { operations };
        if !runs.iter().any(|run| operations.latency(run).is_some()) {
            continue;
        }
        let p99 = Figure { measure: Measure::P99, operations };
        let enough = runs.iter().all(|run| {
            let count = operations.latency(run).map_or(0, |latency| latency.count());
            p99.enough(count).is_ok()
        });
        headline.push(if enough { p99 } else { Figure { measure: Measure::Mean, operations } });
    }
    headline
}

fn values(figure: Figure, runs: &[RunResult]) -> Result<Vec<f64>, String> {
    runs.iter().map(|run| figure.value(run)).collect()
}

/// The geometric mean: its logarithm is the mean of the logarithms that are compared.
fn typical(values: &[f64]) -> f64 {
    let ln: f64 = values.iter().map(|value| value.ln()).sum();
    if let [only] = values { *only } else { (ln / values.len().max(1) as f64).exp() }
}
