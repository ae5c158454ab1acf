//! The formats from outside: what users and programs see of real-looking values, and of impossible ones.

mod analysis;
mod analysis_sample;
mod html;
mod json;
mod matrix;
mod never_panics;
mod run;
mod run_charts;
mod run_pages;
mod runs_sample;
mod sample;
mod text;
mod waits;
