//! PostgreSQL and MariaDB servers of our own: found on this machine, initialised in a directory that the caller made,
//! started, and ended with the thread that started them, whatever becomes of it.
//!
//! ```text
//! Postgres::find() / Mariadb::find()      the programs, and whom they may run as: both refuse root
//!   ::initialise(home, data, ...)         the server's files in DATA, its log and the socket in HOME: nobody else may
//!                                         open it
//!   .launch() .end(signal)                a server that answers, and none
//! ends_with_thread(command, signal)       how they end with us: for any program that an experiment starts
//! ```
//!
//! The experiments of `lab` run on them, and so do the tests, by way of `testbed`.
//!
//! Never: touches a server or a directory that it was not given, listens on more than the machine itself, deletes
//! anything (the directory is its maker's).

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
