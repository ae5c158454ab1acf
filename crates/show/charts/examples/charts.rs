//! Writes every chart of runs as a file in both themes: `cargo run -p charts --example charts -- DIRECTORY`.

#[path = "../tests/charts/runs_sample.rs"]
#[allow(dead_code)]
mod runs_sample;

use charts::{NamedRun, RunChart, Theme, png_file, svg_file};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let (oltp, open, matrix) = ([runs_sample::oltp()], [runs_sample::open_loop()], runs_sample::matrix());
    let sweep = runs_sample::sweep(&[4096, 8192, 65_536], 1.0);
    let charts = [
        ("load-curve", RunChart::LoadCurve, NamedRun::all(&sweep)),
        ("load-curve-one", RunChart::LoadCurve, NamedRun::all(&sweep[..9])),
        ("heat-map", RunChart::HEAT_MAP, NamedRun::all(&matrix)),
        ("heat-map-p99", "heat-map:outstanding,block-size,p99".parse()?, NamedRun::all(&matrix)),
        ("percentiles", RunChart::Percentiles, NamedRun::all(&oltp)),
        ("percentiles-open", RunChart::Percentiles, NamedRun::all(&open)),
        ("over-time", RunChart::OverTime, NamedRun::all(&oltp)),
        ("latency-over-time", RunChart::LatencyOverTime, NamedRun::all(&oltp)),
        ("histogram", RunChart::Histogram, NamedRun::all(&oltp)),
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
