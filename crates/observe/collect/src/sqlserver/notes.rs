//! Notes that a person must know to read a snapshot, with the statement that changes the cause.

use super::server::Server;
use super::statistics::Statistics;
use crate::notes::Notes;

const MILLISECONDS: &str = "SQL Server times I/O in whole milliseconds: the mean of few operations that take less than one says little";
const PUSHED: &str = "reads since the files were opened were carried out by the storage (num_of_pushed_reads): what they \
    read is more than came back, and no figure here parts the two";

pub(super) fn notes(statistics: &Statistics, server: &Server) -> Notes {
    let mut notes = Notes::default();
    notes.add_remark(MILLISECONDS);
    let unnamed = statistics.files.iter().filter(|file| file.lacks_name()).count();
    if unnamed > 0 && !statistics.sees_names {
        notes.add_lack(format!(
            "this login does not see the names of {unnamed} files, nor what they are for: {}",
            server.grant_names()
        ));
    }
    if let Some(error) = &statistics.waits_error {
        notes.add_lack(format!("the server does not report its waits: {error}"));
    }
    let pushed: u64 = statistics.files.iter().map(|file| file.pushed_reads).fold(0, u64::saturating_add);
    if pushed > 0 {
        notes.add_remark(format!("{pushed} {PUSHED}"));
    }
    if statistics.is_cut {
        notes.add_lack("some files or waits are not shown: too many rows, or figures that are none");
    }
    notes
}
