use clap::Command;
use clap_complete::Shell;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Writes a completion for each shell: a directory here, and the name that the shell looks it up by.
pub fn write(tree: &Command, program: &str, directory: &Path) -> io::Result<()> {
    let shells = [
        (Shell::Bash, "bash", program.to_owned()),
        (Shell::Zsh, "zsh", format!("_{program}")),
        (Shell::Fish, "fish", format!("{program}.fish")),
    ];
    for (shell, folder, name) in shells {
        let folder = directory.join(folder);
        fs::create_dir_all(&folder)?;
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut tree.clone(), program, &mut script);
        io::Write::write_all(&mut File::create(folder.join(name))?, &script)?;
    }
    Ok(())
}
