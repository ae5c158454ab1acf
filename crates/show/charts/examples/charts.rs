//! Writes every chart of runs as a file in both themes, and the pages of runs:
//! `cargo run -p report --example charts -- DIRECTORY`.

#[path = "../tests/report/run_pages.rs"]
mod run_pages;
#[path = "../tests/report/runs_sample.rs"]
mod runs_sample;

use report::chart::{RunChart, Shown, Theme, png_file, svg_file};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    for (name, html) in run_pages::pages() {
        std::fs::write(directory.join(name), html)?;
    }
    let (oltp, open, matrix) = ([runs_sample::oltp()], [runs_sample::open_loop()], runs_sample::matrix());
    let sweep = runs_sample::sweep(&[4096, 8192, 65_536], 1.0);
    let charts = [
        ("load-curve", RunChart::LoadCurve, Shown::all(&sweep)),
        ("load-curve-one", RunChart::LoadCurve, Shown::all(&sweep[..9])),
        ("heat-map", RunChart::HEAT_MAP, Shown::all(&matrix)),
        ("heat-map-p99", "heat-map:outstanding,block-size,p99".parse()?, Shown::all(&matrix)),
        ("percentiles", RunChart::Percentiles, Shown::all(&oltp)),
        ("percentiles-open", RunChart::Percentiles, Shown::all(&open)),
        ("over-time", RunChart::OverTime, Shown::all(&oltp)),
        ("latency-over-time", RunChart::LatencyOverTime, Shown::all(&oltp)),
        ("histogram", RunChart::Histogram, Shown::all(&oltp)),
    ];
    for (name, kind, runs) in charts {
        let chart = kind.draw(&runs);
        for (theme, suffix) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
            std::fs::write(directory.join(format!("{name}-{suffix}.svg")), svg_file(&chart, theme))?;
            std::fs::write(directory.join(format!("{name}-{suffix}.png")), png_file(&chart, theme)?)?;
        }
    }
    Ok(())
}
