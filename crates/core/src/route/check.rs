//! Checks the presets of a project: reports every problem, and returns those without errors.

use std::collections::BTreeMap;

use super::{Preset, file};
use crate::recipe::check::read_text;
use crate::recipe::diagnostic::{Diagnostic, DiagnosticSink};
use crate::recipe::{DiagnosticCode, ProjectFiles, fields};

/// The presets of a project.
#[derive(Debug, Clone, Default)]
pub struct Presets {
    /// Those without errors, by name.
    pub usable: BTreeMap<String, Preset>,
    /// The names of all, those with errors included.
    pub names: Vec<String>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

/// Whether a file belongs to the router.
fn is_preset_path(path: &str) -> bool {
    path.starts_with("routes/") && [".yaml", ".yml"].iter().any(|end| path.ends_with(end))
}

/// Checks every `routes/NAME.yaml` of a project.
pub fn check(files: &ProjectFiles) -> Presets {
    let mut presets = Presets::default();
    for (path, bytes) in files.iter().filter(|(path, _)| is_preset_path(path)) {
        let text = match read_text(path, bytes) {
            Ok(text) => text,
            Err(diagnostic) => {
                presets.diagnostics.push(diagnostic);
                continue;
            }
        };
        let mut sink = DiagnosticSink::new(path, &text);
        let name = path.strip_prefix("routes/").and_then(|rest| rest.strip_suffix(".yaml"));
        match name.filter(|name| fields::is_plain_name(name)) {
            Some(name) => {
                presets.names.push(name.to_owned());
                if let Some(preset) = file::parse(name, bytes, &mut sink) {
                    presets.usable.insert(name.to_owned(), preset);
                }
            }
            None => {
                let message = format!("{path:?} is not of the form routes/name.yaml");
                let help = "rename or move the file; it is not loaded from here";
                sink.report(DiagnosticCode::Layout, &(0..0), message, help);
            }
        }
        presets.diagnostics.extend(sink.into_found());
    }
    presets
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
