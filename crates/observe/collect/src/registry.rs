//! The list of sources, and the operations on all of them: parsing an argument, discovery, texts for `--help`.

use crate::discovery::{Instance, Programs};
use crate::source::{ArgumentError, Discovery, SourceArgument, SourceKind};
use crate::{diskstats, mysql, postgres, process, published, sqlite, sqlserver};
use std::sync::Arc;

/// All sources, in the order in which help texts list them.
pub static SOURCES: [&SourceKind; 7] = [
    &process::KIND,
    &sqlite::KIND,
    &published::KIND,
    &postgres::KIND,
    &mysql::KIND,
    &sqlserver::KIND,
    &diskstats::KIND,
];

/// Parses `SCHEME:ARGUMENT`, as `--source` takes it.
///
/// # Errors
/// A line for people, which repeats nothing that may be a password.
pub fn parse_source(text: &str) -> Result<Arc<SourceArgument>, String> {
    // A line of a file of sources may be anything, a password too.
    let (scheme, argument) =
        text.split_once(':').ok_or_else(|| format!("that is not a source; {}", accepted_forms()))?;
    let kind = SOURCES.into_iter().find(|kind| kind.schemes.contains(&scheme));
    let parsed = kind.map_or(Err(ArgumentError::Missing), |kind| (kind.parse)(argument));
    parsed.map(Arc::new).map_err(|error| match error {
        ArgumentError::Missing => format!("'{scheme}:' is not a source; {}", accepted_forms()),
        ArgumentError::Invalid(why) => why,
    })
}

/// Parses a source from an argument of a command, which every user of this machine can read: it may hold no password.
///
/// # Errors
/// As for [`parse_source`]; of a password, where it belongs.
pub fn parse_source_argument(text: &str) -> Result<Arc<SourceArgument>, String> {
    let source = parse_source(text)?;
    source.exposed_password.clone().map_or(Ok(source), Err)
}

/// The sources to try where none is named.
pub fn discover_sources() -> Vec<Arc<SourceArgument>> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let may_be_here = |kind: &&SourceKind| match kind.discovery {
        Discovery::Always => true,
        Discovery::WhereSet(variables) => variables.iter().any(is_set),
        Discovery::Never => false,
    };
    SOURCES.into_iter().filter(may_be_here).filter_map(|kind| (kind.parse)("").ok().map(Arc::new)).collect()
}

/// The databases that run on this host, as far as this user may see them.
pub fn find_instances(programs: &Programs) -> Vec<Instance> {
    let mut found: Vec<Instance> = SOURCES.into_iter().flat_map(|kind| (kind.find)(programs)).collect();
    found.sort_by(|a, b| (a.engine, a.pid, &a.part).cmp(&(b.engine, b.pid, &b.part)));
    found
}

/// Forms that `--source` takes, for `--help`.
pub fn source_help() -> String {
    let forms: Vec<&str> = SOURCES.iter().map(|kind| kind.help).collect();
    format!("Whose counters: {}, as in postgres:host=/run/postgresql or mysql://user@host/", forms.join(", "))
}

/// Sources that are tried where none is named, for `--help`.
pub fn discovery_help() -> String {
    let always = SOURCES.iter().filter(|kind| kind.discovery == Discovery::Always);
    let always: Vec<String> = always.map(|kind| format!("{}:", kind.schemes[0])).collect();
    let mut text = format!("{} as a user who gives nothing else", listed(&always, "and"));
    for kind in SOURCES {
        if let Discovery::WhereSet(variables) = kind.discovery {
            text += &format!(", and {}: where {} is set", kind.schemes[0], variables.join(" or "));
        }
    }
    text
}

fn accepted_forms() -> String {
    let forms: Vec<&str> = SOURCES.iter().map(|kind| kind.forms).collect();
    format!("give {}, as in sqlite:/data/shop.db or postgres:host=/run/postgresql", listed(&forms, "or"))
}

