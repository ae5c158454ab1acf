//! diskspd: its command line, its XML profile, its reports, and their conversion to Headroom's types.
//!
//! ```text
//! arguments ──command_line::parse──┐
//!                                  v        checked::check
//! XML file ──profile_xml::read──> Profile ──(rules, unsupported)──> plan::to_plan ──> workload::Plan
//!                                  │                                                  + Extras (affinity,
//!                                  └──profile_xml::write──> XML file                    priority, hints)
//! ```
//!
//! A [`Profile`](profile::Profile) has the settings of diskspd 2.2 with its defaults and semantics: sequential threads
//! overlap, each I/O chooses read or write at random, five seconds of warm-up. A setting without a counterpart on Linux is
//! listed by [`unsupported`]: refused by name, never ignored silently. The crate reads no file and runs no load.

pub mod checked;
pub mod command_line;
pub mod plan;
pub mod profile;
pub mod profile_xml;
pub mod report;
pub mod rules;
pub mod unsupported;
pub mod usage;
pub mod windows_path;
mod xml;
