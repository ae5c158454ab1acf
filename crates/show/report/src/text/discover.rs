use super::style::{Ink, Style};
use super::wrap::clean;

/// A database or program of this host, as a person reads it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiscoveredDatabase {
    /// "postgres".
    pub engine: String,
    /// Its first process.
    pub pid: u32,
    /// The name of the cluster, the file, the container, the unit or the program.
    pub name: String,
    /// Version, unit, container, part of a device's I/O: what stands behind the name.
    pub details: Vec<String>,
    /// The best source that works; `None` where none does.
    pub source: Option<String>,
    /// Where its files lie.
    pub volumes: Vec<DiscoveredVolume>,
    /// Rights that better sources need, each with the line that grants it.
    pub grants: Vec<String>,
    /// Facts that cannot be determined.
    pub notes: Vec<String>,
}

/// A volume of a database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiscoveredVolume {
    /// "data, temp".
    pub roles: String,
    /// Its mount point.
    pub mount: String,
    /// "vda, ext4".
    pub device: String,
    /// "measured 3 days ago", or how to measure it.
    pub capability: String,
}

const INDENT: usize = 2;

/// Each database: a line of what it is, its source and its volumes in columns, and what would give more.
pub fn discover(found: &[DiscoveredDatabase], notes: &[String], style: &Style) -> String {
    let mut lines = Vec::new();
    let engine = width(found.iter().map(|one| one.engine.as_str()));
    let pid = width(found.iter().map(|one| one.pid.to_string()));
    for one in found {
        let name = style.paint(Ink::Bold, &clean(&one.name));
        let details = clean(&one.details.join(", "));
        let details = if details.is_empty() { details } else { format!("  {details}") };
        lines.push(format!("{:engine$}  {:>pid$}  {name}{details}", clean(&one.engine), one.pid));
        let source = one.source.as_deref().map_or_else(|| "none works".into(), clean);
        lines.push(format!("{:INDENT$}source  {source}", ""));
        lines.extend(volume_lines(&one.volumes));
        for (mark, texts) in [("grant: ", &one.grants), ("note: ", &one.notes)] {
            // Not wrapped: they have lines to copy.
            lines.extend(texts.iter().map(|text| format!("{:INDENT$}{mark}{}", "", clean(text))));
        }
    }
    if found.is_empty() {
        lines.push("no database server, and no program with much I/O, was found".into());
    }
    lines.extend(notes.iter().flat_map(|note| style.note(note)));
    lines.join("\n") + "\n"
}

fn volume_lines(volumes: &[DiscoveredVolume]) -> Vec<String> {
    let columns: [fn(&DiscoveredVolume) -> &str; 3] =
        [|volume| &volume.roles, |volume| &volume.mount, |volume| &volume.device];
    let widths = columns.map(|column| width(volumes.iter().map(|volume| clean(column(volume)))));
    let line = |volume: &DiscoveredVolume| {
        let cells =
            columns.iter().zip(widths).map(|(column, width)| format!("{:width$}  ", clean(column(volume))));
        format!("{:INDENT$}{}{}", "", cells.collect::<String>(), clean(&volume.capability))
    };
    volumes.iter().map(line).collect()
}

fn width<T: AsRef<str>>(texts: impl Iterator<Item = T>) -> usize {
    texts.map(|text| text.as_ref().chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> DiscoveredDatabase {
        DiscoveredDatabase {
            engine: "postgres".into(),
            pid: 812,
            name: "15/main".into(),
            details: vec!["version 15".into(), "postgresql@15-main.service".into()],
            source: Some("postgres:dbname=postgres host=/run/postgresql user=postgres".into()),
            volumes: vec![
                DiscoveredVolume {
                    roles: "data, temp".into(),
                    mount: "/data".into(),
                    device: "sdb, xfs".into(),
                    capability: "measured 3 days ago".into(),
                },
                DiscoveredVolume {
                    roles: "log".into(),
                    mount: "/wal".into(),
                    device: "nvme0n1, ext4".into(),
                    capability: "never measured: headroom measure /wal".into(),
                },
            ],
            grants: vec!["ALTER SYSTEM SET track_io_timing = on;".into()],
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_database_is_a_block_with_its_source_and_volumes() {
        let other = DiscoveredDatabase {
            engine: "mongodb".into(),
            pid: 90_210,
            name: "mongod".into(),
            notes: vec!["its files are not seen".into()],
            ..DiscoveredDatabase::default()
        };
        let expected = "\
postgres    812  15/main  version 15, postgresql@15-main.service
  source  postgres:dbname=postgres host=/run/postgresql user=postgres
  data, temp  /data  sdb, xfs       measured 3 days ago
  log         /wal   nvme0n1, ext4  never measured: headroom measure /wal
  grant: ALTER SYSTEM SET track_io_timing = on;
mongodb   90210  mongod
  source  none works
  note: its files are not seen
";
        assert_eq!(discover(&[server(), other], &[], &Style::default()), expected);
    }

    #[test]
    fn names_of_other_users_make_no_line_and_no_colour() {
        let hostile = "x\n\u{1b}[31mpostgres 1 root\u{202e}".to_owned();
        let mut one = server();
        (one.name, one.source) = (hostile.clone(), Some(hostile.clone()));
        one.volumes[0].mount.clone_from(&hostile);
        one.notes.push(hostile);
        let text = discover(&[one], &[], &Style::default());
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("postgres")).count(), 1, "{text}");
    }

    #[test]
    fn nothing_found_is_said_so() {
        assert!(discover(&[], &[], &Style::default()).contains("no database server"));
    }
}