/// "a, b and c".
fn listed(items: &[impl AsRef<str>], conjunction: &str) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {conjunction} {last}", rest.join(", ")),
        _ => items.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Arc<SourceArgument> {
        parse_source(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn every_kind_is_parsed_and_printed_again() {
        for text in [
            "sqlite:/data/shop.db",
            "published:/data/shop.pages",
            "process:",
            "process:812,813",
            "process:cgroup=/sys/fs/cgroup/db",
            "process:pid-file=/var/lib/postgresql/18/main/postmaster.pid",
            "process:layer=block",
            "postgres:host=/run/postgresql user=monitor",
            "mysql://monitor@localhost/",
            "mysql://monitor@/run/mysqld/mysqld.sock?ssl-mode=disabled",
            "mysql:socket=/run/mysqld/mysqld.sock",
            "mysql:",
            "devices:",
            "devices:vda,sdb",
            "sqlserver://monitor@localhost:1433/shop?encrypt=optional",
            "sqlserver:",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        assert_eq!(parse("postgresql://h/d").to_string(), parse("postgres://h/d").to_string());
        assert_eq!(parse("devices:/dev/vda").to_string(), parse("devices:vda").to_string());
        for wrong in [
            "",
            "shop.db",
            "oracle:x",
            "process:12,x",
            "process:pid-file=",
            "process:layer=x",
            "sqlite:",
            "published:",
            "devices:mapper/x",
        ] {
            assert!(parse_source(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_never_printed() {
        for text in [
            "postgres://monitor:se:cr@et@localhost/shop",
            "postgres:host=h password=secret user=u",
            "postgres:host=h password='se cr et' user=u",
            "postgres:host=h password = secret",
            "postgres:host=h\tpassword=secret",
            "postgres:host=h sslpassword=secret",
            "postgres://u:se/cret@h/d",
            "postgres://h/d?user=u&password=secret",
            "postgres://h/d?user=u&pass%77ord=secret",
            "mysql://monitor:secret@localhost/",
            "mysql://monitor:se/cret@localhost",
            "mysql://monitor@localhost/?password=secret",
            "mysql:host=h password = secret",
            "sqlserver://monitor:secret@localhost/",
            "sqlserver://monitor:se/cret@localhost/",
            "sqlserver://localhost:1433;user=monitor;password=secret;encrypt=true",
            "sqlserver://localhost:1433;user=monitor;Pwd=secret",
            "sqlserver:Server=h;Pwd = secret",
        ] {
            let printed = parse(text).to_string();
            let pieces = ["secret", "se/", "cret", "se:cr", "pass", "Pwd"];
            assert!(!pieces.iter().any(|piece| printed.contains(piece)), "{text}: {printed}");
            assert!(parse(text).exposed_password.is_some(), "{text}");
        }
        assert_eq!(
            parse("postgres://monitor:secret@h/shop").to_string(),
            "postgres:dbname=shop host=h user=monitor"
        );
        let wrong = parse_source("host=h password=secret").err().unwrap();
        assert!(!wrong.contains("secret"), "{wrong}");
        assert_eq!(parse("postgres://monitor@localhost/shop").exposed_password, None);
    }

    #[test]
    fn a_password_in_an_argument_is_refused_with_the_place_where_it_belongs() {
        for (text, place) in [
            ("postgres://ann:hunter2@db/shop", "PGPASSWORD"),
            ("postgres:host=db password=hunter2", "~/.pgpass"),
            ("postgres:host=db hunter2", "has no '='"),
            ("mysql://ann:hunter2@db/", "~/.my.cnf"),
            ("mysql:host=db password = hunter2", "MYSQL_PWD"),
            ("mysql:socket=/run/m.sock user=ann hunter2", "MYSQL_PWD"),
            ("mysql:socket=/run/m.sock password=hunter2", "MYSQL_PWD"),
            ("sqlserver://ann:hunter2@db/", "SQLCMDPASSWORD"),
        ] {
            let why = parse_source_argument(text).err().unwrap();
            assert!(why.contains(place) && !why.contains("hunter2"), "{text}: {why}");
        }
        for fine in [
            "process:",
            "postgres:host=db user=ann",
            "mysql:",
            "mysql:socket=/run/m.sock user=ann",
            "sqlserver://ann@db/",
            "sqlite:/shop.db",
        ] {
            assert!(parse_source_argument(fine).is_ok(), "{fine}");
        }
    }

    #[test]
    fn help_lists_every_source() {
        assert_eq!(
            source_help(),
            "Whose counters: process: (all), process:PID,..., process:pid-file=PATH, process:cgroup=DIR, \
             process:layer=block or storage, sqlite:PATH, published:PATH, postgres:[CONNECTION], mysql:[CONNECTION], \
             sqlserver:[CONNECTION], devices:[NAME,...], as in postgres:host=/run/postgresql or mysql://user@host/"
        );
        assert_eq!(
            discovery_help(),
            "process:, postgres: and mysql: as a user who gives nothing else, and \
             sqlserver: where SQLCMDSERVER or SQLCMDUSER is set"
        );
        let wrong = parse_source("oracle:x").err().unwrap();
        assert_eq!(
            wrong,
            "'oracle:' is not a source; give process:, process:PID, process:pid-file=PATH, process:cgroup=DIR, \
             sqlite:PATH, published:PATH, postgres:CONNECTION, mysql:CONNECTION, sqlserver:CONNECTION or \
             devices:NAME,..., as in sqlite:/data/shop.db or postgres:host=/run/postgresql"
        );
    }
}
