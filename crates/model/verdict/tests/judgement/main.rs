//! The decision table from plain numbers: row by row, and by what the counters of a database mean.

mod builder;
mod caps;
mod declared;
mod gentle;
mod headroom;
mod meaning;
mod pressure;
mod processors;
mod read_ahead;
mod rows;
mod seen_before;
mod volumes;
