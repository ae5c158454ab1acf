//! Combines what is found.

use crate::attempts::{Outcome, try_all, try_process};
use crate::container_names;
use crate::heavy_programs::{HeavyProgram, IoSample};
use crate::membership::Membership;
use crate::scan::{Database, DeviceShare, Identity, Refusal, Scan, volumes_of};
use collect::discovery::{Engine, Instance, Program, Programs, Role, RoleFile};
use host::{FilePlace, MountView, ProcessFiles};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a scan does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// A program with at least this part of a device's I/O is found, 0 to 1.
    pub share_min: f64,
    /// How long a source may take to open and answer.
    pub attempt_limit: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { share_min: 0.1, attempt_limit: Duration::from_secs(2) }
    }
}

/// Finds what asks storage, once or again and again.
pub struct Scanner {
    options: Options,
    io: IoSample,
    tried: HashMap<Identity, (Instant, Outcome)>,
    /// Whether processes can be counted here, once that was tried.
    process: Option<Result<(), Refusal>>,
}

/// A source is tried again after this long, whether it worked or not: a grant may have been made or revoked.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(300);
/// More are not reported: a user may start any number of programs that look like databases.
const DATABASES_MAX: usize = 256;
/// So many programs without an engine are reported, those with the largest parts.
const PROGRAMS_MAX: usize = 16;
/// Sources that are tried at the same time.
const ATTEMPTS_AT_ONCE: usize = 8;

impl Scanner {
    /// Begins to count the I/O of programs.
    ///
    /// # Errors
    /// If /proc is not readable.
    pub fn new(options: Options) -> io::Result<Scanner> {
        let io = IoSample::take(&Programs::read()?);
        Ok(Scanner { options, io, tried: HashMap::new(), process: None })
    }

    /// Finds what runs now. The I/O of programs is that since the last call, or since the scanner was made.
    ///
    /// # Errors
    /// If /proc is not readable.
    pub fn scan(&mut self) -> io::Result<Scan> {
        let programs = Programs::read()?;
        let now = IoSample::take(&programs);
        let heavy = now.since(&self.io, &programs);
        self.io = now;
        let mut notes = Vec::new();
        let mut instances = collect::find_instances(&programs);
        add_heavy(&mut instances, &heavy, self.options.share_min, &programs);
        // Servers of root and of system users first: they are what a crowd of others must not displace.
        instances.sort_by_key(|instance| instance.user >= FIRST_ORDINARY_USER);
        if instances.len() > DATABASES_MAX {
            notes
                .push(format!("{} more are not shown: {DATABASES_MAX} are", instances.len() - DATABASES_MAX));
            instances.truncate(DATABASES_MAX);
        }
        self.try_sources(&instances);
        let mut databases: Vec<Database> =
            instances.into_iter().filter_map(|one| self.database(one, &programs, &heavy)).collect();
        databases.sort_by(|a, b| (a.engine, a.pid, &a.part).cmp(&(b.engine, b.pid, &b.part)));
        let alive: HashSet<Identity> = databases.iter().map(Database::identity).collect();
        self.tried.retain(|identity, _| alive.contains(identity));
        Ok(Scan { taken_unix_ns: host::unix_ns(), databases, notes })
    }

    /// Tries the sources of those that were not tried of late, several at a time.
    fn try_sources(&mut self, instances: &[Instance]) {
        let is_due = |instance: &&Instance| {
            let tried = self.tried.get(&identity(instance));
            tried.is_none_or(|(at, _)| at.elapsed() >= TRIED_AGAIN_AFTER)
        };
        let due: Vec<&Instance> = instances.iter().filter(is_due).collect();
        let limit = self.options.attempt_limit;
        for some in due.chunks(ATTEMPTS_AT_ONCE) {
            let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    some.iter().map(|one| scope.spawn(move || try_all(one, limit))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
            });
            for (identity, now) in some.iter().map(|one| identity(one)).zip(outcomes) {
                let before = self.tried.remove(&identity).map(|(_, outcome)| outcome);
                self.tried.insert(identity, (Instant::now(), kept(before, now)));
            }
        }
    }

    /// `None` where its process has ended meanwhile.
    fn database(
        &mut self,
        instance: Instance,
        programs: &Programs,
        heavy: &[HeavyProgram],
    ) -> Option<Database> {
        let mut outcome = self.tried.get(&identity(&instance)).map(|(_, outcome)| outcome.clone())?;
        if outcome.source.is_none() {
            match self.process_source(instance.pid) {
                Ok(source) => outcome.source = Some(source),
                Err(refusal) => outcome.refused.push(refusal),
            }
        }
        if host::start_ticks(instance.pid) != Some(instance.start_ticks) {
            return None;
        }
        let program = programs.get(instance.pid).map(|program| program.name.clone()).unwrap_or_default();
        let Membership { unit, mut container } =
            host::control_group_of(instance.pid).map(|group| Membership::parse(&group)).unwrap_or_default();
        if let Some(container) = &mut container {
            container.name = container_names::name(container, Path::new("/"));
        }
        let share = heavy.iter().find(|one| one.pid == instance.pid);
        let container_name = container.as_ref().map(|it| it.name.clone().unwrap_or_else(|| it.id.clone()));
        let name =
            instance.name.or(container_name).or_else(|| unit.clone()).unwrap_or_else(|| program.clone());
        let mut files = instance.files;
        let mut notes = instance.notes;
        if container.is_some() && ProcessFiles::of_process(instance.pid).view() == MountView::Unknown {
            // What its arguments name is in the container, and another file or none here.
            files.clear();
            notes.push("its volumes are not known: its mounts are seen by root only".into());
        } else if files.is_empty() {
            files = outcome.files;
        }
        let mut volumes = volumes_of(&files);
        if let Some(share) = share.filter(|_| instance.engine == Engine::Program) {
            // It is here because of this one; the others may be those of files that it has inherited.
            volumes.sort_by_key(|volume| volume.number != Some(share.device));
        }
        notes.extend(volumes.iter().filter(|volume| !volume.is_visible).map(|volume| {
            format!(
                "{} is mounted in its own mount namespace only: no directory of this host leads there, so it cannot be measured",
                volume.mount
            )
        }));
        Some(Database {
            engine: instance.engine,
            pid: instance.pid,
            start_ticks: instance.start_ticks,
            user: instance.user,
            name,
            program,
            unit,
            container,
            version: instance.version.or(outcome.version),
            source: outcome.source,
            refused: outcome.refused,
            lacks: outcome.lacks,
            volumes,
            share: share.map(device_share),
            notes,
            part: instance.part,
        })
    }

    /// `process:PID`. Counting processes is permitted for all of them or for none, so that it is tried once, on this one.
    fn process_source(&mut self, pid: u32) -> Result<String, Refusal> {
        let source = format!("process:{pid}");
        let works =
            self.process.get_or_insert_with(|| try_process(std::process::id(), PROCESS_LIMIT).map(drop));
        match works {
            Ok(()) => Ok(source),
            Err(refusal) => Err(Refusal { source, ..refusal.clone() }),
        }
    }
}

