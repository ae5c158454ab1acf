//! The agent beside database servers that are killed, frozen and emptied at random, with sources that answer garbage and a wall
//! clock that is set back, on a history whose disk fills up, fails and is overwritten. It is killed itself. No incident may
//! be wrong, none that was reported as closed may be lost, and nothing may grow without bound.
//!
//! For HEADROOM_SOAK_SECONDS, 8 by default beside one real incident; `HEADROOM_SOAK_SECONDS=600 cargo test -p headroom
//! --test outside agent::soak` is the long one, with 10,000 tables and a second agent that is never killed.
//! HEADROOM_SOAK_SEED draws the same disturbances again.

mod claims;
mod stage;
mod usage;

use super::CAP;
use crate::dice::{Dice, number};
use stage::Stage;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use workload::CapKind;

/// From here on it is the long one.
const LONG_SECONDS: u64 = 120;
const TABLES: u64 = 10_000;
/// A line for each attempt is too many; one for each reason is not.
const LINES_MAX: usize = 2_000;
const BLOCK: usize = 4_096;

/// A fault of the agent or of its databases.
#[derive(Clone, Copy, Debug)]
enum Fault {
    KillAgent,
    KillPostgres,
    KillMariadb,
    FreezePostgres,
    FreezeMariadb,
    DropDatabases,
    ClockBack,
    FullDisk,
    ReadOnlyDisk,
    Corruption,
    Trouble,
}

const FAULTS: [Fault; 11] = [
    Fault::KillAgent,
    Fault::KillPostgres,
    Fault::KillMariadb,
    Fault::FreezePostgres,
    Fault::FreezeMariadb,
    Fault::DropDatabases,
    Fault::ClockBack,
    Fault::FullDisk,
    Fault::ReadOnlyDisk,
    Fault::Corruption,
    Fault::Trouble,
];

#[test]
fn no_incident_is_wrong_or_lost_whatever_fails_around_the_agent() {
    let seconds = number("HEADROOM_SOAK_SECONDS").unwrap_or(8);
    let mut dice = Dice::from_environment();
    let set_up = Instant::now();
    let Some(mut stage) = Stage::set_up(&mut dice) else { return };
    if seconds >= LONG_SECONDS {
        stage.make_tables(TABLES);
        stage.start_steady();
    }
    println!("servers after {:.0?}", set_up.elapsed());
    stage.start_agent();
    stage.wait_until_up();
    // Without an incident nothing could be lost.
    if !stage.trouble(&mut dice) {
        return;
    }
    println!("set up after {:.0?}", set_up.elapsed());
    let began = Instant::now();
    let (mut deck, mut done) = (Vec::new(), 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        let fault = draw(&mut deck, &mut dice);
        println!("{:.0?}: {fault:?}", began.elapsed());
        stage.load();
        stage.suffer(fault, &mut dice);
        stage.load();
        stage.sample_usage();
        done += 1;
    }
    stage.wait_until_up();
    let lines = stage.log().lock().unwrap().len();
    assert!(lines < LINES_MAX, "{lines} lines in the log");
    stage.end_agent("-TERM");
    stage.claims.check(&stage.headroom);
    println!("{done} disturbances, {} incidents closed", stage.claims.closed_in_all);
    assert!(stage.claims.closed_in_all > 0);
    stage.check_steady();
}

/// Each of them comes before one comes again.
fn draw(deck: &mut Vec<Fault>, dice: &mut Dice) -> Fault {
    if deck.is_empty() {
        deck.extend(FAULTS);
    }
    deck.swap_remove(dice.up_to(deck.len() as u64) as usize - 1)
}

impl Stage {
    fn suffer(&mut self, fault: Fault, dice: &mut Dice) {
        match fault {
            Fault::KillAgent => self.agent_ends("-KILL"),
            Fault::KillPostgres => {
                self.postgres.kill();
                dice.sleep_ms(3_000);
                self.postgres.launch();
            }
            Fault::KillMariadb => {
                self.mariadb.kill();
                dice.sleep_ms(3_000);
                self.mariadb.launch();
            }
            Fault::FreezePostgres => {
                self.postgres.pause();
                dice.sleep_ms(8_000);
                self.postgres.resume();
            }
            Fault::FreezeMariadb => {
                self.mariadb.freeze();
                dice.sleep_ms(8_000);
                self.mariadb.thaw();
            }
            Fault::DropDatabases => {
                self.drop_databases();
                dice.sleep_ms(4_000);
                self.make_databases();
            }
            Fault::ClockBack => self.clock_is_set_back(dice),
            Fault::FullDisk => self.history_disk_is_full(dice),
            Fault::ReadOnlyDisk => self.history_disk_fails(dice),
            Fault::Corruption => self.history_is_overwritten(dice),
            Fault::Trouble => _ = self.trouble(dice),
        }
    }

    fn agent_ends(&mut self, signal: &str) {
        self.end_agent(signal);
        self.claims.check(&self.headroom);
        self.start_agent();
    }

