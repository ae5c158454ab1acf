//! The formats from outside, of realistic values and of impossible ones.

mod analysis;
mod analysis_sample;
mod fleet;
mod fleet_sample;
mod html;
mod json;
mod known;
mod matrix;
mod never_panics;
#[path = "../../../charts/tests/charts/odd_runs.rs"]
mod odd_runs;
mod other_pages;
mod run;
mod run_pages;
mod runs_html;
#[path = "../../../charts/tests/charts/runs_sample.rs"]
mod runs_sample;
mod sample;
mod text;
mod waits;