/// What is known after another try. A server that does not answer now, because its disk hangs or its connections are used up, keeps
/// the source that worked: the agent names a database by its source, and would end its incidents if that changed. A refused login
/// and a stranger on the server's socket count at once.
fn kept(before: Option<Outcome>, now: Outcome) -> Outcome {
    let Some(before) = before else { return now };
    let refused = now.refused.iter().find(|refusal| Some(&refusal.source) == before.source.as_ref());
    if refused.is_some_and(|refusal| !refusal.is_final) { before } else { now }
}

/// Users below this are the system's (login.defs(5)).
const FIRST_ORDINARY_USER: u32 = 1000;
/// The programs of the kernel are verified when they are loaded.
const PROCESS_LIMIT: Duration = Duration::from_secs(20);

fn device_share(program: &HeavyProgram) -> DeviceShare {
    DeviceShare {
        device: host::device_name(program.device).unwrap_or_else(|| program.device.to_string()),
        share: program.share,
        bytes_per_s: program.bytes_per_s,
    }
}

fn identity(instance: &Instance) -> Identity {
    Identity { pid: instance.pid, start_ticks: instance.start_ticks, part: instance.part.clone() }
}

/// Adds programs that have no engine and at least the stated part of a device's I/O.
fn add_heavy(instances: &mut Vec<Instance>, heavy: &[HeavyProgram], share_min: f64, programs: &Programs) {
    let known: HashSet<u32> = instances.iter().map(|instance| instance.pid).collect();
    let others = heavy.iter().filter(|one| one.share >= share_min && !known.contains(&one.pid));
    let others = others.filter_map(|one| programs.get(one.pid)).take(PROGRAMS_MAX);
    instances.extend(others.map(program_instance));
}

fn program_instance(program: &Program) -> Instance {
    let files = ProcessFiles::of_process(program.pid);
    let open = host::open_files(program.pid);
    let place = |file: &host::OpenFile| {
        let role = if file.is_deleted { Role::Temp } else { Role::Data };
        Some(RoleFile { role, place: files.place_of_open(file).filter(FilePlace::is_stored)? })
    };
    let written: Vec<RoleFile> = open.iter().filter(|file| file.is_writable).filter_map(place).collect();
    let any = || open.iter().filter_map(place).map(|file| RoleFile { role: Role::Other, ..file }).collect();
    let notes = match files.view() {
        MountView::Unknown => {
            vec!["it is another user's process: its open files are seen by root only".into()]
        }
        MountView::Shared | MountView::Other => Vec::new(),
    };
    Instance {
        engine: Engine::Program,
        pid: program.pid,
        start_ticks: program.start_ticks,
        user: program.user,
        name: None,
        part: None,
        version: None,
        files: if written.is_empty() { any() } else { written },
        attempts: Vec::new(),
        notes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(is_final: bool) -> Refusal {
        let source = "postgres:host=/run".to_owned();
        Refusal { source, error: "no".into(), facts: Vec::new(), remedy: None, is_final }
    }

    #[test]
    fn a_server_that_hangs_keeps_its_source_and_one_that_refuses_does_not() {
        let worked = Outcome { source: Some(refusal(false).source), ..Outcome::default() };
        let failed = |is_final| Outcome { refused: vec![refusal(is_final)], ..Outcome::default() };
        let source = |before: Option<Outcome>, now| kept(before, now).source;
        assert_eq!(source(Some(worked.clone()), failed(false)), worked.source);
        assert_eq!(source(Some(worked.clone()), failed(true)), None, "a grant was revoked");
        assert_eq!(source(None, failed(false)), None);
        let other = Some("postgres:host=/run user=owner".to_owned());
        let with_other = |refused| {
            source(Some(worked.clone()), Outcome { source: other.clone(), refused, ..Outcome::default() })
        };
        assert_eq!(with_other(vec![refusal(false)]), worked.source, "its connections are in use");
        assert_eq!(with_other(vec![]), other, "one that is better");
    }
}
