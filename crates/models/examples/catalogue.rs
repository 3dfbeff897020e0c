//! Writes litellm's table as the catalogue that is built in: `catalogue TABLE VERSION DATE`, to standard output.
//! `catalogue/generate.py` runs it.

use std::error::Error;
use std::io::Write;

use larder_models::catalogue::{Catalogue, Source};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [table, version, date] = &arguments[..] else {
        return Err("usage: catalogue TABLE VERSION DATE".into());
    };
    let source = Source {
        format: 1,
        source: format!("litellm {version}, model_prices_and_context_window_backup.json"),
        date: date.clone(),
        license: "MIT".to_owned(),
    };
    let catalogue = Catalogue::read(&std::fs::read_to_string(table)?, source)?;
    std::io::stdout().write_all(catalogue.to_text().as_bytes())?;
    Ok(())
}
