//! Command lines from the tree of a program's arguments: each argument with a plausible value or a hostile one.

use clap::{Arg, ArgAction, Command};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use stream::random::SplitMix64;

/// Arguments that people and scripts pass by mistake, and names that another user's files may have.
const HOSTILE: &[&[u8]] = &[
    b"",
    b" ",
    b"-",
    b"--",
    b"---",
    b"-1",
    b"-0",
    b"0",
    b"00",
    b"+1",
    b"NaN",
    b"inf",
    b"-inf",
    b"1e400",
    b"1e-400",
    b"0x10",
    b"4294967295",
    b"4294967296",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"340282366920938463463374607431768211456",
    b"64G",
    b"16E",
    b"16384P",
    b"99999999T",
    b"0.0000000001",
    b"0.1K",
    b"4K4",
    b"4k-1",
    b"18446744073s",
    b"18446744074s",
    b"1e30s",
    b"-5ms",
    b"584y",
    b"0s",
    b"101%",
    b"-1%",
    b"NaN%",
    b",",
    b"1,,2",
    b"1,1,1",
    b"1:2:3:4",
    b":",
    b"=",
    b"a=",
    b"=1",
    b"1-0",
    b"1..",
    b"0/0",
    b"2026-13-45",
    b"9999-12-31T23:59:60Z",
    b"24:61",
    b"@",
    b"@small",
    b"@/dev/null",
    b"{}",
    b"%s%n",
    b"$(id)",
    b"a\nb",
    b"a\tb\rc",
    b"\x1b[31mred\x1b]0;title\x07",
    b"\xe2\x80\xaetxt.exe",
    b"\xd9\xa1\xd9\xa2",
    b"\xff\xfe",
    b"a\xc3",
    b"/",
    b"..",
    b"/dev/null",
    b"/dev/zero",
    b"/dev/full",
    b"/dev/stdin",
    b"/proc/self/mem",
    b"/proc/self/fd",
    b"/nonexistent/a/b",
    b"small/below",
    b"directory",
    b"pipe",
    b"unreadable",
    b"locked",
    b"loop",
    b"dangling",
    b"to-zero",
    b"sparse",
    b"esc\x1b[8m",
    b"rlo\xe2\x80\xae",
    b"not-\xffutf8",
    b"sqlite:",
    b"sqlite:/dev/zero",
    b"sqlite:not-\xffutf8",
    b"process:pid=4294967296",
    b"process:pid-file=/dev/zero",
    b"process:pid-file=pipe",
    b"postgres:host=127.0.0.1 port=99999",
    b"postgres:\x00",
    b"mysql://a:b@127.0.0.1:1/\x1b[31m",
    b"published:pipe",
    b"devices:",
    b"http://",
    b"http://127.0.0.1:1/%",
    b"127.0.0.1:99999",
    b"[::1]:0",
];
/// Longer than a file name may be, and than a line of a terminal.
const LONG_BYTES: usize = 5000;

/// Files and directories that are there, and one that is not.
const PATHS: &[&str] = &[".", "directory", "small", "new", "new.json"];
const SOURCES: &[&str] = &["sqlite:small", "devices:", "process:pid=1", "published:directory"];

/// A subcommand that runs something, and its arguments.
#[derive(Clone, Debug)]
pub struct Leaf {
    names: Vec<String>,
    arguments: Vec<Arg>,
}

/// The subcommands of a program that have none of their own.
pub fn leaves(tree: &Command) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect_leaves(tree, &mut Vec::new(), &mut found);
    found
}

fn collect_leaves(command: &Command, names: &mut Vec<String>, found: &mut Vec<Leaf>) {
    let mut below = command.get_subcommands().filter(|below| below.get_name() != "help").peekable();
    if below.peek().is_none() {
        let kept = |arg: &&Arg| !matches!(arg.get_id().as_str(), "help" | "version");
        let arguments = command.get_arguments().filter(kept).cloned().collect();
        found.push(Leaf { names: names.clone(), arguments });
    }
    for below in below {
        names.push(below.get_name().into());
        collect_leaves(below, names, found);
        names.pop();
    }
}

impl Leaf {
    /// How errors may call its arguments: "size" of `--size`, "target" of one without an option.
    pub fn argument_names(&self) -> impl Iterator<Item = String> {
        self.arguments.iter().flat_map(|arg| match arg.get_long() {
            Some(long) => vec![long.to_owned()],
            None => {
                value_name(arg).split([' ', '|']).map(|word| word.trim_end_matches('S').to_owned()).collect()
            }
        })
    }
}

