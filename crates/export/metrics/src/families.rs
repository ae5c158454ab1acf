//! The totals as metric families: the one list that all formats write.

use crate::totals::{Class, Health, Summed, Sums, Totals};
use filestats::FileKind;

/// A metric family: the series of one name.
pub(crate) struct Family {
    pub name: String,
    pub kind: FamilyKind,
    pub unit: Unit,
    pub help: String,
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FamilyKind {
    Counter,
    Summary,
    Gauge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    None,
    Bytes,
    Seconds,
    Ratio,
}

/// One series, or the two of a summary.
pub(crate) struct Point {
    /// Labels in the order of the text format.
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Count(u64),
    Time { ns: u128 },
    Total(f64),
    Summary { ns: u128, count: u64 },
    Gauge(f64),
}

/// The operations of one kind among those of a class.
type Part = fn(&Sums) -> &Summed;

impl Totals {
    /// All families; a family may have no series yet.
    pub(crate) fn families(&self) -> Vec<Family> {
        let parts: [(&str, &str, Part); 3] = [
            ("read", "reads", |sums| &sums.read),
            ("write", "writes", |sums| &sums.write),
            ("sync", "syncs", |sums| &sums.sync),
        ];
        let mut families = Vec::new();
        for (one, many, part) in parts {
            families.extend(self.of_files(one, many, part));
            let (one, many) = if one == "sync" { ("flush", "flushes") } else { (one, many) };
            families.extend(self.of_devices(one, many, part));
        }
        families.push(self.waited());
        families.extend(self.of_recorder());
        families
    }

    fn of_files(&self, one: &str, many: &str, part: Part) -> Vec<Family> {
        let points = |there: fn(&Summed) -> bool, value: fn(&Summed) -> Value| -> Vec<Point> {
            let classes = self.classes.iter().filter(|(class, _)| class.kind != FileKind::Device);
            let summed = classes.map(|(class, sums)| (class, part(sums))).filter(|(_, summed)| there(summed));
            summed.map(|(class, summed)| Point { labels: file_labels(class), value: value(summed) }).collect()
        };
        let some = |summed: &Summed| summed.count > 0;
        let name = format!("headroom_file_{many}");
        let count = points(some, |summed| Value::Count(summed.count));
        let mut families = vec![counter(&name, Unit::None, &format!("{many} of files"), count)];
        if one != "sync" {
            let name = format!("headroom_file_{one}_bytes");
            let bytes = points(some, |summed| Value::Count(summed.bytes));
            families.push(counter(&name, Unit::Bytes, &format!("bytes of {many}"), bytes));
        }
        let help = format!("time of {many} that are timed, and how many those are");
        let times = points(|summed| summed.timed > 0, Summed::summary);
        families.push(times_of(&format!("headroom_file_{one}"), help, times));
        families
    }

    fn of_devices(&self, one: &str, many: &str, part: Part) -> [Family; 2] {
        let points = |value: fn(&Summed) -> Value| -> Vec<Point> {
            let classes = self.classes.iter().filter(|(class, _)| class.kind == FileKind::Device);
            let point = |(class, sums)| Point { labels: device_labels(class), value: value(part(sums)) };
            classes.map(point).collect()
        };
        let name = format!("headroom_device_{many}");
        let count = points(|summed| Value::Count(summed.count));
        let help = format!("time of {many} of block devices");
        [
            counter(&name, Unit::None, &format!("{many} of block devices"), count),
            times_of(&format!("headroom_device_{one}"), help, points(Summed::summary)),
        ]
    }

    fn waited(&self) -> Family {
        let points = self.waits.iter().map(|(wait, ns)| Point {
            labels: vec![
                ("source", wait.source.clone()),
                ("class", wait.class.to_string()),
                ("event", wait.event.clone()),
            ],
            value: Value::Time { ns: *ns },
        });
        let help = "time that sessions waited, by event";
        counter("headroom_wait_time_seconds", Unit::Seconds, help, points.collect())
    }

    /// The families about the collection itself: sources that fail, lost intervals, failed pushes.
    fn of_recorder(&self) -> [Family; 4] {
        let unknown = self.unknown.iter().map(|((source, reason), count)| Point {
            labels: vec![("source", source.clone()), ("reason", reason.to_string())],
            value: Value::Count(*count),
        });
        let sources = |value: fn(&Health) -> u64| -> Vec<Point> {
            let point = |(source, health): (&String, &Health)| Point {
                labels: vec![("source", source.clone())],
                value: Value::Count(value(health)),
            };
            self.sources.iter().map(point).collect()
        };
        let dropped = self.dropped.iter().map(|((to, reason), count)| Point {
            labels: vec![("to", to.clone()), ("reason", reason.to_string())],
            value: Value::Count(*count),
        });
        [
            counter(
                "headroom_intervals_unknown",
                Unit::None,
                "intervals of files of which nothing is known, by reason; they are in no other figure",
                unknown.collect(),
            ),
            counter(
                "headroom_source_failures",
                Unit::None,
                "looks at a source that gave nothing",
                sources(|health| health.failures),
            ),
            Family {
                name: "headroom_source_up".into(),
                kind: FamilyKind::Gauge,
                unit: Unit::None,
                help: "1: the last look gave counters".into(),
                points: sources(|health| u64::from(health.up)),
            },
            counter(
                "headroom_pushes_dropped",
                Unit::None,
                "pushes to another server that it will never see",
                dropped.collect(),
            ),
        ]
    }
}

impl Family {
    /// The series of the family's points as Prometheus names them: name, label set, value.
    pub fn series(&self) -> impl Iterator<Item = (String, &Point, f64)> {
        self.points.iter().flat_map(move |point| {
            let parts = match point.value {
                Value::Count(count) if self.kind == FamilyKind::Gauge => [Some(("", count as f64)), None],
                Value::Count(count) => [Some(("_total", count as f64)), None],
                Value::Time { ns } => [Some(("_total", seconds(ns))), None],
                Value::Total(value) => [Some(("_total", value)), None],
                Value::Gauge(value) => [Some(("", value)), None],
                Value::Summary { ns, count } => [Some(("_sum", seconds(ns))), Some(("_count", count as f64))],
            };
            let named = move |(suffix, value)| (format!("{}{suffix}", self.name), point, value);
            parts.into_iter().flatten().map(named)
        })
    }
}

impl Summed {
    fn summary(&self) -> Value {
        Value::Summary { ns: self.time_ns, count: self.timed }
    }
}

pub(crate) fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}

/// The summed times of operations, and how many those are.
fn times_of(name: &str, help: String, points: Vec<Point>) -> Family {
    let name = format!("{name}_time_seconds");
    Family { name, kind: FamilyKind::Summary, unit: Unit::Seconds, help, points }
}

fn counter(name: &str, unit: Unit, help: &str, points: Vec<Point>) -> Family {
    Family { name: name.into(), kind: FamilyKind::Counter, unit, help: help.into(), points }
}

fn file_labels(class: &Class) -> Vec<(&'static str, String)> {
    vec![
        ("source", class.source.clone()),
        ("database", class.name.clone()),
        ("kind", class.kind.to_string()),
        ("drive", class.drive.clone()),
        ("layer", if class.below { "below the page cache" } else { "file" }.into()),
    ]
}

fn device_labels(class: &Class) -> Vec<(&'static str, String)> {
    vec![("source", class.source.clone()), ("device", class.name.clone())]
}
