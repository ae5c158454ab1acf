//! Writes sample pages: `cargo run -p renderings --example lab_pages -- DIRECTORY`. `scripts/test.d/page` looks at them.

use experiments::{
    CommitResult, CommitStudy, Durability, IoFigures, RecoverResult, RecoverStudy, RecoveryIo, Strategy,
};
use filestats::Figure;
use renderings::html;
use std::path::PathBuf;

const VERSION: &str = "0.2.0";

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let commits = html::commits(&commits(), "headroom lab commit --rows 15000", VERSION);
    std::fs::write(directory.join("lab-commit.html"), commits)?;
    let recoveries = html::recoveries(&recoveries(), "headroom lab recover", VERSION);
    std::fs::write(directory.join("lab-recover.html"), recoveries)
}

fn commits() -> CommitStudy {
    let engines = [
        ("sqlite-wal", 210e-6),
        ("sqlite-delete", 640e-6),
        ("postgres", 260e-6),
        ("mariadb", 420e-6),
        ("lmdb", 230e-6),
    ];
    let result = |engine: &str, commit_s: f64, batch: u64| {
        let commits = 15_000_u64.div_ceil(batch);
        let seconds = commits as f64 * commit_s + 15_000.0 * 9e-6;
        let io = |writes: u64, bytes: u64| IoFigures {
            writes: Figure::Known(writes),
            write_bytes: Figure::Known(bytes),
            syncs: Figure::Known(writes),
            wait_ns: Figure::Known((commits as f64 * commit_s * 0.9e9) as u64),
        };
        CommitResult {
            engine: engine.into(),
            durability: Durability::Full,
            batch,
            rows: 15_000,
            commits,
            seconds,
            log: io(commits, commits * 4096 + 15_000 * 64),
            data: io(12, 12 * 65_536),
            waits_for_data: false,
        }
    };
    let results = engines
        .iter()
        .flat_map(|(engine, commit_s)| [1, 10, 100, 15_000].map(|batch| result(engine, *commit_s, batch)));
    CommitStudy {
        dir: "/data".into(),
        rows: 15_000,
        results: results.collect(),
        notes: vec!["mariadb ran with innodb_flush_log_at_trx_commit=1".into()],
    }
}

fn recoveries() -> RecoverStudy {
    let result = |engine: &str, strategy, first_read_s: f64, full_s: f64, n: f64| RecoverResult {
        engine: engine.into(),
        strategy,
        opened_s: first_read_s,
        first_read_s,
        first_write_s: first_read_s + 0.001,
        full_s,
        pages: Figure::Known(256_000),
        page_bytes: 4096,
        pages_left: Figure::Known(0),
        log_bytes: 1 << 30,
        commits: 4_000,
        checked: 4_000,
        io: RecoveryIo {
            reads: Figure::Known(1_000),
            read_bytes: Figure::Known(1 << 30),
            writes: Figure::Known(256_000),
            write_bytes: Figure::Known(1_048_576_000),
            syncs: Figure::Known(64),
            stall_ns: Figure::Known((n * full_s * 1e9) as u64),
            n_max: Figure::Known(64),
        },
        counted_by: "the store's files".into(),
    };
    RecoverStudy {
        dir: "/data".into(),
        emulated: None,
        pages: 256_000,
        data_pages: 512_000,
        log_bytes: 1 << 30,
        results: vec![
            result("pagestore", Strategy::Serial, 340.0, 341.0, 1.0),
            result("pagestore", Strategy::Wide, 8.2, 8.4, 58.0),
            result("pagestore", Strategy::Instant, 0.012, 8.0, 60.0),
            result("sqlite-wal", Strategy::Own, 2.4, 9.1, 1.6),
        ],
        left_out: Vec::new(),
        notes: Vec::new(),
    }
}
