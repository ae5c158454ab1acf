use crate::{counted_sqlite, lab_failure};
use ::lab::footprint::{Place, footprint};
use collect::SqlTarget;
use terminal::{Done, FINE, Failure, Output, SourceName};

/// Arguments of `headroom lab footprint`.
#[derive(clap::Args)]
#[command(after_help = "\
The query runs on the server, or on the file in this program, and only reads. Root sees what
came from the storage; the page cache and the server's own are left as they are.

Examples:
  headroom lab footprint 'SELECT * FROM orders' --source sqlite:/data/shop.db
  headroom lab footprint 'SELECT count(*) FROM orders' --source postgres:host=/run/postgresql
  headroom lab footprint 'SELECT * FROM orders' --source mysql://root@localhost/ --database shop")]
pub struct FootprintArgs {
    /// A query that only reads
    #[arg(value_name = "SELECT")]
    query: String,
    /// Server or file: postgres:CONNECTION, mysql:CONNECTION or sqlite:PATH
    #[arg(long, value_name = "SOURCE", value_parser = collect::parse_source_argument)]
    source: SourceName,
    /// The database of a MySQL or MariaDB server that the query's tables are in
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
}

/// `headroom lab footprint`.
pub fn run(args: &FootprintArgs, out: &mut Output) -> Done {
    let place = match args.source.sql_target.clone() {
        Some(SqlTarget::Sqlite(path)) => Place::Sqlite(path),
        Some(SqlTarget::Postgres(connection)) => Place::Postgres(connection),
        Some(SqlTarget::Mysql(connection)) => Place::Mysql(connection),
        None => {
            return Err(Failure::usage(format_args!("{} runs no queries", args.source))
                .with_remedy("postgres:CONNECTION, mysql:CONNECTION or sqlite:PATH"));
        }
    };
    if args.database.is_some() && !matches!(place, Place::Mysql(_)) {
        return Err(Failure::usage("--database is for mysql: the other sources name theirs"));
    }
    out.progress(format_args!("running the query on {}", args.source), None);
    let moved = footprint(&place, &args.query, args.database.as_deref(), counted_sqlite()?);
    let mut moved = moved.map_err(lab_failure)?;
    moved.source = args.source.to_string();
    let version = env!("CARGO_PKG_VERSION");
    out.answer(
        |style| renderings::text::footprint(&moved, style),
        || renderings::json::footprint(&moved, version),
    );
    Ok(FINE)
}
