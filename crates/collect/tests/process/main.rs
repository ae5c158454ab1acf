//! Against fio: what it says that it did is what the process source counted, exactly.

mod block;
mod chosen;

use collect::process::{Process, Selection};
use collect::{Source, SourceError};
use filestats::{Ops, Sample, Snapshot};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
