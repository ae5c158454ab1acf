use crate::axis::Axis;
use crate::drawing::{Canvas, Drawing, Size};
use crate::number;
use crate::palette::Ink;
use crate::plot::{Margins, Plot};
use capability::{Curve, KneeReason, Point};
use verdict::Place;

/// I/Os a second against outstanding I/Os: the measured points, N / R0 and Xmax, the knee, the demand.
pub fn curve_iops(curve: &Curve, place: Option<&Place>, size: Size) -> Drawing {
    let description = format!("I/Os a second of {} against outstanding I/Os", curve.workload);
    Drawing::new(size, &description, |canvas| {
        let rates = curve.points.iter().map(|point| point.iops);
        // Space above the plateau for its label.
        let highest = curve.knee.as_ref().map(|knee| knee.iops * 1.12);
        let y = Axis::from_zero(rates.chain(place.map(|place| place.iops)).chain(highest), 5);
        let mut plot = plot(canvas, size, (curve, place), y, "IOPS");
        if let Some(knee) = &curve.knee {
            plot.dashed((plot.x.from(), knee.iops), (plot.x.to(), knee.iops), Ink::Bound);
            plot.over(knee.iops, &format!("highest rate {}", number::rate(knee.iops)), Ink::Muted);
            // A straight line, which a logarithmic axis bends.
            let end = plot.y.to() * knee.latency_ns_floor / 1e9;
            let begin = plot.x.from();
            let by_latency = |n: f64| (n, n * 1e9 / knee.latency_ns_floor);
            let line: Vec<(f64, f64)> =
                (0..=40).map(|step| by_latency(begin * (end / begin).powf(f64::from(step) / 40.0))).collect();
            let pixels: Vec<_> = line.iter().filter_map(|(n, iops)| plot.pixel(*n, *iops)).collect();
            plot.canvas.dashed(&pixels, Ink::Bound, 1.5);
            if knee.reason != KneeReason::NotReached {
                let label = format!("knee {}", number::rate(knee.outstanding));
                let low = place.is_some_and(|place| plot.height(place.iops) < 0.25);
                plot.beside(knee.high, if low { 0.4 } else { 0.06 }, &label, Ink::Knee);
            }
        }
        measured(&mut plot, curve, |point| point.iops);
        if let Some(place) = place {
            let label = format!("demand: {} /s", number::rate(place.iops));
            plot.marked(place.outstanding, place.iops, &label, Ink::Demand, true);
        }
    })
}

/// Mean latency against outstanding I/Os: the measured points, R0 and N / Xmax, the knee, the demand.
pub fn curve_latency(curve: &Curve, place: Option<&Place>, size: Size) -> Drawing {
    let description = format!("mean latency of {} against outstanding I/Os", curve.workload);
    Drawing::new(size, &description, |canvas| {
        let latencies = curve.points.iter().map(|point| point.latency_ns);
        // A demand under the curve needs space for its label.
        let placed = place.map(|place| {
            let under = if place.latency_ns < place.expected_ns { 0.6 } else { 1.0 };
            [place.latency_ns * under, place.expected_ns]
        });
        let y = Axis::latencies(latencies.chain(placed.into_iter().flatten()));
        let mut plot = plot(canvas, size, (curve, place), y, "mean latency, log scale");
        if let Some(knee) = &curve.knee {
            let end = plot.x.to();
            plot.dashed((plot.x.from(), knee.latency_ns_floor), (end, knee.latency_ns_floor), Ink::Bound);
            // Where N / Xmax falls below the axis it would lie on its edge.
            let begin = (plot.y.from() / 1e9 * knee.iops).max(plot.x.from());
            let at_top = (plot.y.to() / 1e9 * knee.iops).min(end);
            let by_rate = |n: f64| (n, n * 1e9 / knee.iops);
            plot.dashed(by_rate(begin), by_rate(at_top), Ink::Bound);
            if knee.reason != KneeReason::NotReached {
                let label = format!("knee {}", number::rate(knee.outstanding));
                let left_is_free = place.is_none_or(|place| plot.height(place.latency_ns) < 0.8);
                plot.beside(knee.high, if left_is_free { 0.95 } else { 0.05 }, &label, Ink::Knee);
            }
        }
        measured(&mut plot, curve, |point| point.latency_ns);
        if let Some(place) = place {
            let n = place.outstanding;
            plot.dashed((n, place.expected_ns), (n, place.latency_ns), Ink::Demand);
            if let Some(at) = plot.pixel(n, place.expected_ns) {
                plot.canvas.ring(at, 3.5, Ink::Demand, 1.5);
            }
            // The label stands on the side away from the curve.
            let drawn = curve.latency_ns_at(n).unwrap_or(0.0);
            let label = format!("demand: {}", number::time(place.latency_ns));
            plot.marked(n, place.latency_ns, &label, Ink::Demand, place.latency_ns < drawn);
        }
    })
}

/// Axes against outstanding I/Os, with the interval of a knee behind them.
fn plot<'a>(
    canvas: &'a mut Canvas,
    size: Size,
    (curve, place): (&Curve, Option<&Place>),
    y: Axis,
    y_title: &str,
) -> Plot<'a> {
    let outstanding = curve.points.iter().map(|point| f64::from(point.outstanding));
    let x = Axis::powers_of_two(outstanding.chain(place.map(|place| place.outstanding)), 9);
    let mut plot = Plot::new(canvas, size, &Margins::CURVE, x, y);
    if let Some(knee) = &curve.knee
        && knee.reason != KneeReason::NotReached
    {
        plot.stripe(knee.low, knee.high, Ink::Knee, 0.35);
    }
    plot.axes("outstanding I/Os (N), log scale", y_title);
    plot
}

/// The measured points, or that there are none.
fn measured(plot: &mut Plot<'_>, curve: &Curve, figure: fn(&Point) -> f64) {
    let point = |point: &Point| (f64::from(point.outstanding), Some(figure(point)));
    plot.series(&curve.points.iter().map(point).collect::<Vec<_>>(), Ink::Curve, true);
    if curve.points.is_empty() {
        plot.nothing("no points were measured");
    }
}
