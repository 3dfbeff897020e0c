//! Embeds the cookbook's recipes, prompts, routers and conversation types into the library as a table from path to bytes.
//! `cookbook` is a symbolic link to the folder at the root of the repository, so that the packaged crate contains the files too.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("cookbook").canonicalize()?;
    #[allow(clippy::print_stdout, reason = "build scripts communicate with cargo on stdout")]
    {
        println!("cargo::rerun-if-changed={}", root.display());
    }
    let mut files = Vec::new();
    for top in ["recipes", "prompts", "routes", "conversations"] {
        collect(&root.join(top), top, &mut files)?;
    }
    files.sort();
    let entries: String = files
        .iter()
        .map(|(inside, path)| {
            format!("    ({inside:?}, include_bytes!({:?})),\n", path.display().to_string())
        })
        .collect();
    let table = format!("static COOKBOOK: &[(&str, &[u8])] = &[\n{entries}];\n");
    fs::write(Path::new(&variable("OUT_DIR")?).join("cookbook.rs"), table)
}

fn variable(name: &str) -> io::Result<String> {
    std::env::var(name).map_err(io::Error::other)
}

fn collect(dir: &Path, inside: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let inside = format!("{inside}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &inside, files)?;
        } else {
            files.push((inside, entry.path()));
        }
    }
    Ok(())
}
