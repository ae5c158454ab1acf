//! Files of others: samples of each format, what fio itself prints, and anything at all.

mod against_fio;
mod as_published;
mod counters;
mod counters_never_panic;
mod never_panics;
mod samples;
