//! Databases that run on this host, found without configuration: what each source's folder has in its `discover.rs`.
//!
//! ```text
//! Programs::read()  every process once: program, user, parent
//!   -> SourceKind::find(&programs)   postgres, mysql, sqlserver, sqlite, published; process: engines without a source of their own
//!   -> Instance   engine, process, name, files by role, and the sources to try, the best first
//! ```
//! Nothing here connects to a server or opens a source. A process's own data (its name, its arguments, its files) may be
//! written by any user: reads are bounded, and these data decide only which sources are tried.

mod instance;
mod places;
mod programs;

pub use instance::{Attempt, Engine, Instance, Role, RoleFile};
pub(crate) use places::{Finder, is_trusted};
pub(crate) use programs::option_value;
pub use programs::{Program, Programs, users_in_turn};
