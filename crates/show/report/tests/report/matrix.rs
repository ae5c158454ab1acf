//! Results of a matrix, as users and programs see them.

use matrix::{Axes, BlockBytes, Matrix, Planner, Progress, Row, RunKey, RunSchedule, Summary, Time};
use report::text::{self, Style};
use report::{csv, json};
use std::time::Duration;
use workload::RunResult;

/// Three points: one run six times, one twice, one skipped.
fn summary() -> Summary {
    let matrix = Matrix {
        name: "nightly".into(),
        targets: vec!["/data, \"new\"".into()],
        axes: Axes { block: vec![BlockBytes(8192)], outstanding: vec![1, 8, 64], ..Axes::default() },
        runs: RunSchedule { repeats: 6, prune_percent: Some(5.0), ..RunSchedule::default() },
        ..Matrix::default()
    };
    let points = matrix.points();
    let results = |point: usize, counts: &[u64]| -> Vec<(RunKey, i64, RunResult)> {
        let result = |(repeat, count): (usize, &u64)| {
            let key = RunKey { point, repeat: repeat as u32 };
            let workload = matrix.workload(&points[point], matrix.seed(key, &points[point]));
            let mut result = RunResult::empty(workload, "/data".into());
            result.elapsed_ns = 1_000_000_000;
            result.read.count = *count;
            result.read.bytes = count * 8192;
            result.read.latency.record_n(250_000, *count);
            (key, 1 + repeat as i64, result)
        };
        counts.iter().enumerate().map(result).collect()
    };
    let mut rows = vec![
        Row::from_results(&matrix, &points[0], &results(0, &[1000, 1010, 990, 1005, 995, 4000])),
        Row::from_results(&matrix, &points[1], &results(1, &[4000, 4100])),
        Row::from_results(&matrix, &points[2], &[]),
    ];
    rows[2].skipped = Some("beyond saturation: gained 1.0 %".into());
    Summary { id: 3, matrix, rows, left: None }
}

#[test]
fn the_table_has_a_row_for_each_point_with_its_interval() {
    let shown = text::matrix(&summary(), &Style { color: false, width: 100 });
    insta::assert_snapshot!("matrix_text", shown);
}

#[test]
fn the_csv_has_a_heading_and_quotes_what_needs_it() {
    let shown = csv::matrix(&summary());
    assert!(shown.starts_with(csv::MATRIX_HEADING));
    let columns = csv::MATRIX_HEADING.split(',').count();
    assert_eq!(
        shown.lines().nth(2).unwrap().replace("\"/data, \"\"new\"\"\"", "target").split(',').count(),
        columns
    );
    insta::assert_snapshot!("matrix_csv", shown);
}

#[test]
fn json_says_unknown_as_null() {
    let shown = json::matrix(&summary());
    assert_eq!(shown["points"][2]["iops"], serde_json::Value::Null);
    assert_eq!(shown["points"][0]["iops"]["interval"]["method"], "median-order");
    assert_eq!(shown["points"][1]["iops"]["interval"]["method"], "mean-t");
    assert_eq!(shown["points"][1]["runs"][1]["repeat"], 1);
}

#[test]
fn a_forecast_has_the_runs_and_their_time() {
    let mut matrix = summary().matrix;
    let told =
        |matrix: &Matrix| text::forecast(matrix, &Planner::new(matrix).forecast(&Progress::new(matrix), 0));
    assert!(told(&matrix).starts_with("18 runs of 11 s each, about 3.3"), "{}", told(&matrix));
    assert!(told(&matrix).contains("less than 5 % IOPS"));
    matrix.runs.budget = Some(Time(Duration::from_secs(60)));
    let told = told(&matrix);
    assert!(told.contains("2 runs spread over all axes, then 3 runs where curves bend"), "{told}");
    assert!(told.contains("no time for 13 runs"), "{told}");
}