    /// The disk of the databases is limited: an incident, which is closed when the limit is lifted. `false` without such limits.
    fn trouble(&mut self, dice: &mut Dice) -> bool {
        self.wait_until_up();
        let load = self.readers();
        self.agent().wait_for_verdict(40, &["healthy"]);
        let (from, mut mark) = (Instant::now(), self.mark());
        if !self.disk.throttle(CapKind::ReadIops, CAP) {
            return false;
        }
        self.wait_for_line(mark, " opened: ");
        let mut filler = None;
        let turn = dice.up_to(3);
        if turn == 1 {
            // Until the next agent has read the log of the first, the load justifies it.
            self.claims.justified.push((from, Instant::now()));
            self.agent_ends("-KILL");
            self.wait_until_up();
            self.agent().wait_for_verdict(40, &["throttled", "saturated"]);
            mark = 0;
        } else if turn == 2 {
            // It is closed while nothing can be kept.
            filler = Some(self.fill_history_disk());
        }
        self.disk.unthrottle();
        self.wait_for_line(mark, " closed: ");
        drop(load);
        if filler.take().is_some() && self.has_line(mark, "nothing is added to the history") {
            self.wait_for_line(mark, "the history can be written again");
        }
        self.claims.justified.push((from, Instant::now()));
        true
    }

    fn clock_is_set_back(&mut self, dice: &mut Dice) {
        let Some(clock) = &self.clock else { return };
        clock.set(-3_600);
        dice.sleep_ms(5_000);
        clock.set(0);
    }

    /// A server that is killed changes a verdict, which is to be kept.
    fn nothing_can_be_kept(&mut self) {
        let mark = self.mark();
        self.postgres.kill();
        self.wait_for_line(mark, "nothing is added to the history");
        self.postgres.launch();
        assert!(self.agent().metrics().contains("headroom_source_up"), "it goes on");
    }

    fn history_disk_is_full(&mut self, dice: &mut Dice) {
        // A new WAL has no blocks yet that could be written again.
        self.agent_ends("-TERM");
        self.wait_until_up();
        let filler = self.fill_history_disk();
        self.nothing_can_be_kept();
        if dice.up_to(3) == 1 {
            self.end_agent("-KILL");
            self.claims.forget_unnumbered();
            drop(filler);
            self.claims.check(&self.headroom);
            self.start_agent();
        } else {
            let mark = self.mark();
            drop(filler);
            self.wait_for_line(mark, "the history can be written again");
        }
    }

    fn history_disk_fails(&mut self, dice: &mut Dice) {
        self.wait_until_up();
        if !self.history_disk.fail_read_only() {
            return;
        }
        self.nothing_can_be_kept();
        self.end_agent(if dice.up_to(2) == 1 { "-KILL" } else { "-TERM" });
        self.claims.forget_unnumbered();
        // Where the kernel lets files be opened to write, and only then fails, the agent goes on without them, and says so.
        let started = self.command(&self.headroom).args(["--duration", "6s"]).output().unwrap();
        let said = String::from_utf8_lossy(&started.stderr);
        let (refused, line) = (started.status.code() == Some(3), "nothing is added to the history");
        assert!(refused && said.contains("error: ") || said.contains(line), "{started:?}");
        self.history_disk.repair();
        self.claims.check(&self.headroom);
        self.start_agent();
    }

    /// Whole blocks of the file have other content when the agent starts.
    fn history_is_overwritten(&mut self, dice: &mut Dice) {
        self.end_agent(if dice.up_to(2) == 1 { "-KILL" } else { "-TERM" });
        // Its command moves what is in the WAL to the file.
        self.claims.check(&self.headroom);
        let path = self.headroom.history();
        let mut content = fs::read(&path).unwrap();
        // Without the first one, which says whose file it is.
        let blocks = (content.len() / BLOCK - 1) as u64;
        for _ in 0..dice.up_to(4) {
            let at = dice.up_to(blocks) as usize * BLOCK;
            content[at..at + BLOCK].iter_mut().for_each(|byte| *byte = dice.up_to(256) as u8);
        }
        fs::write(&path, &content).unwrap();
        let aside_before = self.moved_aside();
        self.start_agent();
        let aside: Vec<PathBuf> =
            self.moved_aside().into_iter().filter(|path| !aside_before.contains(path)).collect();
        let Some(aside) = aside.first() else {
            println!("what was overwritten was in use nowhere");
            self.end_agent("-TERM");
            self.claims.check(&self.headroom);
            return self.start_agent();
        };
        self.wait_for_line(0, &format!("it was moved to {}", aside.display()));
        assert_eq!(fs::read(aside).unwrap(), content, "what can be saved of it stays");
        println!("moved aside: {}", aside.display());
        fs::remove_file(aside).unwrap();
        self.end_agent("-TERM");
        self.claims.begin_again();
        self.restore_history();
        self.start_agent();
    }

    fn moved_aside(&self) -> Vec<PathBuf> {
        let path = self.headroom.history();
        let entries = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_string_lossy().contains(".damaged-")).collect()
    }
}
