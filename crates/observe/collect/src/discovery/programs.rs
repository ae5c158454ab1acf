use host::ProcessStat;
use std::collections::HashMap;
use std::io;

/// A process and the program that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The process that started it.
    pub parent: u32,
    /// The user that it runs as.
    pub user: u32,
    /// The file name of its program, or where that cannot be read, the first 15 bytes of the name that it has given itself.
    pub name: String,
}

/// All processes of this host.
#[derive(Clone, Debug, Default)]
pub struct Programs(HashMap<u32, Program>);

/// Servers of one engine that are described, which takes milliseconds for each: more than a scan reports.
const FIRST_MAX: usize = 512;
/// Users below this are the system's (login.defs(5)).
const FIRST_ORDINARY_USER: u32 = 1000;
/// Bounds the bytes that users can make a scan read; the default of the kernel is half of it.
const PROCESSES_MAX: usize = 1 << 16;
const DELETED: &str = " (deleted)";

impl Programs {
    /// Reads the running programs. A process that ends meanwhile is left out.
    ///
    /// # Errors
    /// If /proc is not readable.
    pub fn read() -> io::Result<Programs> {
        let pids = host::pids()?.into_iter().take(PROCESSES_MAX);
        Ok(Programs(pids.filter_map(Program::read).map(|program| (program.pid, program)).collect()))
    }

    /// The process of this number.
    pub fn get(&self, pid: u32) -> Option<&Program> {
        self.0.get(&pid)
    }

    /// All, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Program> {
        self.0.values()
    }

    /// The processes whose program is one of `names`, without those that another one of them started: of a server with
    /// several processes, the first. At most `FIRST_MAX`, of each user in turn.
    pub fn first_of<'a>(&'a self, names: &'a [&'a str]) -> impl Iterator<Item = &'a Program> {
        let is_named = move |program: &Program| names.contains(&program.name.as_str());
        let is_first =
            move |program: &&Program| is_named(program) && !self.get(program.parent).is_some_and(is_named);
        let mut first: Vec<&Program> = self.0.values().filter(is_first).collect();
        first.sort_unstable_by_key(|program| (program.start_ticks, program.pid));
        users_in_turn(first, |program| program.user).into_iter().take(FIRST_MAX)
    }

    /// The processes that one has started.
    pub fn children_of(&self, pid: u32) -> impl Iterator<Item = &Program> {
        self.0.values().filter(move |program| program.parent == pid)
    }
}

/// Orders items so that users take turns: the first of each user, then the second of each. A crowd of one user so displaces
/// nothing of another where the rest is left out. Root and system users come first in each turn.
pub fn users_in_turn<T>(items: Vec<T>, user_of: impl Fn(&T) -> u32) -> Vec<T> {
    let mut of_user: HashMap<u32, usize> = HashMap::new();
    let turn = |item: &T| {
        let user = user_of(item);
        let turn = of_user.entry(user).or_default();
        *turn += 1;
        (*turn, user >= FIRST_ORDINARY_USER)
    };
    let turns: Vec<_> = items.iter().map(turn).collect();
    let mut with_turns: Vec<_> = turns.into_iter().zip(items).collect();
    with_turns.sort_by_key(|(turn, _)| *turn);
    with_turns.into_iter().map(|(_, item)| item).collect()
}

impl Program {
    fn read(pid: u32) -> Option<Program> {
        let stat = ProcessStat::read(pid).filter(|stat| stat.is_running())?;
        let user = host::user_of(pid)?;
        let file = host::program_of(pid);
        let file = file.as_ref().and_then(|file| Some(file.file_name()?.to_string_lossy()));
        let name = match file {
            Some(name) => name.strip_suffix(DELETED).unwrap_or(&name).to_owned(),
            None => host::command_name(pid)?,
        };
        Some(Program { pid, start_ticks: stat.start_ticks, parent: stat.parent, user, name })
    }

    /// Its arguments, without the program. Bytes that are not UTF-8 are replaced.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let all = host::arguments_of(self.pid);
        all.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    /// The title of a process that has written one over its arguments.
    pub(crate) fn title(&self) -> String {
        host::arguments_of(self.pid)
            .first()
            .map_or_else(String::new, |title| title.to_string_lossy().into_owned())
    }
}

/// The value of an option among arguments: `-D /data`, `-D/data`, `--datadir=/data`, `--datadir /data`; the last one counts.
pub(crate) fn option_value<'a>(arguments: &'a [String], names: &[&str]) -> Option<&'a str> {
    let mut value = None;
    for (at, argument) in arguments.iter().enumerate() {
        for name in names {
            let Some(rest) = argument.strip_prefix(name) else { continue };
            let is_short = !name.starts_with("--");
            match rest.strip_prefix('=') {
                Some(rest) if !is_short => value = Some(rest),
                _ if rest.is_empty() => value = arguments.get(at + 1).map(String::as_str).or(value),
                _ if is_short => value = Some(rest),
                _ => {}
            }
        }
    }
    value.filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn program(pid: u32, parent: u32, name: &str) -> (u32, Program) {
        (pid, Program { pid, parent, name: name.into(), start_ticks: 1, user: 1 })
    }

    #[test]
    fn of_a_server_with_several_processes_the_first_is_taken() {
        let programs = Programs(HashMap::from([
            program(1, 0, "systemd"),
            program(7, 1, "postgres"),
            program(8, 7, "postgres"),
            program(9, 1, "postgres"),
            program(10, 9, "psql"),
        ]));
        let mut found: Vec<u32> = programs.first_of(&["postgres"]).map(|program| program.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [7, 9]);
        assert_eq!(programs.children_of(7).map(|program| program.pid).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn a_crowd_of_one_user_displaces_no_program_of_another() {
        let mut items: Vec<(u32, u32)> = (0..300).map(|number| (33, number)).collect();
        items.extend([(1001, 0), (1001, 1), (0, 0)]);
        let order = users_in_turn(items, |item| item.0);
        assert_eq!(order[..6], [(33, 0), (0, 0), (1001, 0), (33, 1), (1001, 1), (33, 2)]);
    }

    #[test]
    fn this_process_is_among_them() {
        let own = std::process::id();
        let programs = Programs::read().unwrap();
        let program = programs.get(own).unwrap();
        assert_eq!(host::start_ticks(own), Some(program.start_ticks));
        assert!(std::env::current_exe().unwrap().ends_with(&program.name));
    }

    #[test]
    fn options_are_found_in_each_form_and_the_last_one_counts() {
        let value = |line: &str, names: &[&str]| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            option_value(&arguments, names).map(str::to_owned)
        };
        let data = ["-D", "--datadir"];
        assert_eq!(value("-D /a -p 5", &data).as_deref(), Some("/a"));
        assert_eq!(value("-D/a --datadir=/b", &data).as_deref(), Some("/b"));
        assert_eq!(value("--datadir /c", &data).as_deref(), Some("/c"));
        assert_eq!(value("--datadirectory=/c", &data), None);
        assert_eq!(value("-D", &data), None);
        assert_eq!(value("--datadir=", &data), None);
    }

    proptest! {
        #[test]
        fn any_arguments_have_a_value_or_none(arguments in prop::collection::vec(".{0,12}|-D.{0,4}|--datadir=?.{0,4}", 0..8)) {
            let value = option_value(&arguments, &["-D", "--datadir"]);
            prop_assert!(value.is_none_or(|value| arguments.iter().any(|argument| argument.ends_with(value))));
        }
    }
}
