//! Simulated storage against what is known of it: theory, the machine's rules, fits of measured curves.

mod fitting;
mod machine;
mod theory;
