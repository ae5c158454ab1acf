//! A sweep: latency and IOPS against N, and both with the outstanding I/Os on one time axis.

mod curves;
mod over_time;
mod words;

pub use words::{comparison_words, names, reached_knee};

use crate::chart::{Chart, Draw, Panel, grouped};
use crate::drawing::Size;
use crate::factor::Factor;
use crate::legend::{Key, Mark};
use crate::palette::Ink;
use crate::plot::Margins;
use crate::run::{self, NamedRun};
use crate::words::listed;
use capability::{StorageLimits, Sweep, SweepComparison, SweepStep};
use curves::Scale;
use std::rc::Rc;

/// A sweep with its name and colour in a chart.
struct DrawnSweep {
    sweep: Sweep,
    name: String,
    ink: Ink,
}

impl DrawnSweep {
    fn steps(&self) -> &[SweepStep] {
        &self.sweep.steps
    }
}

/// Sweeps over each other, with the ratio of their knees where two are compared.
pub fn chart(sweeps: &[Sweep], compared: Option<&SweepComparison>) -> Chart {
    let results = sweeps.iter().flat_map(|sweep| &sweep.steps).map(|step| &step.result);
    let results: Vec<_> = results.cloned().collect();
    let mut chart = Chart::new("Sweep", run::settings(&NamedRun::all(&results)));
    let named = chart.distinguishable(sweeps.iter().zip(names(sweeps)).collect(), "more");
    let drawn = named.into_iter().enumerate().map(|(at, (sweep, name))| DrawnSweep {
        sweep: sweep.clone(),
        name,
        ink: Ink::series(at),
    });
    let drawn: Vec<DrawnSweep> = drawn.filter(|one| !one.steps().is_empty()).collect();
    if drawn.is_empty() {
        chart.notes.push("No step completed an I/O: there is no curve.".into());
        return chart;
    }
    let key = |one: &DrawnSweep| (Mark::Line, one.ink, one.name.clone());
    let legend: Vec<Key> = drawn.iter().filter(|one| !one.name.is_empty()).map(key).collect();
    let over_time = over_time::panel(&drawn, legend.clone());
    let scale = Scale::for_steps(&drawn);
    let (ratio, throughputs) = (compared.cloned(), Rc::new(drawn));
    let latencies = Rc::clone(&throughputs);
    let panel = |title: &str, note: &str, draw: Draw| {
        let panel = Panel { note: note.into(), ..Panel::new(title, Size::HALF, draw) };
        panel.with_legend(legend.clone(), &Margins::CURVE)
    };
    chart.panels = vec![
        panel(
            "Throughput against N",
            "Circles: the knees, with their 95 % intervals. Dashed: the most that is reached.",
            Box::new(move |size| curves::throughput(&throughputs, ratio.as_ref(), scale, size)),
        ),
        panel(
            "Mean latency against N",
            "Circles: the knees, where the dashed asymptotes cross, and where latency passes the bounds.",
            Box::new(move |size| curves::latency(&latencies, scale, size)),
        ),
        over_time,
    ];
    chart
}

/// Runs of rising outstanding I/Os as sweeps: one for each target, layout and kind of I/O. A note compares two.
pub(crate) fn chart_of_runs(runs: &[NamedRun]) -> Chart {
    let group = |run: &NamedRun| {
        let factors = Factor::ALL
            .into_iter()
            .filter(|factor| !matches!(factor, Factor::Outstanding | Factor::Threads | Factor::Target));
        let levels: Vec<String> = factors.map(|factor| factor.level(&run.result).name).collect();
        listed([&run.group, &run.result.target].into_iter().chain(&levels).map(String::as_str))
    };
    let closed = runs.iter().filter(|run| run.result.ios() > 0 && !run.result.workload.is_open_loop());
    let steps = closed.map(|run| (group(run), SweepStep::from_result(run.result.clone().into_owned())));
    let sweeps: Vec<Sweep> = grouped(steps)
        .into_iter()
        .map(|(name, steps)| Sweep::from_steps(name, steps, &StorageLimits::default()))
        .collect();
    let compared = match sweeps.as_slice() {
        [first, second] => SweepComparison::between(&first.saturation, &second.saturation),
        _ => None,
    };
    let mut chart = chart(&sweeps, compared.as_ref());
    if let (Some(compared), [first, second], false) = (&compared, sweeps.as_slice(), chart.is_empty()) {
        chart.notes.push(format!("{}.", comparison_words(first, second, compared)));
    }
    chart
}
