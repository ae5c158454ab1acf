//! `headroom agent --record-only` beside two database servers that are killed, restarted and frozen at random, and is killed
//! itself: what was kept is recomputed here from the raw counters, and held against what was really done when.
//!
//! For HEADROOM_SOAK_SECONDS, 12 by default; `HEADROOM_SOAK_SECONDS=600 cargo test -p headroom --test outside soak`
//! is the long one. HEADROOM_SOAK_SEED draws the same disturbances again.

use crate::dice::{Dice, number};
use filestats::{
    Counters, Figure, FileIdentity, FileInterval, FileKind, Interval, Ops, Reason, Rules, Sample, Snapshot,
    intervals,
};
use history::{CaptureFilter, CaptureId, History};
use programs::Headroom;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};
use testbed::{MariadbServer, PostgresServer};

const SECOND_NS: u64 = 1_000_000_000;
/// A round of the load writes at least so much into the server's log.
const LOAD_BYTES: u64 = 400_000;
/// PostgreSQL's sessions pass on their counters at their end at the latest, and then they are seen.
const LOAD_SEEN_AFTER_NS: u64 = SECOND_NS / 2;

#[test]
fn no_interval_is_wrong_however_servers_and_recorder_die() {
    let seconds = number("HEADROOM_SOAK_SECONDS").unwrap_or(12);
    println!("{seconds} s");
    let mut dice = Dice::from_environment();
    let Some(mut postgres) = PostgresServer::start(15) else { return };
    let Some(mut mariadb) = MariadbServer::start(None, &["performance_schema=ON"]) else { return };
    postgres.sql("CREATE TABLE load (id int, filler text)");
    mariadb.sql("CREATE DATABASE shop; CREATE TABLE shop.load_ (id int, filler text) ENGINE=InnoDB");

    let ours = Headroom::new();
    let sources = [
        format!("postgres:{}", postgres.connection()),
        format!("mysql:{}", &mariadb.url()["mysql:".len()..]),
    ];
    let record = || Recorder::start(&ours, &sources);
    let mut recorder = record();
    let mut done = Done::default();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..dice.up_to(4) {
            done.load("postgres", || {
                postgres.sql("INSERT INTO load SELECT n, repeat('x', 200) FROM generate_series(1, 2000) n");
            });
            done.load("mysql", || {
                mariadb.sql("INSERT INTO shop.load_ SELECT seq, repeat('x', 200) FROM seq_1_to_2000");
            });
            dice.sleep_ms(1_500);
        }
        match dice.up_to(8) {
            1 => done.run_ends("postgres", || {
                postgres.kill();
                dice.sleep_ms(2_000);
                postgres.launch();
            }),
            2 => done.run_ends("postgres", || postgres.crash()),
            3 => done.run_ends("postgres", || postgres.restart()),
            4 => done.run_ends("mysql", || {
                mariadb.kill();
                dice.sleep_ms(2_000);
                mariadb.launch();
            }),
            5 => done.run_ends("mysql", || mariadb.restart()),
            6 => done.hangs("postgres", || {
                postgres.pause();
                dice.sleep_ms(3_000);
                postgres.resume();
            }),
            7 => done.hangs("mysql", || {
                mariadb.freeze();
                dice.sleep_ms(3_000);
                mariadb.thaw();
            }),
            _ => {
                recorder.end("-KILL");
                recorder = record();
            }
        }
    }
    std::thread::sleep(Duration::from_secs(2));
    recorder.end("-TERM");

    let history = History::open(&ours.history()).unwrap();
    let mut captures = history.captures(&CaptureFilter::default()).unwrap();
    captures.reverse();
    let mut found = CheckTotals::default();
    for server in ["postgres", "mysql"] {
        let ids: Vec<CaptureId> =
            captures.iter().filter(|one| one.source.starts_with(server)).map(|one| one.id).collect();
        assert!(ids.len() as u64 > seconds / 4, "{server}: {} captures in {seconds} s", ids.len());
        let kept: Vec<Snapshot> = ids.iter().map(|id| history.snapshot(*id).unwrap()).collect();
        for (at, pair) in kept.windows(2).enumerate() {
            found.check(&pair[0], &pair[1], &intervals(&pair[0], &pair[1], Rules::default()), &done, server);
            if at % 16 == 0 {
                as_the_command_says(&ours, ids[at], ids[at + 1], &pair[0], &pair[1]);
            }
        }
        // Over any stretch too, not only from one to the next.
        for (earlier, later) in (0..kept.len()).filter_map(|at| Some((&kept[at], kept.get(at * 2 + 3)?))) {
            found.check(earlier, later, &intervals(earlier, later, Rules::default()), &done, server);
        }
    }
    for gap in history.gaps().unwrap() {
        assert!(done.explains(&gap.source, gap.from_unix_ns), "a gap without cause: {gap:?}");
    }
    println!("{found:?}, {} disturbances, {} loads", done.ends.len() + done.hangs.len(), done.loads.len());
    assert!(found.known > 100 && found.loads > 0, "{found:?}");
    assert!(done.ends.is_empty() || found.ended > 0, "{found:?}");
}

