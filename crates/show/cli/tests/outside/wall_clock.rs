//! A wall clock that is set, for one program and not for the machine: a library that it loads before all others.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How far the clock is off, in seconds, as a C expression of the steady clock in nanoseconds.
const ALTERNATING: &str = "nanoseconds / 100000000 % 2 ? 3600 : -3600";
/// A C expression that reads the offset in seconds from a file.
const OF_FILE: &str = "offset_of_file()";

const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *offset;
static const long none;

__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("HEADROOM_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (mapped != MAP_FAILED) offset = mapped;
}
static inline long offset_of_file(void) { return offset ? *offset : none; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        struct timespec steady;
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &steady);
        long nanoseconds = steady.tv_nsec;
        now->tv_sec += OFFSET;
        (void)nanoseconds;
    }
    return (int)failed;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return 0;
}
time_t time(time_t *seconds) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (seconds) *seconds = precise.tv_sec;
    return precise.tv_sec;
}
"#;

/// The library of a clock that is an hour ahead for 100 ms, then an hour behind; `None`, after saying so, without a compiler.
pub fn alternating(dir: &Path) -> Option<PathBuf> {
    library(dir, ALTERNATING)
}

fn library(dir: &Path, offset: &str) -> Option<PathBuf> {
    let (source, library) = (dir.join("clock.c"), dir.join("clock.so"));
    fs::write(&source, CLOCK).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg(format!("-DOFFSET=({offset})")).args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    match compiler.status() {
        Ok(status) if status.success() => Some(library),
        other => {
            eprintln!("skipped: no C compiler: {other:?}");
            None
        }
    }
}

/// A clock that is set while programs run.
pub struct WallClock {
    dir: tempfile::TempDir,
    library: PathBuf,
}

impl WallClock {
    /// A clock that is right; `None`, after saying so, without a compiler.
    pub fn make() -> Option<WallClock> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("offset"), 0_i64.to_ne_bytes()).unwrap();
        Some(WallClock { library: library(dir.path(), OF_FILE)?, dir })
    }

    /// The program that is started by this command has this clock.
    pub fn give_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("HEADROOM_TEST_CLOCK", self.dir.path().join("offset"));
    }

    /// Sets it `seconds` seconds ahead of the machine's.
    pub fn set(&self, seconds: i64) {
        let file = fs::OpenOptions::new().write(true).open(self.dir.path().join("offset")).unwrap();
        file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}
