//! diskspd's reports, made from results as a run gives them.

mod samples;
mod text;
