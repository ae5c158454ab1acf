use crate::axis::Axis;
use crate::drawing::{Drawing, Size};
use crate::number;
use crate::palette::Ink;
use crate::plot::{Margins, Plot};
use capability::{Curve, KneeReason};
use verdict::Place;

/// Mean latency against outstanding I/Os: the measured points, R0 and N / Xmax, the knee, the demand.
pub fn curve_latency(curve: &Curve, place: Option<&Place>, size: Size) -> Drawing {
    let description = format!("mean latency of {} against outstanding I/Os", curve.workload);
    Drawing::new(size, &description, |canvas| {
        let outstanding = curve.points.iter().map(|point| f64::from(point.outstanding));
        let latencies = curve.points.iter().map(|point| point.latency_ns);
        // A demand under the curve needs space for its label.
        let placed = place.map(|place| {
            let under = if place.latency_ns < place.expected_ns { 0.6 } else { 1.0 };
            [place.latency_ns * under, place.expected_ns]
        });
        let x = Axis::powers_of_two(outstanding.chain(place.map(|place| place.outstanding)), 9);
        let y = Axis::latencies(latencies.chain(placed.into_iter().flatten()));
        let mut plot = Plot::new(canvas, size, &Margins::CURVE, x, y);
        if let Some(knee) = &curve.knee
            && knee.reason != KneeReason::NotReached
        {
            plot.stripe(knee.low, knee.high, Ink::Knee, 0.35);
        }
        plot.axes("outstanding I/Os (N), log scale", "mean latency, log scale");
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
        let points: Vec<(f64, Option<f64>)> =
            curve.points.iter().map(|point| (f64::from(point.outstanding), Some(point.latency_ns))).collect();
        plot.series(&points, Ink::Curve, true);
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
        if curve.points.is_empty() {
            plot.nothing("no points were measured");
        }
    })
}