/// The totals of the checks of intervals.
#[derive(Debug, Default)]
struct CheckTotals {
    /// Rows that are known, recomputed.
    known: u64,
    /// Intervals in which the server's run ended, and nothing is claimed.
    ended: u64,
    /// Intervals around a known load, which show at least that.
    loads: u64,
}

impl CheckTotals {
    fn check(
        &mut self,
        earlier: &Snapshot,
        later: &Snapshot,
        rows: &[FileInterval],
        done: &Done,
        server: &str,
    ) {
        let (from, to) = (earlier.taken_unix_ns, later.taken_unix_ns);
        let raw = |snapshot: &Snapshot| -> BTreeMap<Who, Sample> {
            snapshot.samples.iter().map(|sample| (who(&sample.file), sample.clone())).collect()
        };
        let (before, after) = (raw(earlier), raw(later));
        assert_eq!(
            rows.len(),
            before.keys().chain(after.keys()).collect::<BTreeSet<_>>().len(),
            "a row a file"
        );
        for row in rows {
            let (then, now) = (before.get(&who(&row.file)), after.get(&who(&row.file)));
            match (&row.interval, now) {
                (Interval::Known(delta), Some(now)) => {
                    // A file that was not there before began at zero: nothing to subtract.
                    let then = then.map_or(Counters::ZERO, |then| then.counters);
                    same(delta.counters.read, then.read, now.counters.read);
                    same(delta.counters.write, then.write, now.counters.write);
                    if let (Figure::Known(sync), Figure::Known(then), Figure::Known(now)) =
                        (delta.counters.sync, then.sync, now.counters.sync)
                    {
                        same(sync, then, now);
                    }
                    self.known += 1;
                }
                (Interval::Known(_), None) => panic!("known and gone: {row:?}"),
                (Interval::Unknown(reason), _) if done.undisturbed(server, from, to) => {
                    let fine = [Reason::FirstSight, Reason::Gone, Reason::Reopened, Reason::IdentityChanged];
                    assert!(
                        fine.contains(reason) || from == to,
                        "nothing happened, and yet: {reason:?}: {row:?}"
                    );
                }
                (Interval::Unknown(_), _) => {}
            }
        }
        if done.surely_ended(server, from, to) {
            let claimed: Vec<_> = rows.iter().filter(|row| row.interval.known().is_some()).collect();
            assert!(claimed.is_empty(), "{server} ended in between, and yet: {claimed:#?}");
            self.ended += 1;
        } else if done.undisturbed(server, from, to) {
            let loads = done.loads_within(server, from, to);
            let logs = rows
                .iter()
                .filter(|row| row.file.kind == FileKind::Log)
                .filter_map(|row| row.interval.known());
            let written: u64 = logs.map(|delta| delta.counters.write.bytes).sum();
            assert!(
                written >= loads * LOAD_BYTES,
                "{server}: {loads} loads, {written} bytes of the log: {rows:#?}"
            );
            self.loads += loads;
        }
    }
}

/// A file as the identity of rows has it.
type Who = (String, String);

fn who(file: &FileIdentity) -> Who {
    (file.instance.clone(), file.path.clone())
}

