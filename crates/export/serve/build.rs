//! Lists the files of the page (`page/`) for the server, each with its type and an ETag of its content.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("page");
    println!("cargo::rerun-if-changed=page");
    println!("cargo::rerun-if-changed=build.rs");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(&root)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    let mut list = String::from("&[\n");
    for path in paths {
        // A licence or a checksum is not served.
        let Some(content_type) = content_type(&path) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let etag = format!("\"{:016x}\"", hash(&fs::read(&path)?));
        // Writing into a String cannot fail.
        let _ = writeln!(
            list,
            "    File {{ name: {name:?}, content_type: {content_type:?}, etag: {etag:?}, bytes: include_bytes!({path:?}) }},"
        );
    }
    list.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("files.rs"), list)
}

fn content_type(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

/// FNV-1a, 64 bits: it changes with the content, and is no protection against anyone.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
