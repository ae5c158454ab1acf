//! The library loaded as an SQLite extension into programs that were not built for it; another process reads the
//! counters.

use filestats::FileKind;
use published::{CountersFile, FileReading, published_in};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[test]
fn the_sqlite3_shell_publishes_what_it_does_while_it_runs() {
    let Some(mut shell) = Session::start(Command::new("sqlite3").arg("-batch")) else { return };
    let library = library();
    let database = shell.dir.path().join("shop.db");
    shell.send(&format!(".load {}", library.with_extension("").display()));
    shell.send(&format!(".open {}", database.display()));
    shell.send("PRAGMA journal_mode=WAL; CREATE TABLE a(x); INSERT INTO a VALUES (zeroblob(100000));");
    shell.send(".vfsname");
    let name = shell.answer("SELECT 'ready';", "ready");
    assert!(name.iter().any(|line| line.trim() == "headroom/unix"), "{name:?}");
    let files = shell.files();
    let log = files.iter().find(|file| file.kind == FileKind::Log).unwrap();
    assert_eq!(log.path, shell.dir.path().join("shop.db-wal").canonicalize().unwrap());
    let before = log.counters.write;
    assert!(before.bytes > 100_000, "{before:?}");

    // A commit of one page: a frame header and a page.
    shell.send("UPDATE a SET rowid = 7;");
    shell.answer("SELECT 'done';", "done");
    let files = shell.files();
    let after = files.iter().find(|file| file.kind == FileKind::Log).unwrap().counters.write;
    assert!(after.count > before.count && after.bytes >= before.bytes + 24 + 4096);
    shell.end();
}

#[test]
fn pythons_sqlite3_publishes_under_the_name_derived_from_the_file() {
    let script = "
db.execute('insert into a values (1)')
db.commit()
print('ready', flush=True)
sys.stdin.readline()
";
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("shop.db");
    let Some(mut session) = python(script, &database) else { return };
    session.answer("", "ready");
    let files = session.files();
    let data = files.iter().find(|file| file.kind == FileKind::Data).unwrap();
    assert_eq!(data.path, database.canonicalize().unwrap());
    let journal = files.iter().find(|file| file.kind == FileKind::Journal).unwrap();
    assert!(journal.counters.write.count > 0 && journal.counters.sync.known().unwrap().count > 0);
    session.end();
}

#[test]
fn a_child_of_a_fork_counts_for_itself() {
    let script = "
db.close()
child = os.fork()
if child == 0:
    db = sqlite3.connect(sys.argv[2])
    db.execute('insert into a values (1)')
    db.commit()
    print('child', os.getpid(), os.path.exists(os.environ['HEADROOM_COUNTERS_DIR'] + '/headroom-%d-0.counters' % os.getpid()), flush=True)
    db.close()
    sys.exit(0)
os.waitpid(child, 0)
print('ready', flush=True)
sys.stdin.readline()
";
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("shop.db");
    let Some(mut session) = python(script, &database) else { return };
    let lines = session.answer("", "ready");
    assert!(lines.iter().any(|line| line.starts_with("child") && line.ends_with("True")), "{lines:?}");
    let data = session.files().into_iter().find(|file| file.kind == FileKind::Data).unwrap();
    // "create table" into an empty database writes two pages; the child's page is in the child's counters.
    assert_eq!(data.counters.write.count, 2);
    session.end();
}

/// The beginning of each script: loads the library, and creates a table in the database of the second argument.
const LOADED: &str = "
import os, sqlite3, sys
db = sqlite3.connect(':memory:')
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
db = sqlite3.connect(sys.argv[2])
db.execute('create table a(x)')
";

/// Python that runs [`LOADED`] and then `script`; `None`, with a message, where no Python's SQLite loads extensions.
fn python(script: &str, database: &Path) -> Option<Session> {
    let has = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension";
    let loads =
        |python: &&str| Command::new(python).args(["-c", has]).output().is_ok_and(|out| out.status.success());
    let Some(python) = ["/usr/bin/python3", "python3"].into_iter().find(loads) else {
        println!("skipped: no python3 whose sqlite3 loads extensions");
        return None;
    };
    let mut command = Command::new(python);
    command.args(["-c", &[LOADED, script].concat()]).arg(library()).arg(database);
    Session::start(&mut command)
}

/// A running program with its own directory for counters.
struct Session {
    dir: tempfile::TempDir,
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Session {
    fn start(command: &mut Command) -> Option<Session> {
        let dir = tempfile::tempdir().unwrap();
        let command = command.env("HEADROOM_COUNTERS_DIR", dir.path());
        match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            Ok(mut child) => {
                let answers = BufReader::new(child.stdout.take().unwrap());
                Some(Session { dir, child, answers })
            }
            Err(error) => {
                println!("skipped: {command:?} cannot be run: {error}");
                None
            }
        }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{line}").unwrap();
    }

    /// Sends a line and reads the output up to the line `end`.
    fn answer(&mut self, line: &str, end: &str) -> Vec<String> {
        if !line.is_empty() {
            self.send(line);
        }
        let mut answers = Vec::new();
        for line in self.answers.by_ref().lines() {
            let line = line.unwrap();
            if line == end {
                return answers;
            }
            answers.push(line);
        }
        panic!("the program ended early: {answers:?}");
    }

    fn files(&self) -> Vec<FileReading> {
        let found = published_in(self.dir.path()).unwrap();
        let counters: Vec<&CountersFile> =
            found.live.iter().filter(|file| file.process.pid == self.child.id()).collect();
        assert_eq!(counters.len(), 1, "{found:?}");
        counters[0].files().unwrap()
    }

    /// Ends the program normally, and checks that its counters file is removed.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
        let left: Vec<_> = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name.to_str().unwrap().ends_with(".counters"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The library as cargo built it for the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let dirs = test.ancestors().skip(1).take(2);
    let found = dirs.map(|dir| dir.join("libheadroom_sqlite.so")).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("libheadroom_sqlite.so is not beside {}", test.display()))
}
