use crate::{Check, number};
use capability::CostModel;
use simulate::{Advice, Fit, Prediction, Storage};
use workload::PhaseResult;

/// A plan that ran on simulated storage.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// Results in the form of a run.
    pub phases: Vec<PhaseResult>,
    /// The model.
    pub storage: Storage,
    /// Where the model comes from, if it was fitted.
    pub fit: Option<Fit>,
}

/// Estimated capability of a measured storage after changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The measured storage.
    pub of: String,
    /// The changes; `None`: none.
    pub changes: Option<String>,
    /// Its model.
    pub fit: Fit,
    /// The cost model of its measurement, unchanged.
    pub cost_model: Option<CostModel>,
    /// A prediction for each curve that was measured.
    pub predictions: Vec<Prediction>,
}

impl Estimate {
    /// "With 3 disks striped, headroom rises from 0.92 x to 2.66 x.": what changes for the first workload.
    pub(crate) fn summary(&self) -> String {
        let Some(first) = self.predictions.first() else {
            return "No curve was measured: nothing can be estimated.".into();
        };
        let (now, then) = first.headroom;
        let (now_words, then_words) = (number::times(now), number::times(then));
        let Some(changes) = &self.changes else {
            return format!("Unchanged, headroom is {now_words}.");
        };
        let verb = if then > now { "rises" } else { "falls" };
        if now_words == then_words {
            return format!("With {changes}, headroom stays at {now_words}.");
        }
        format!("With {changes}, headroom {verb} from {now_words} to {then_words}.")
    }
}

/// The note beside every simulated figure.
pub fn simulated_note(fit: Option<&Fit>) -> String {
    match fit {
        None => "Simulated: what the model in the file gives, not a measurement.".to_owned(),
        Some(fit) => {
            format!("Simulated: estimates of a fitted model, not a measurement; {}.", error_note(fit))
        }
    }
}

/// The error of the model, on points that were kept out of the fit.
pub(crate) fn error_note(fit: &Fit) -> String {
    match (fit.error, fit.held_out.len()) {
        (Some(error), points) => format!(
            "mean error of the model: {}, on {points} measured point{} kept out of the fit",
            number::share(error),
            if points == 1 { "" } else { "s" }
        ),
        (None, _) => "the error of the model is not known: too little was measured".to_owned(),
    }
}

/// A remedy in words.
pub(crate) struct RemedyRow {
    pub(crate) what: String,
    /// The multiple of today's demand that it carries.
    pub(crate) carries: String,
    /// Mean latency at today's demand.
    pub(crate) latency: String,
    pub(crate) enough: bool,
}

/// The remedies of an answer. The first row is the storage unchanged: its figures are those of the verdict, as the others are
/// estimates for what does not exist yet.
pub(crate) fn remedy_rows(check: &Check) -> Vec<RemedyRow> {
    let Some(advice) = &check.advice else { return Vec::new() };
    let estimated = advice.remedies.iter().skip(1).map(|remedy| RemedyRow {
        what: remedy.what.clone(),
        carries: number::times(remedy.carries),
        latency: remedy
            .latency_ns
            .map_or("still too much".to_owned(), |ns| format!("{} each", number::time(ns))),
        enough: remedy.enough,
    });
    let verdict = check.own_verdict();
    let observed =
        verdict.place.as_ref().map(|place| format!("{} each, observed", number::time(place.latency_ns)));
    let unchanged = advice.remedies.first().map(|remedy| RemedyRow {
        what: remedy.what.clone(),
        carries: verdict.headroom.map_or(number::NONE.into(), number::times),
        latency: observed.unwrap_or_default(),
        enough: false,
    });
    unchanged.into_iter().chain(estimated).collect()
}

pub(crate) fn advice_note(advice: &Advice) -> String {
    let error = advice.error.map_or("the model's error is not known".to_owned(), |error| {
        format!("mean error of the model: {}, on measured points kept out of the fit", number::share(error))
    });
    format!("estimates by simulation; {error}")
}
