//! Works out when the crate is built what follows from the vocabularies compiled in, so that no process spends its
//! first count on it: which characters no token joins, and how far one token reaches.

use std::path::Path;
use std::{env, error, fs};

#[path = "src/tokens/bridges.rs"]
#[allow(dead_code, reason = "the crate reads what is written here")]
mod bridges;
#[path = "src/tokens/reach.rs"]
#[allow(dead_code, reason = "the crate reads what is written here")]
mod reach;

fn main() -> Result<(), Box<dyn error::Error>> {
    let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set; build with cargo")?;
    let folder = Path::new(&folder);
    for name in ["cl100k_base", "o200k_base"] {
        let vocabulary = tiktoken::get_encoding(name).ok_or("a vocabulary is not compiled in")?;
        let ids = 0..u32::try_from(vocabulary.vocab_size())?;
        let tokens: Vec<Vec<u8>> = ids.map(|id| vocabulary.decode(&[id])).collect();
        fs::write(
            folder.join(name).with_extension("bridges"),
            bridges::Bridges::bytes(tokens.iter().cloned()),
        )?;
        fs::write(folder.join(name).with_extension("reach"), reach::Reach::bytes(tokens.into_iter()))?;
    }
    #[allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
    for file in ["build.rs", "src/tokens/bridges.rs", "src/tokens/reach.rs"] {
        println!("cargo::rerun-if-changed={file}");
    }
    Ok(())
}
