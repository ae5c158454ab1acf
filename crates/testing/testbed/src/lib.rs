//! Real block devices and database servers for tests, cleaned up whatever happens. A development dependency only. Needs
//! root; without it, tests are skipped with a message.
//!
//! ```no_run
//! let Some(mut disk) = testbed::LoopDisk::new(256 << 20) else { return };
//! let directory = disk.format_and_mount().to_path_buf();
//! disk.throttle(workload::CapKind::ReadIops, 800);
//! let trace = testbed::BlockTrace::start(disk.number()).expect("root");
//! // ... the tested program runs here ...
//! assert!(trace.stop().ios.iter().all(|io| !io.write));
//! ```
//!
//! ```text
//! TMPDIR/headroom-testbed-PID-N/
//!     alive      locked while the test lives; the next test cleans up after those that were killed
//!     disk.img   the file of the loop device
//!     mnt/       its mount point
//! ```
//!
//! Never: touches a loop device that it did not set up itself.

mod block_trace;
mod certificates;
mod cleaning;
mod loop_disk;
mod mariadb;
mod postgres_binaries;
mod postgres_server;

pub use block_trace::{BlockTrace, Issued, Traced};
pub use certificates::{Certificate, CertificateAuthority};
pub use loop_disk::LoopDisk;
pub use mariadb::MariadbServer;
pub use postgres_server::PostgresServer;
