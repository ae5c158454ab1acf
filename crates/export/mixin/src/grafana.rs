//! The JSON model of Grafana's dashboards: a grid of panels, and the variables that choose hosts.

use serde_json::{Value, json};

/// A dashboard.
#[derive(Clone, Debug)]
pub struct Dashboard {
    /// Its file's name, without the ending.
    pub name: &'static str,
    /// The JSON model.
    pub json: Value,
}

/// How values are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    Graph,
    Number,
    Table,
}

/// A panel.
pub struct Panel {
    title: &'static str,
    description: &'static str,
    unit: &'static str,
    view: View,
    /// Expressions and their legends.
    targets: Vec<(String, &'static str)>,
}

/// A variable: its name, and the metric whose label it is.
pub type Variable = (&'static str, &'static str);

/// The unit of a share.
pub const RATIO: &str = "percentunit";
/// A unit of the grid's 24 columns.
const WIDTH: usize = 24;
const GRAPH: (usize, usize) = (12, 8);
const NUMBER: (usize, usize) = (6, 4);
const TABLE: (usize, usize) = (24, 10);

/// A family's series of the chosen hosts; `further` conditions begin with a comma.
pub fn series(name: &str, further: &str) -> String {
    format!("{name}{{cluster=~\"$cluster\",job=~\"$job\",instance=~\"$instance\"{further}}}")
}

/// The growth of a counter a second.
pub fn rate(name: &str, further: &str) -> String {
    format!("rate({}[$__rate_interval])", series(name, further))
}

/// A panel of lines over time.
pub fn graph(
    title: &'static str,
    description: &'static str,
    unit: &'static str,
    targets: Vec<(String, &'static str)>,
) -> Panel {
    Panel { title, description, unit, view: View::Graph, targets }
}

/// A panel of one number.
pub fn number(
    title: &'static str,
    description: &'static str,
    unit: &'static str,
    expression: String,
) -> Panel {
    Panel { title, description, unit, view: View::Number, targets: vec![(expression, "")] }
}

/// A panel of a row for each series.
pub fn table(
    title: &'static str,
    description: &'static str,
    unit: &'static str,
    expression: String,
) -> Panel {
    Panel { title, description, unit, view: View::Table, targets: vec![(expression, "")] }
}

/// A dashboard of panels, with further variables: a label, and a family that has it.
pub fn dashboard(name: &'static str, title: &str, variables: &[Variable], panels: &[Panel]) -> Dashboard {
    let mut list = vec![json!({
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        "current": { "text": "default", "value": "default" }, "hide": 0, "refresh": 1,
    })];
    let hosts = [
        ("cluster", "headroom_build_info", ".*"),
        ("job", "headroom_build_info", ".+"),
        ("instance", "headroom_build_info{cluster=~\"$cluster\",job=~\"$job\"}", ".+"),
    ];
    list.extend(hosts.map(|(label, metric, all)| variable(label, metric, all)));
    list.extend(variables.iter().map(|(label, metric)| variable(label, &series(metric, ""), ".+")));
    let mut place = Placement::default();
    let panels: Vec<Value> =
        panels.iter().enumerate().map(|(at, panel)| panel.json(at + 1, &mut place)).collect();
    let json = json!({
        "uid": name, "title": title, "tags": ["headroom"], "editable": false, "schemaVersion": 39, "refresh": "30s",
        "time": { "from": "now-6h", "to": "now" }, "timezone": "browser",
        "templating": { "list": list }, "panels": panels,
    });
    Dashboard { name, json }
}

fn variable(label: &str, metric: &str, all: &str) -> Value {
    let query = format!("label_values({metric}, {label})");
    json!({
        "name": label, "label": label, "type": "query", "datasource": data_source(),
        "query": { "query": query, "refId": label }, "refresh": 2, "sort": 1,
        "includeAll": true, "multi": true, "allValue": all,
        "current": { "text": "All", "value": "$__all" },
    })
}

/// The data source that the variable chooses.
fn data_source() -> Value {
    json!({ "type": "prometheus", "uid": "$datasource" })
}

/// Where the next panel goes: from left to right, then below.
#[derive(Default)]
struct Placement {
    x: usize,
    y: usize,
    height: usize,
}

impl Placement {
    fn next(&mut self, (width, height): (usize, usize)) -> Value {
        if self.x + width > WIDTH {
            (self.x, self.y, self.height) = (0, self.y + self.height, 0);
        }
        let place = json!({ "x": self.x, "y": self.y, "w": width, "h": height });
        self.x += width;
        self.height = self.height.max(height);
        place
    }
}

impl Panel {
    fn json(&self, id: usize, place: &mut Placement) -> Value {
        let (kind, size) = match self.view {
            View::Graph => ("timeseries", GRAPH),
            View::Number => ("stat", NUMBER),
            View::Table => ("table", TABLE),
        };
        let is_instant = self.view != View::Graph;
        let targets = self.targets.iter().enumerate().map(|(at, (expression, legend))| {
            json!({
                "refId": char::from(b'A' + at as u8).to_string(), "datasource": data_source(),
                "expr": expression, "legendFormat": legend, "instant": is_instant, "range": !is_instant,
                "format": if self.view == View::Table { "table" } else { "time_series" },
            })
        });
        json!({
            "id": id, "type": kind, "title": self.title, "description": self.description,
            "datasource": data_source(), "gridPos": place.next(size),
            "fieldConfig": { "defaults": { "unit": self.unit }, "overrides": [] },
            "targets": targets.collect::<Vec<_>>(),
        })
    }
}
