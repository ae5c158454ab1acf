//! Which I/O comes next in one thread of a workload: where, how large, read or write ([`Chooser`]), and when it may
//! or must be asked for ([`Pace`]).
//!
//! Everything follows from the workload, its seed and the thread's number, so that a simulated workload asks exactly
//! what a real one would. This crate does no I/O and reads no clock: times are given to it.

mod chooser;
mod pace;
mod skew;

pub use chooser::{Choice, Chooser, used};
pub use pace::Pace;
