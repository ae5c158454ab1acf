use std::path::PathBuf;
use terminal::{Done, FINE, Failure, Output};

/// The library's name as cargo builds it.
const LIBRARY: &str = "libheadroom_sqlite.so";

/// Where packages install it, from the directory of the program.
const PACKAGED: &str = "../lib/headroom";

/// The extension: beside this program, or where a package installs it.
pub fn path() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format_args!("cannot tell where headroom is installed: {error}")))?;
    let beside = program.with_file_name(LIBRARY);
    let packaged = program.with_file_name(PACKAGED).join(LIBRARY).canonicalize();
    match packaged {
        _ if beside.exists() => Ok(beside),
        Ok(packaged) => Ok(packaged),
        Err(_) => {
            let directory = program.parent().unwrap_or(&program).display();
            Err(Failure::new(format_args!("cannot find {LIBRARY}: looked in {directory}"))
                .with_remedy(crate::INSTALL))
        }
    }
}

/// `headroom sources sqlite-extension`: where the extension is and how a program loads it.
pub fn run(out: &mut Output) -> Done {
    let library = path()?;
    let path = library.display();
    out.answer(
        |_| {
            format!(
                "{path}\n\n\
                 Connections opened after it is loaded are counted. In the sqlite3 shell:\n\
                 \x20 sqlite3 -cmd '.load {path}' -cmd '.open /data/shop.db'\n\
                 In Python:\n\
                 \x20 c = sqlite3.connect(':memory:'); c.enable_load_extension(True); c.load_extension('{path}')\n\
                 \x20 shop = sqlite3.connect('/data/shop.db')\n\
                 Then, from outside:\n\
                 \x20 headroom check --source sqlite:/data/shop.db"
            )
        },
        || serde_json::json!({"path": library}),
    );
    Ok(FINE)
}