/// Checks a difference by plain subtraction of counters.
#[track_caller]
fn same(delta: Ops, then: Ops, now: Ops) {
    assert!(now.count >= then.count && now.bytes >= then.bytes, "{then:?} {now:?}");
    assert_eq!((delta.count, delta.bytes), (now.count - then.count, now.bytes - then.bytes));
    if let (Figure::Known(stall_ns), Figure::Known(then), Figure::Known(now)) =
        (delta.stall_ns, then.stall_ns, now.stall_ns)
    {
        assert_eq!(stall_ns, now.checked_sub(then).expect("time does not run backwards"));
    }
}

/// `headroom history intervals` prints the same.
fn as_the_command_says(
    ours: &Headroom,
    from: CaptureId,
    to: CaptureId,
    earlier: &Snapshot,
    later: &Snapshot,
) {
    let answer = ours.json(&["history", "intervals", &from.0.to_string(), &to.0.to_string()]);
    let rows = answer["intervals"].as_array().unwrap();
    let expected = intervals(earlier, later, Rules::default());
    assert_eq!(rows.len(), expected.len(), "{answer:#}");
    for (row, expected) in rows.iter().zip(&expected) {
        let expected = serde_json::to_value(&expected.interval).unwrap();
        assert_eq!(row["interval"], expected, "{row:#}");
    }
}

/// Events that the test caused at the servers, with their times.
#[derive(Default)]
struct Done {
    ends: Vec<Stretch>,
    hangs: Vec<Stretch>,
    loads: Vec<Stretch>,
}

struct Stretch {
    server: &'static str,
    from_unix_ns: u64,
    to_unix_ns: u64,
}

impl Done {
    fn load(&mut self, server: &'static str, work: impl FnOnce()) {
        self.loads.push(Stretch::while_running(server, work));
    }

    fn run_ends(&mut self, server: &'static str, work: impl FnOnce()) {
        self.ends.push(Stretch::while_running(server, work));
    }

    fn hangs(&mut self, server: &'static str, work: impl FnOnce()) {
        self.hangs.push(Stretch::while_running(server, work));
    }

    /// A run of the server ended between the two, and neither was taken while that was under way.
    fn surely_ended(&self, server: &str, from: u64, to: u64) -> bool {
        let during = |at: u64| self.ends.iter().any(|end| end.server == server && end.holds(at));
        let between = |end: &&Stretch| end.server == server && end.from_unix_ns > from && end.to_unix_ns < to;
        !during(from) && !during(to) && self.ends.iter().any(|end| between(&end))
    }

    /// Nothing but load between the two.
    fn undisturbed(&self, server: &str, from: u64, to: u64) -> bool {
        let apart = |one: &Stretch| one.to_unix_ns < from || one.from_unix_ns > to;
        self.ends.iter().chain(&self.hangs).filter(|one| one.server == server).all(apart)
    }

    fn loads_within(&self, server: &str, from: u64, to: u64) -> u64 {
        let within = |load: &&Stretch| load.from_unix_ns > from && load.to_unix_ns + LOAD_SEEN_AFTER_NS < to;
        self.loads.iter().filter(|load| load.server == server).filter(within).count() as u64
    }

    /// The source failed because of something that was done; a try may take until it is given up.
    fn explains(&self, source: &str, at: u64) -> bool {
        let near = |one: &Stretch| one.from_unix_ns < at + SECOND_NS && at < one.to_unix_ns + 8 * SECOND_NS;
        self.ends.iter().chain(&self.hangs).any(|one| source.starts_with(one.server) && near(one))
    }
}

impl Stretch {
    fn while_running(server: &'static str, work: impl FnOnce()) -> Stretch {
        let from_unix_ns = unix_ns();
        work();
        Stretch { server, from_unix_ns, to_unix_ns: unix_ns() }
    }

    fn holds(&self, at: u64) -> bool {
        (self.from_unix_ns..=self.to_unix_ns).contains(&at)
    }
}

/// `headroom agent --record-only`, ended with the test.
struct Recorder(Child);

impl Recorder {
    fn start(ours: &Headroom, sources: &[String; 2]) -> Recorder {
        let [one, other] = sources;
        let mut command =
            ours.command(&["agent", "--record-only", "--every", "1s", "--source", one, "--source", other]);
        Recorder(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn end(&mut self, signal: &str) {
        let pid = self.0.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
        self.0.wait().unwrap();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}
