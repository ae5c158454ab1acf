//! Real block devices for tests: a loop device on a sparse file, formatted, mounted and throttled at will,
//! and cleaned up whatever happens. A development dependency only; needs root, and says so elsewhere.
//!
//! ```no_run
//! let Some(mut disk) = testbed::LoopDisk::new(256 << 20) else { return };
//! let directory = disk.format_and_mount().to_path_buf();
//! disk.throttle(workload::CapKind::ReadIops, 800);
//! let trace = testbed::BlockTrace::start(disk.number()).expect("root");
//! // ... what is tested runs here ...
//! assert!(trace.stop().ios.iter().all(|io| !io.write));
//! ```
//!
//! ```text
//! TMPDIR/headroom-testbed-PID-N/
//!     alive      locked by the living test; the next test cleans up after those that were killed
//!     disk.img   what the loop device stands on
//!     mnt/       where it is mounted
//! ```
//!
//! Never: touches a loop device that it did not set up itself.

mod block_trace;
mod cleaning;
mod loop_disk;
mod mariadb;
mod postgres_binaries;
mod postgres_server;

pub use block_trace::{BlockTrace, Issued, Traced};
pub use loop_disk::LoopDisk;
pub use mariadb::MariadbServer;
pub use postgres_server::PostgresServer;
