//! diskspd's world: its command line, its XML profile, and what both mean in our own words.
//!
//! ```text
//! arguments ──command_line::parse──┐
//!                                  v        checked::check
//! XML file ──profile_xml::read──> Profile ──(rules, unsupported)──> plan::to_plan ──> workload::Plan
//!                                  │                                                  + Extras (affinity,
//!                                  └──profile_xml::write──> XML file                    priority, hints)
//! ```
//!
//! A [`Profile`](profile::Profile) says what diskspd 2.2 would have been told, with its defaults and its
//! meanings: sequential threads overlap, each I/O throws its own coin between read and write, five seconds
//! of warm-up. What Linux has no counterpart for is an [`Unsupported`](unsupported::Unsupported): refused by name,
//! never dropped in silence. The crate reads no file and runs no load.

pub mod checked;
pub mod command_line;
pub mod plan;
pub mod profile;
pub mod profile_xml;
pub mod report;
pub mod rules;
pub mod unsupported;
pub mod usage;
