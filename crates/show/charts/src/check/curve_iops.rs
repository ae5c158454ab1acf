use crate::axis::Axis;
use crate::drawing::{Drawing, Size};
use crate::number;
use crate::palette::Ink;
use crate::plot::{Margins, Plot};
use capability::{Curve, KneeReason};
use verdict::Place;

/// I/Os a second against outstanding I/Os: the measured points, N / R0 and Xmax, the knee, the demand.
pub fn curve_iops(curve: &Curve, place: Option<&Place>, size: Size) -> Drawing {
    let description = format!("I/Os a second of {} against outstanding I/Os", curve.workload);
    Drawing::new(size, &description, |canvas| {
        let outstanding = curve.points.iter().map(|point| f64::from(point.outstanding));
        let rates = curve.points.iter().map(|point| point.iops);
        let x = Axis::powers_of_two(outstanding.chain(place.map(|place| place.outstanding)), 9);
        // Space above the plateau for its label.
        let highest = curve.knee.as_ref().map(|knee| knee.iops * 1.12);
        let y = Axis::from_zero(rates.chain(place.map(|place| place.iops)).chain(highest), 5);
        let mut plot = Plot::new(canvas, size, &Margins::CURVE, x, y);
        if let Some(knee) = &curve.knee
            && knee.reason != KneeReason::NotReached
        {
            plot.stripe(knee.low, knee.high, Ink::Knee, 0.35);
        }
        plot.axes("outstanding I/Os (N), log scale", "IOPS");
        if let Some(knee) = &curve.knee {
            plot.dashed((plot.x.from(), knee.iops), (plot.x.to(), knee.iops), Ink::Bound);
            plot.over(knee.iops, &format!("Xmax {}", number::rate(knee.iops)), Ink::Muted);
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
        let points: Vec<(f64, Option<f64>)> =
            curve.points.iter().map(|point| (f64::from(point.outstanding), Some(point.iops))).collect();
        plot.series(&points, Ink::Curve, true);
        if let Some(place) = place {
            let label = format!("demand: {} /s", number::rate(place.iops));
            plot.marked(place.outstanding, place.iops, &label, Ink::Demand, true);
        }
        if curve.points.is_empty() {
            plot.nothing("no points were measured");
        }
    })
}
