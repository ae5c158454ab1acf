use capability::{Knee, KneeReason, RatioIs, Sweep, SweepComparison};

/// Names that distinguish sweeps: their layouts, else their targets. A single one needs no name.
pub fn names(sweeps: &[Sweep]) -> Vec<String> {
    let layouts: Vec<String> = sweeps
        .iter()
        .map(|sweep| sweep.layout().map_or(String::new(), |layout| layout.to_string()))
        .collect();
    let mut different = layouts.clone();
    different.sort();
    different.dedup();
    match sweeps {
        [_] => vec![String::new()],
        _ if different.len() == sweeps.len() && layouts.iter().all(|layout| !layout.is_empty()) => layouts,
        _ => sweeps.iter().map(|sweep| sweep.target.clone()).collect(),
    }
}

/// The knee, where it was reached.
pub fn reached_knee(sweep: &Sweep) -> Option<&Knee> {
    sweep.saturation.knee.as_ref().filter(|knee| knee.reason != KneeReason::NotReached)
}

/// "3.00 x", "at least 3.00 x".
pub(crate) fn knee_ratio(compared: &SweepComparison) -> String {
    let ratio = compared.knee_ratio;
    match compared.knee_ratio_is {
        RatioIs::Measured => format!("{ratio:.2} x"),
        RatioIs::AtLeast => format!("at least {ratio:.2} x"),
        RatioIs::AtMost => format!("at most {ratio:.2} x"),
        RatioIs::Unknown => "? x".into(),
    }
}

/// How the second compares with the first: "k x the throughput, saturates at k x the outstanding".
pub fn comparison_words(first: &Sweep, second: &Sweep, compared: &SweepComparison) -> String {
    let name =
        |sweep: &Sweep| sweep.layout().map_or_else(|| sweep.target.clone(), |layout| layout.to_string());
    let (low, high) = compared.knee_ratio_interval;
    let knee = match compared.knee_ratio_is {
        RatioIs::Measured => {
            format!("saturates at {:.2} x the outstanding ({low:.2} to {high:.2})", compared.knee_ratio)
        }
        RatioIs::Unknown => "both were saturated from the first step on: begin with less outstanding".into(),
        RatioIs::AtLeast | RatioIs::AtMost => {
            let saturated = if compared.knee_ratio_is == RatioIs::AtLeast { first } else { second };
            format!(
                "saturates at {} the outstanding: {} was saturated from the first step on, begin with less",
                knee_ratio(compared),
                name(saturated)
            )
        }
    };
    format!(
        "{} against {}: {:.2} x the throughput, {knee}",
        name(second),
        name(first),
        compared.throughput_ratio
    )
}
