use terminal::{Done, FINE, Output};

/// Arguments of `headroom sources capture-script`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom sources capture-script sqlserver > capture.sql
  headroom sources capture-script sqlserver --database Tools > capture.sql
  sqlcmd -S SERVER -d Tools -E -i capture.sql          on the machine that reaches the server
  headroom history import file_stats.csv               the exported table")]
pub struct CaptureScriptArgs {
    /// For which server: sqlserver
    engine: Engine,
    /// Begin with USE of this database [default: the current one]
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
}

/// A server that can keep its own history.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Engine {
    /// SQL Server 2012 to 2022, Azure SQL Database.
    Sqlserver,
}

/// `headroom sources capture-script`: the script on stdout.
pub fn run(args: &CaptureScriptArgs, out: &mut Output) -> Done {
    let script = match args.engine {
        Engine::Sqlserver => {
            let database = args.database.as_ref();
            let used =
                database.map_or(String::new(), |name| format!("USE [{}];\nGO\n\n", name.replace(']', "]]")));
            format!("{used}{}", import::SQLSERVER_CAPTURE_SCRIPT)
        }
    };
    out.answer(|_| script.clone(), || serde_json::json!({"script": script}));
    Ok(FINE)
}
