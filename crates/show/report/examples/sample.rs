//! Writes the sample pages: `cargo run -p report --example sample -- DIRECTORY`.

#[path = "../tests/report/analysis_sample.rs"]
mod analysis_sample;
#[path = "../tests/report/fleet_sample.rs"]
mod fleet_sample;
#[path = "../tests/report/other_pages.rs"]
mod other_pages;
#[path = "../tests/report/run_pages.rs"]
mod run_pages;
#[path = "../../charts/tests/charts/runs_sample.rs"]
mod runs_sample;
#[path = "../tests/report/sample.rs"]
mod sample;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let pages = [
        ("capability.html", report::html::capability(&sample::capability())),
        ("check.html", report::html::check(&sample::demand_exceeds())),
        ("check-healthy.html", report::html::check(&sample::healthy())),
        ("check-degraded.html", report::html::check(&sample::degraded())),
        ("check-throttled.html", report::html::check(&sample::throttled())),
        ("check-serialized.html", report::html::check(&sample::serialized())),
        ("check-burst.html", report::html::check(&sample::burst())),
        ("check-not-storage.html", report::html::check(&sample::not_storage())),
        ("check-nobody-waits.html", report::html::check(&sample::nobody_waits())),
        ("check-never-measured.html", report::html::check(&sample::never_measured())),
        ("check-three-volumes.html", report::html::check(&sample::three_volumes())),
        ("check-restarted.html", report::html::check(&sample::restarted())),
    ];
    let fleet = report::html::fleet(&fleet_sample::sample(), "headroom fleet", "0.2.0");
    let others = run_pages::pages().into_iter().chain(analysis_sample::pages()).chain(other_pages::pages());
    for (name, html) in pages.into_iter().chain(others).chain([("fleet.html", fleet)]) {
        std::fs::write(directory.join(name), html)?;
    }
    Ok(())
}
