//! Throwaway PostgreSQL and MariaDB servers: finds the programs on this machine, initialises a server in a directory that the
//! caller made, starts it, and ends it with the thread that started it, however that ends.
//!
//! ```text
//! PostgresPrograms::find()                the programs, and the user they run as: servers refuse root
//! Postgres::initialise(home, data, ...)   the server's files in DATA, its log and its socket in HOME
//!   .launch() .end(signal)                starts it and waits until it answers; ends it
//! Mariadb*                                the same
//! ends_with_thread(command, signal)       for any program that an experiment starts
//! ```
//!
//! The experiments of `lab` and the tests (through `testbed`) use them.
//!
//! Never: touches another server or directory, listens beyond this machine, gives a server of root's a network unless its
//! settings name an address or a port, deletes anything: the directory is the
//! caller's.

mod child;
mod error;
mod mariadb;
mod postgres;
mod user;

pub use child::ends_with_thread;
pub use error::Error;
pub use mariadb::{Mariadb, MariadbPrograms};
pub use postgres::{Postgres, PostgresPrograms};
pub use user::User;
