//! The SQL Server source against a responder that speaks TDS, since no SQL Server is available here. The responder follows
//! [MS-TDS] and the documentation of the views; `freetds` compares it with another client.

mod encryption;
mod epochs;
mod freetds;
mod responder;
mod troubles;
mod versions;
mod wire;

use collect::sqlserver::SqlServer;
use collect::{Source, SourceError};
use filestats::{FileInterval, Interval, Reason, Rules, Sample, Snapshot, WaitInterval};
use responder::{File, PASSWORD, Responder, Version};

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// A responder with three databases, and some waits.
fn server(version: Version) -> Responder {
    let responder = Responder::start(version);
    let mut state = responder.state();
    let shop_id = if version == Version::AzureDatabase { 7 } else { 5 };
    let file = |database_id, file_id, database, kind, path: &str| File {
        database_id,
        file_id,
        database,
        created: "2026-01-02T03:04:05.000",
        guid: "",
        kind,
        path: path.into(),
        handle: (database_id * 16 + file_id) as u64,
        read: [0, 0, 0],
        write: [0, 0, 0],
        queued: [0, 0],
        size_bytes: 8192,
    };
    let data = file(shop_id, 1, "shop", 0, "D:\\data\\shop.mdf");
    state.files = vec![
        File {
            guid: "6F9619FF-8B86-D011-B42D-00C04FC964FF",
            read: [1_000, 8_192_000, 2_500],
            write: [400, 3_276_800, 800],
            queued: [300, 0],
            size_bytes: 5_000_000_000_000,
            ..data
        },
        File { write: [90, 368_640, 45], ..file(shop_id, 2, "shop", 1, "D:\\logs\\shop.ldf") },
        File { read: [10, 655_360, 7], ..file(2, 1, "tempdb", 0, "D:\\data\\tempdb.mdf") },
        file(2, 2, "tempdb", 1, "D:\\data\\templog.ldf"),
    ];
    state.waits = vec![
        ("LAZYWRITER_SLEEP", 80_000, 80_000_000, 0),
        ("PAGEIOLATCH_SH", 700, 2_600, 100),
        ("WRITELOG", 90, 60, 15),
        ("CXPACKET", 5, 5, 0),
    ];
    drop(state);
    responder
}

fn open(responder: &Responder) -> SqlServer {
    open_with(responder, "?encrypt=off").expect("a server that answers")
}

fn open_with(responder: &Responder, options: &str) -> Result<SqlServer, SourceError> {
    SqlServer::open_in(&responder.url(options), &variables)
}

fn variables(name: &str) -> Option<String> {
    (name == "SQLCMDPASSWORD").then(|| PASSWORD.to_owned())
}

fn take_snapshot(source: &mut SqlServer) -> Snapshot {
    source.snapshot().expect("a server that answers")
}

fn failure(source: &mut SqlServer) -> SourceError {
    let error = source.snapshot().expect_err("a server in trouble");
    let text = format!("{error} {error:?} {:?} {:?} {source:?}", error.facts(), error.remedy());
    assert!(!text.contains(PASSWORD), "{text}");
    error
}

fn sample<'a>(snapshot: &'a Snapshot, end: &str) -> &'a Sample {
    snapshot.samples.iter().find(|sample| sample.file.path.ends_with(end)).expect(end)
}

fn intervals(earlier: &Snapshot, later: &Snapshot) -> Vec<FileInterval> {
    filestats::intervals(earlier, later, Rules::default())
}

fn interval(earlier: &Snapshot, later: &Snapshot, end: &str) -> Interval {
    let all = intervals(earlier, later);
    all.into_iter().find(|row| row.file.path.ends_with(end)).expect(end).interval
}

fn wait(earlier: &Snapshot, later: &Snapshot, event: &str) -> WaitInterval {
    let all = filestats::wait_intervals(earlier, later, Rules::default());
    all.into_iter().find(|row| row.event == event).expect(event)
}

fn reason(interval: &Interval) -> Option<Reason> {
    match interval {
        Interval::Known(_) => None,
        Interval::Unknown(reason) => Some(*reason),
    }
}
