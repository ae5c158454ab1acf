use crate::{PROGRAM, command_tree};
use clap_complete::Shell;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Each shell, its directory here, and the name that it looks a completion up by.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash", "headroom"),
    (Shell::Zsh, "zsh", "_headroom"),
    (Shell::Fish, "fish", "headroom.fish"),
];

/// Writes a completion for each shell.
pub fn write(directory: &Path) -> io::Result<()> {
    for (shell, folder, name) in SHELLS {
        let folder = directory.join(folder);
        fs::create_dir_all(&folder)?;
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command_tree(), PROGRAM, &mut script);
        io::Write::write_all(&mut File::create(folder.join(name))?, &script)?;
    }
    Ok(())
}
