//! `headroom watch --json` of several sources, a quarter of a second an interval, and sums over its lines.

use programs::Headroom;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;
use testbed::LoopDisk;

/// The server by its counters and its processes, with the device; and, for a while, what everybody's I/O becomes on that
/// device. Not longer: it is dear on a machine where much else goes on.
pub struct Watching {
    watches: Vec<Watch>,
}

struct Watch {
    headroom: Child,
    lines: NamedTempFile,
    sources: usize,
    ended: bool,
}

/// Number of intervals that each of them had reported so far.
#[derive(Clone)]
pub struct At(Vec<usize>);

impl Watching {
    pub fn begin(headroom: &Headroom, server: &str, pid: u32, disk: &LoopDisk) -> Watching {
        let name = disk.device().file_name().unwrap().to_str().unwrap();
        let sources = [server, &format!("process:{pid}"), &format!("devices:{name}")];
        Watching { watches: vec![Watch::begin(headroom, &sources, &[])] }
    }

    pub fn begin_with_everybody(&mut self, headroom: &Headroom, disk: &LoopDisk) {
        let name = disk.device().file_name().unwrap().to_str().unwrap();
        let shown = ["--file", disk.mount_point().to_str().unwrap(), "--file", name];
        self.watches.push(Watch::begin(headroom, &[EVERYBODY], &shown));
    }

    pub fn end_with_everybody(&mut self) {
        self.watches[1].end();
    }

    /// Waits until each source was looked at after now.
    pub fn wait_for_sample(&self) -> At {
        let had: Vec<usize> = self.watches.iter().map(Watch::intervals_printed).collect();
        let began = Instant::now();
        let did = |one: &Watch, had: usize| one.ended || one.intervals_printed() >= had + 2 * one.sources;
        let all_did = || self.watches.iter().zip(&had).all(|(one, had)| did(one, *had));
        while !all_did() {
            assert!(began.elapsed() < Duration::from_secs(60), "watch does not go on");
            std::thread::sleep(Duration::from_millis(20));
        }
        At(self.watches.iter().map(Watch::intervals_printed).collect())
    }

    /// The intervals from one sample to another.
    pub fn between(&self, from: &At, to: &At) -> Intervals {
        let parts = self.watches.iter().zip(from.0.iter().zip(&to.0));
        Intervals(parts.flat_map(|(one, (from, to))| one.intervals()[*from..*to].to_vec()).collect())
    }
}

impl Watch {
    fn begin(headroom: &Headroom, sources: &[&str], options: &[&str]) -> Watch {
        let lines = NamedTempFile::new().unwrap();
        let mut arguments = vec!["watch", "--json", "--every", "250ms"];
        sources.iter().for_each(|source| arguments.extend(["--source", source]));
        arguments.extend(options);
        let out = File::create(lines.path()).unwrap();
        let headroom = headroom.command(&arguments).stdout(out).stderr(Stdio::inherit()).spawn().unwrap();
        Watch { headroom, lines, sources: sources.len(), ended: false }
    }

    fn end(&mut self) {
        let _ = self.headroom.kill();
        let _ = self.headroom.wait();
        self.ended = true;
    }

    /// Number of intervals that have ended.
    fn intervals_printed(&self) -> usize {
        std::fs::read(self.lines.path()).unwrap().iter().filter(|byte| **byte == b'\n').count()
    }

    fn intervals(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.lines.path()).unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Intervals of several sources.
pub struct Intervals(pub Vec<Value>);

/// The I/O of all processes.
const EVERYBODY: &str = "process:";

impl Intervals {
    /// The rows of a list, in the lines of some sources.
    pub fn rows<'a>(
        &'a self,
        list: &'a str,
        of: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Value> {
        let lines = self.0.iter().filter(move |line| of(line["source"].as_str().unwrap()));
        lines.flat_map(move |line| line[list].as_array().unwrap())
    }

    /// Of a server by its own counters.
    pub fn of_server(&self) -> impl Iterator<Item = &Value> {
        self.rows("files", |source| source.starts_with("postgres") || source.starts_with("mysql"))
    }

    /// Written bytes of files, as the server counts them.
    pub fn by_server(&self, chosen: impl Fn(&str) -> bool) -> u64 {
        written(self.of_server().filter(|row| chosen(path(row))))
    }

    /// Written bytes of files, as the kernel saw any process request them.
    pub fn by_process_source(&self, chosen: impl Fn(&Value) -> bool) -> u64 {
        written(self.rows("files", |source| source == EVERYBODY).filter(|row| chosen(row)))
    }

    /// Written bytes of files, as the source that is limited to the server's processes saw them.
    pub fn asked_by_server(&self, chosen: impl Fn(&Value) -> bool) -> u64 {
        let limited = |source: &str| source.starts_with(EVERYBODY) && source != EVERYBODY;
        written(self.rows("files", limited).filter(|row| chosen(row)))
    }

    /// Bytes that the block layer wrote for files, or for a file system's own needs.
    pub fn at_block_layer(&self, chosen: impl Fn(&str) -> bool) -> u64 {
        let layer = self.rows("below", |source| source == EVERYBODY);
        written(layer.filter(|row| row["instance"] == "block layer" && chosen(path(row))))
    }

    /// Bytes that the device wrote.
    pub fn by_device(&self) -> u64 {
        written(self.rows("devices", |source| source.starts_with("devices:")))
    }

    /// Figures, or why there are none; none is negative, and none is zero for lack of a known value.
    pub fn is_sound(&self) {
        for row in ["files", "below", "devices"].iter().flat_map(|list| self.rows(list, |_| true)) {
            let figures = ["reads", "read_bytes", "writes", "write_bytes"];
            let told = figures.iter().filter(|figure| row[**figure].is_u64()).count();
            match row["unknown"].as_str() {
                Some(_) => assert_eq!(told, 0, "{row}"),
                None => assert_eq!(told, figures.len(), "{row}"),
            }
        }
    }
}

pub fn path(row: &Value) -> &str {
    row["path"].as_str().unwrap()
}

/// The written bytes that an interval, or its absence, adds to a sum.
fn written<'a>(rows: impl Iterator<Item = &'a Value>) -> u64 {
    rows.filter_map(|row| row["write_bytes"].as_u64()).sum()
}

/// Below a mount point: files, and the file system's own.
pub fn is_on(path: &str, mount: &Path) -> bool {
    path.starts_with(mount.to_str().unwrap())
}
