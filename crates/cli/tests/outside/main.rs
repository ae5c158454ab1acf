//! Headroom as its users meet it: the binary, run from outside, on real storage and a real database.

mod chart;
mod compare;
mod diskspd;
mod programs;
mod situations;
mod study_a;
mod truth;
