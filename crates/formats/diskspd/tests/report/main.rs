//! diskspd's reports, made from results as a run gives them.

mod any;
mod samples;
mod text;
mod tree;
mod xml;
