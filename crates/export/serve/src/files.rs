//! The files of the page, embedded in the program.

use crate::encoding::gzip;
use std::sync::OnceLock;

/// A file.
pub(crate) struct File {
    /// Its path without the slash.
    pub name: &'static str,
    pub content_type: &'static str,
    /// Changes with the content.
    pub etag: &'static str,
    pub bytes: &'static [u8],
}

/// All of them, by name.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Each file compressed, in their order: once, since the thread that serves would do it for each request.
static COMPRESSED: OnceLock<Vec<Option<Vec<u8>>>> = OnceLock::new();

impl File {
    /// Its compressed content.
    pub fn gzip(&self) -> Option<&'static [u8]> {
        let compressed = COMPRESSED.get_or_init(|| FILES.iter().map(|file| gzip(file.bytes)).collect());
        let at = FILES.iter().position(|file| file.name == self.name)?;
        compressed.get(at)?.as_deref()
    }
}

/// The file at a path.
pub(crate) fn at(path: &str) -> Option<&'static File> {
    let name = if path == "/" { "index.html" } else { path.strip_prefix('/')? };
    FILES.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_there_and_nothing_beside_it() {
        let page = at("/").unwrap();
        assert_eq!((page.name, page.content_type), ("index.html", "text/html; charset=utf-8"));
        assert!(page.bytes.starts_with(b"<!") && page.etag.starts_with('"'));
        for path in ["", "//", "/../Cargo.toml", "/uplot.LICENSE", "/index.html/"] {
            assert!(at(path).is_none(), "{path}");
        }
    }
}
