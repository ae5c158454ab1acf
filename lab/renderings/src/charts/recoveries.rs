//! Recoveries of crashed engines: the time until each can serve.

use charts::parts::{Anchor, Axis, Canvas, text_pixels};
use charts::{Chart, Drawing, Ink, Key, Mark, Panel, Size, number};
use experiments::{RecoverResult, RecoverStudy};
use std::rc::Rc;

/// A time of each recovery.
type Moment = (&'static str, fn(&RecoverResult) -> f64);

/// In the order of time.
const MOMENTS: [Moment; 3] = [
    ("first read", |result| result.first_read_s),
    ("first write", |result| result.first_write_s),
    ("all written", |result| result.full_s),
];

/// One recovery: its name and the three times, nanoseconds.
struct Group {
    name: String,
    times_ns: [f64; 3],
}

const BAR: f64 = 15.0;
const GROUP: f64 = 3.0 * BAR + 16.0;
/// Opacity of a bar, which the legend shares.
const BAR_OPACITY: f64 = 0.55;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 42.0;

/// Times to first read, first write and all written of each recovery, as bars on a logarithmic axis.
pub fn recoveries(study: &RecoverStudy) -> Chart {
    let group = |result: &RecoverResult| Group {
        name: result.name(),
        times_ns: MOMENTS.map(|(_, seconds)| seconds(result) * 1e9),
    };
    let groups: Rc<Vec<Group>> = Rc::new(study.results.iter().map(group).collect());
    let key = |(at, (name, _)): (usize, &Moment)| -> Key { (Mark::Area, Ink::series(at), (*name).into()) };
    let legend = MOMENTS.iter().enumerate().map(key).collect();
    let height = (TOP + BOTTOM + GROUP * groups.len() as f64) as u32;
    let (size, narrow) = (Size { height, ..Size::WIDE }, Size { height, ..Size::NARROW });
    let draw = {
        let groups = Rc::clone(&groups);
        move |size: Size| Drawing::new(size, "times of each recovery", |canvas| bars(canvas, size, &groups))
    };
    let panel = Panel { legend, narrow, ..Panel::new("Time since the engine began to open", size, draw) };
    let panels = if groups.is_empty() { Vec::new() } else { vec![panel] };
    let notes =
        vec!["The axis is logarithmic: bars of the same difference are the same factor apart.".to_owned()];
    let settings = vec![
        ("work".to_owned(), study.work()),
        ("storage".to_owned(), study.storage()),
        ("directory".to_owned(), study.dir.clone()),
    ];
    Chart { title: "Time to serve, and to have all written".into(), notes, panels, settings }
}

fn bars(canvas: &mut Canvas, size: Size, groups: &[Group]) {
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let times = || groups.iter().flat_map(|group| group.times_ns);
    // Also the shortest bar has a length.
    let axis = Axis::latencies(times().chain([times().fold(f64::INFINITY, f64::min) / 3.0]));
    let names = groups.iter().map(|group| text_pixels(&group.name)).fold(40.0, f64::max);
    // The value follows each bar.
    let (left, right) = (names.min(width / 2.5) + 10.0, width - 64.0);
    let across = |ns: f64| left + axis.share(ns).unwrap_or(0.0).clamp(0.0, 1.0) * (right - left);
    let mut free_from = f64::NEG_INFINITY;
    for (ns, label) in &axis.ticks {
        let (x, half) = (across(*ns), text_pixels(label) / 2.0);
        canvas.line(&[(x, TOP), (x, height - BOTTOM)], Ink::Grid, 1.0);
        if x - half >= free_from {
            canvas.text((x, height - BOTTOM + 14.0), label, Anchor::Middle, Ink::Muted, false);
            free_from = x + half + 6.0;
        }
    }
    canvas.line(&[(left, TOP), (left, height - BOTTOM)], Ink::Axis, 1.0);
    canvas.text(((left + right) / 2.0, height - 9.0), "time, log scale", Anchor::Middle, Ink::Muted, false);
    for (at, group) in groups.iter().enumerate() {
        let top = TOP + GROUP * at as f64 + (GROUP - 3.0 * BAR) / 2.0;
        canvas.text((left - 8.0, top + 1.5 * BAR), &group.name, Anchor::End, Ink::Text, false);
        for (which, ns) in group.times_ns.iter().enumerate() {
            let (upper, end) = (top + BAR * which as f64, across(*ns));
            canvas.rect((left, upper + 1.5), (end, upper + BAR - 1.5), Ink::series(which), BAR_OPACITY);
            let label = number::time(*ns);
            canvas.text((end + 5.0, upper + BAR / 2.0), &label, Anchor::Start, Ink::Muted, false);
        }
    }
}
