//! Combines the results of discovery.

use crate::attempts::{Candidate, Outcome};
use crate::container_names;
use crate::heavy_programs::{HeavyProgram, IoSample};
use crate::membership::Membership;
use crate::scan::{Database, DeviceShare, Identity, Refusal, Scan, volumes_of};
use crate::tries::{End, Limits, Tried, try_each};
use collect::discovery::{Engine, Instance, Program, Programs, Role, RoleFile, users_in_turn};
use host::{FilePlace, MountView, ProcessFiles};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Options of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// A program with at least this part of a device's I/O is found, 0 to 1.
    pub share_min: f64,
    /// How long the sources of one database may take to open and answer.
    pub attempt_limit: Duration,
    /// How long those of all databases may take.
    pub attempts_limit: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { share_min: 0.1, attempt_limit: Duration::from_secs(2), attempts_limit: ATTEMPTS_LIMIT }
    }
}

/// Finds the users of storage, once or repeatedly.
pub struct Scanner {
    options: Options,
    io: IoSample,
    tried: HashMap<Identity, Known>,
    /// Whether processes can be counted here, once that was tried.
    process: Option<Result<(), Refusal>>,
}

/// Result of trying the sources of a database, and its time.
struct Known {
    /// `None` where the scan had no time left for it: the next one tries it again.
    at: Option<Instant>,
    outcome: Outcome,
}

/// A scan ends in 3 s beside any number of servers that never answer.
const ATTEMPTS_LIMIT: Duration = Duration::from_secs(3);
/// A source is tried again after this long, whether it worked or not: a grant may have been made or revoked.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(300);
/// More are not reported: a user may start any number of programs that look like databases.
const DATABASES_MAX: usize = 256;
/// Programs without an engine that are reported, at most: those with the largest parts.
const PROGRAMS_MAX: usize = 16;

impl Scanner {
    /// Begins to count the I/O of programs.
    ///
    /// # Errors
    /// If /proc is not readable.
    pub fn new(options: Options) -> io::Result<Scanner> {
        let io = IoSample::take(&Programs::read()?);
        Ok(Scanner { options, io, tried: HashMap::new(), process: None })
    }

    /// Finds the users that run now. The I/O of programs is that since the last call, or since the scanner was made.
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
        // The instances left out, and tried last, are those of the users with the most.
        let mut instances = users_in_turn(instances, |instance| instance.user);
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

    /// Tries the sources of those that were not tried recently.
    fn try_sources(&mut self, instances: &[Instance]) {
        let is_due = |instance: &&Instance| {
            let known = self.tried.get(&identity(instance));
            known.and_then(|known| known.at).is_none_or(|at| at.elapsed() >= TRIED_AGAIN_AFTER)
        };
        let due: Vec<&Instance> = instances.iter().filter(is_due).collect();
        let candidates: Vec<Candidate> = due.iter().map(|one| Candidate::from_instance(one)).collect();
        let limits = Limits { one: self.options.attempt_limit, all: self.options.attempts_limit };
        for (identity, now) in due.iter().map(|one| identity(one)).zip(try_each(&candidates, limits)) {
            let before = self.tried.remove(&identity).map(|known| known.outcome);
            let at = (now.end != End::Cut).then(Instant::now);
            self.tried.insert(identity, Known { at, outcome: kept(before, now) });
        }
    }

    /// `None` where its process has ended meanwhile.
    fn database(
        &mut self,
        instance: Instance,
        programs: &Programs,
        heavy: &[HeavyProgram],
    ) -> Option<Database> {
        let mut outcome = self.tried.get(&identity(&instance)).map(|known| known.outcome.clone())?;
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
            // The paths in its arguments are paths in the container: here they name another file or none.
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
        let works = match &self.process {
            Some(known) => known.clone(),
            None => self.try_processes(),
        };
        works.map(|()| source.clone()).map_err(|refusal| Refusal { source, ..refusal })
    }

    fn try_processes(&mut self) -> Result<(), Refusal> {
        // The end of all is no end of this one.
        let limits = Limits { one: PROCESS_LIMIT, all: 2 * PROCESS_LIMIT };
        let tried = try_each(&[Candidate::for_process(std::process::id())], limits).pop();
        let Tried { outcome, end } = tried.expect("one for each");
        let works = outcome.refused.into_iter().next().map_or(Ok(()), Err);
        if end != End::Cut {
            self.process = Some(works.clone());
        }
        works
    }
}

/// The outcome to keep after another try. A server that does not answer now, because its disk hangs or its connections are used
/// up, keeps the source that worked: the agent names a database by its source, and would end its incidents if that changed. A
/// refused login and a foreign process on the server's socket count at once.
fn kept(before: Option<Outcome>, now: Tried) -> Outcome {
    let Tried { outcome: now, end } = now;
    let Some(before) = before.filter(|before| before.source.is_some()) else { return now };
    let refused = now.refused.iter().find(|refusal| Some(&refusal.source) == before.source.as_ref());
    match refused {
        Some(refusal) if refusal.is_final => now,
        Some(_) => before,
        // The time was over before it was tried.
        None if now.source.is_none() && end != End::Complete => before,
        None => now,
    }
}

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
        let source =
            |before: Option<&Outcome>, outcome, end| kept(before.cloned(), Tried { outcome, end }).source;
        let failed = |is_final| Outcome { refused: vec![refusal(is_final)], ..Outcome::default() };
        assert_eq!(source(Some(&worked), failed(false), End::Complete), worked.source);
        assert_eq!(source(Some(&worked), failed(true), End::Complete), None, "a grant was revoked");
        assert_eq!(source(None, failed(false), End::Complete), None);
        let other = Some("postgres:host=/run user=owner".to_owned());
        let with_other = |refused| {
            let outcome = Outcome { source: other.clone(), refused, ..Outcome::default() };
            source(Some(&worked), outcome, End::Complete)
        };
        assert_eq!(with_other(vec![refusal(false)]), worked.source, "its connections are in use");
        assert_eq!(with_other(vec![]), other, "one that is better");
        for end in [End::Unanswered, End::Cut] {
            assert_eq!(source(Some(&worked), Outcome::default(), end), worked.source, "not tried: {end:?}");
        }
        assert_eq!(source(Some(&worked), Outcome::default(), End::Complete), None, "no socket any more");
    }
}
