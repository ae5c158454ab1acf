//! Targets on real file systems and devices: what they are, what is refused, what is made and removed.

mod facts;
mod in_use;
mod made_files;
mod refusals;
mod workspaces;
