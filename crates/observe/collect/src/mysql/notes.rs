//! Notes that a person must know to read a snapshot, with the statement that changes the cause.

use super::server::Server;
use super::statistics::{Counted, LOST, Schema, Statistics};
use crate::notes::Notes;

const SWITCH_ON: &str = "UPDATE performance_schema.setup_instruments SET ENABLED='YES', TIMED='YES' WHERE NAME LIKE \
     'wait/io/file/%'; and, to last over a restart, in my.cnf under [mysqld]: \
     performance-schema-instrument='wait/io/file/%=ON'";

const UNTIMED_LOG: &str = "this server counts the writes of its redo log and does not time them; their bytes are those of the \
     log's records, less than what is written. The source process: sees both";

pub(super) fn notes(statistics: &Statistics, server: &Server, user: &str) -> Notes {
    let mut notes = Notes::default();
    match &statistics.schema {
        Schema::Off => notes.add_lack(
            "performance_schema is off: there are no figures of single files, and nothing is timed. In my.cnf under \
             [mysqld]: performance_schema=ON, and restart the server",
        ),
        Schema::Denied => notes.add_lack(format!(
            "this user may not read the Performance Schema: there are no figures of single files, and nothing is \
             timed. GRANT SELECT ON performance_schema.* TO {user};"
        )),
        Schema::On(counted) => add_instrument_notes(counted, &mut notes),
    }
    for (counter, what, variable) in LOST {
        if let Some(lost) = statistics.lost(counter) {
            notes.add_lack(format!(
                "{lost} {what} are not counted, there was no room for them: raise {variable} in my.cnf under [mysqld]"
            ));
        }
    }
    if server.has_one_uninstrumented_log() && matches!(statistics.schema, Schema::On(_)) {
        notes.add_remark(UNTIMED_LOG);
    }
    notes
}

fn add_instrument_notes(counted: &Counted, notes: &mut Notes) {
    let switches = &counted.switches;
    if !switches.global {
        notes.add_lack(
            "the Performance Schema counts nothing now. UPDATE performance_schema.setup_consumers SET ENABLED='YES' \
             WHERE NAME='global_instrumentation';"
                ,
        );
        return;
    }
    let names = || switches.instruments.keys();
    let off = names().filter(|name| !switches.counts(name)).count();
    let untimed = names().filter(|name| switches.counts(name) && !switches.times(name)).count();
    let of = switches.instruments.len();
    if off > 0 {
        notes.add_lack(format!(
            "{off} of {of} file instruments are off: their files are not shown. {SWITCH_ON}"
        ));
    }
    if untimed > 0 {
        notes.add_lack(format!("{untimed} of {of} file instruments count without timing. {SWITCH_ON}"));
    }
    if counted.unseen_threads > 0 {
        notes.add_lack(
            "some threads are not instrumented, and their I/O is in no figure. UPDATE performance_schema.threads SET \
             INSTRUMENTED='YES'; and look into performance_schema.setup_actors for the next ones"
                ,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::statistics::Switches;
    use super::*;

    fn notes_of(counted: Counted) -> Vec<String> {
        let statistics = Statistics { schema: Schema::On(counted), ..Statistics::default() };
        notes(&statistics, &Server::default(), "'headroom'@'%'").texts
    }

    fn switches(global: bool, enabled: bool, timed: bool) -> Switches {
        Switches { global, instruments: [("wait/io/file/sql/binlog".to_owned(), (enabled, timed))].into() }
    }

    #[test]
    fn there_are_no_notes_where_everything_is_on() {
        let counted = Counted { switches: switches(true, true, true), ..Counted::default() };
        assert_eq!(notes_of(counted), Vec::<String>::new());
    }

    #[test]
    fn what_is_off_is_noted_with_the_statement_that_switches_it_on() {
        let off = Counted { switches: switches(true, false, true), ..Counted::default() };
        assert!(notes_of(off)[0].contains("UPDATE performance_schema.setup_instruments"));
        let untimed =
            Counted { switches: switches(true, true, false), unseen_threads: 2, ..Counted::default() };
        let notes = notes_of(untimed);
        assert!(notes[0].contains("without timing") && notes[1].contains("INSTRUMENTED='YES'"), "{notes:?}");
        let nothing = Counted { switches: switches(false, true, true), ..Counted::default() };
        assert!(notes_of(nothing)[0].contains("global_instrumentation"));
    }

    #[test]
    fn lost_instances_and_missing_privileges_are_noted() {
        let mut statistics = Statistics { schema: Schema::Denied, ..Statistics::default() };
        statistics.status.insert("performance_schema_file_instances_lost".into(), 12);
        let notes = notes(&statistics, &Server::default(), "'headroom'@'%'").texts;
        assert!(notes[0].ends_with("GRANT SELECT ON performance_schema.* TO 'headroom'@'%';"), "{notes:?}");
        assert!(notes[1].contains("12 files") && notes[1].contains("performance_schema_max_file_instances"));
    }
}
