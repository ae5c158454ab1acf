//! `headroom lab` and `headroom log` as their users meet them: both binaries, run from outside, on real storage and engines.

mod arguments;
mod ended;
mod gentle;
mod lab;
mod layouts;
mod pagestore;
mod simulated;
mod usage;