/// The source of the random numbers of one call.
pub struct Calls(SplitMix64);

impl Calls {
    /// The call of this number is always the same.
    pub fn new(number: u64) -> Calls {
        let mut random = SplitMix64(number);
        random.next_word();
        Calls(random)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.0.next_word() % bound as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn choose<'t, T: ?Sized>(&mut self, from: &[&'t T]) -> &'t T {
        from[self.below(from.len())]
    }

    /// The index of one of the subcommands.
    pub fn leaf(&mut self, leaves: &[Leaf]) -> usize {
        self.below(leaves.len())
    }

    /// Its arguments: mostly one hostile value among plausible ones, which lets the program go far.
    pub fn line(&mut self, leaf: &Leaf) -> Vec<OsString> {
        let mut line: Vec<OsString> = leaf.names.iter().map(OsString::from).collect();
        let hostile_one_in = [0, 8, 2][self.below(3)];
        let chosen: Vec<&Arg> = leaf.arguments.iter().filter(|arg| self.is_given(arg)).collect();
        let only = self.below(chosen.len().max(1));
        for (at, arg) in chosen.into_iter().enumerate() {
            let times = if self.one_in(24) { 3 } else { 1 };
            for _ in 0..times {
                let hostile = if hostile_one_in == 0 { at == only } else { self.one_in(hostile_one_in) };
                self.push(&mut line, arg, hostile);
            }
        }
        if self.one_in(12) {
            let at = leaf.names.len() + self.below(line.len() - leaf.names.len() + 1);
            line.insert(at, self.hostile());
        }
        line
    }

    /// Times are given more often than other options, so that most calls end soon.
    fn is_given(&mut self, arg: &Arg) -> bool {
        match (arg.is_required_set() || arg.is_positional(), value_name(arg)) {
            (true, _) => !self.one_in(8),
            (false, "TIME") => self.one_in(2),
            (false, _) => self.one_in(6),
        }
    }

    fn push(&mut self, line: &mut Vec<OsString>, arg: &Arg, hostile: bool) {
        if arg.is_last_set() {
            line.push("--".into());
        }
        let value = if hostile { self.hostile() } else { self.plausible(arg).into() };
        match (arg.get_long(), arg.get_short()) {
            (Some(long), _) if !takes_value(arg) => {
                line.push(format!("--{long}").into());
                if hostile {
                    line.push(value);
                }
            }
            (Some(long), _) if self.one_in(2) => {
                let mut both = OsString::from(format!("--{long}="));
                both.push(value);
                line.push(both);
            }
            (Some(long), _) => line.extend([format!("--{long}").into(), value]),
            (None, Some(short)) => line.extend([format!("-{short}").into(), value]),
            (None, None) => line.push(value),
        }
    }

    fn hostile(&mut self) -> OsString {
        if self.one_in(40) {
            return "a".repeat(LONG_BYTES).into();
        }
        // The kernel ends an argument at a zero byte.
        let bytes = self.choose(HOSTILE).iter().copied().filter(|byte| *byte != 0).collect();
        OsString::from_vec(bytes)
    }

    fn plausible(&mut self, arg: &Arg) -> String {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            return possible[self.below(possible.len())].get_name().into();
        }
        if let Some(default) = arg.get_default_values().first().and_then(|value| OsStr::to_str(value))
            && self.one_in(2)
        {
            return default.into();
        }
        let text: &str = match value_name(arg) {
            "SIZE" => self.choose(&["4K", "16K", "1M", "16M"]),
            "TIME" => self.choose(&["1ms", "20ms", "100ms"]),
            "PERCENT" => self.choose(&["0", "30", "100"]),
            "FILE" | "PATH" | "DIR" | "TARGET" | "DISK" => self.choose(PATHS),
            "SOURCE" => self.choose(SOURCES),
            "LIST" => self.choose(&["1,2", "4K,8K", "0"]),
            "URL" => "http://127.0.0.1:1/",
            "ADDRESS:PORT" => "127.0.0.1:0",
            "FLAGS AND TARGETS" => {
                self.choose(&["-d1", "-W0", "-b4K", "-o2", "-t1", "-r", "-w30", "-c1M", "-L", "new"])
            }
            _ => self.choose(&["1", "2", "8", "1000"]),
        };
        text.into()
    }
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn value_name(arg: &Arg) -> &str {
    arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str())
}
