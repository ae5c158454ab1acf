//! Finds database engines that have no source of their own, and are observed as processes.

use crate::discovery::{Engine, Finder, Instance, Program, Programs, Role};
use host::OpenFile;

/// An engine, and the file names of its programs.
const PROGRAMS: [(&str, &[&str]); 14] = [
    ("mongodb", &["mongod"]),
    ("redis", &["redis-server", "redis-check-aof"]),
    ("valkey", &["valkey-server"]),
    ("clickhouse", &["clickhouse", "clickhouse-server"]),
    ("etcd", &["etcd"]),
    ("influxdb", &["influxd", "influxdb3"]),
    ("cockroachdb", &["cockroach"]),
    ("tikv", &["tikv-server"]),
    ("scylladb", &["scylla"]),
    ("prometheus", &["prometheus"]),
    ("db2", &["db2sysc"]),
    ("firebird", &["firebird", "fbserver"]),
    ("rqlite", &["rqlited"]),
    ("foundationdb", &["fdbserver"]),
];

/// Programs of a Java machine, by a word of the command line.
const JAVA_PROGRAMS: [&str; 1] = ["java"];
const JAVA_CLASSES: [(&str, &str); 6] = [
    ("cassandra", "org.apache.cassandra.service.CassandraDaemon"),
    ("elasticsearch", "org.elasticsearch.server"),
    ("opensearch", "org.opensearch.bootstrap.OpenSearch"),
    ("kafka", "kafka.Kafka"),
    ("neo4j", "org.neo4j.server"),
    ("h2", "org.h2.tools.Server"),
];

/// Oracle gives each of its processes a name of its own; one of them, with the instance's name, is always there.
const ORACLE_PROGRAM: &str = "oracle";
const ORACLE_TITLE: &str = "ora_pmon_";

pub(super) fn find(programs: &Programs) -> Vec<Instance> {
    let by_name = PROGRAMS.into_iter().flat_map(|(engine, names)| {
        programs.first_of(names).map(move |program| instance(engine, program, None)).collect::<Vec<_>>()
    });
    let java = programs.iter().filter(|program| JAVA_PROGRAMS.contains(&program.name.as_str()));
    let java = java.filter_map(|program| Some(instance(java_engine(&program.arguments())?, program, None)));
    let oracle = programs.iter().filter(|program| program.name == ORACLE_PROGRAM);
    let oracle = oracle.filter_map(|program| {
        let title = program.title();
        let name = title.strip_prefix(ORACLE_TITLE)?;
        Some(instance("oracle", program, Some(name.to_owned())))
    });
    by_name.chain(java).chain(oracle).collect()
}

fn java_engine(arguments: &[String]) -> Option<&'static str> {
    // The class stands alone, or behind the name of a module and a slash.
    let is_class = |argument: &String, class: &str| {
        argument.starts_with(class) || argument.contains(&format!("/{class}"))
    };
    let mut known = JAVA_CLASSES.into_iter();
    known
        .find(|(_, class)| arguments.iter().any(|argument| is_class(argument, class)))
        .map(|(engine, _)| engine)
}

fn instance(engine: &'static str, program: &Program, name: Option<String>) -> Instance {
    let mut finder = Finder::new(program.pid);
    finder.add_open(role_of);
    let notes = finder.note().into_iter().collect();
    Instance {
        engine: Engine::Other(engine),
        pid: program.pid,
        start_ticks: program.start_ticks,
        user: program.user,
        name,
        part: None,
        version: None,
        files: finder.finish(),
        attempts: Vec::new(),
        notes,
    }
}

/// The role of a file open for writing, by words that many engines use.
fn role_of(file: &OpenFile) -> Option<Role> {
    let path = file.path.to_str()?.to_ascii_lowercase();
    let name = path.rsplit('/').next()?;
    if !file.is_writable || name.ends_with(".log") && !path.contains("journal") && !path.contains("wal") {
        return None;
    }
    Some(match () {
        () if file.is_deleted => Role::Temp,
        () if path.contains("/journal/") || path.contains("/wal/") || path.contains("commitlog") => Role::Log,
        () if name.ends_with(".aof") || name.ends_with(".wal") => Role::Log,
        () => Role::Data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_in_java_are_known_by_their_class() {
        let engine = |line: &str| java_engine(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(engine("-Xmx1g -cp /a kafka.Kafka /etc/kafka.properties"), Some("kafka"));
        assert_eq!(
            engine("-m org.elasticsearch.server/org.elasticsearch.bootstrap.Elasticsearch"),
            Some("elasticsearch")
        );
        assert_eq!(engine("-jar app.jar"), None);
    }

    #[test]
    fn a_log_of_messages_is_no_file_of_the_database() {
        let _open = std::fs::File::open("/proc/self/exe").unwrap();
        let any = host::open_files(std::process::id()).pop().unwrap();
        let role = |path: &str, is_writable| {
            let mut file = any.clone();
            (file.path, file.is_deleted, file.is_writable) = (path.into(), false, is_writable);
            role_of(&file)
        };
        assert_eq!(role("/var/lib/mongodb/collection-0.wt", true), Some(Role::Data));
        assert_eq!(role("/var/lib/mongodb/journal/WiredTigerLog.0001", true), Some(Role::Log));
        assert_eq!(role("/var/log/mongodb/mongod.log", true), None);
        assert_eq!(role("/usr/share/zoneinfo", false), None);
    }
}
