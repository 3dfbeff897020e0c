//! What `larder --version --verbose` prints: how this program was built and what is compiled in.

use larder_condense::GRAMMARS;
use larder_text::tokens::Registry;

/// Whether an argument asks for more than the version: `--verbose`, or a `v` among short options.
pub fn is_verbose(argument: &str) -> bool {
    let short = argument.strip_prefix('-').filter(|short| !short.starts_with('-'));
    argument == "--verbose" || short.is_some_and(|short| short.contains('v'))
}

/// One fact in each line, its name first.
pub fn details() -> String {
    let included = |name, is_included| Some(name).filter(|_| is_included);
    let features = [included("local", cfg!(feature = "local")), included("s3", larder_store::HAS_S3)];
    let tokenizers = Registry::builtin().names().collect::<Vec<_>>().join(", ");
    let facts = [
        ("commit", env!("LARDER_COMMIT").to_owned()),
        ("target", env!("LARDER_TARGET").to_owned()),
        ("compiler", env!("LARDER_COMPILER").to_owned()),
        ("profile", env!("LARDER_PROFILE").to_owned()),
        ("features", features.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        ("tokenizers", tokenizers),
        ("grammars", GRAMMARS.join(", ")),
        ("sqlite", larder_store::sqlite_version().to_owned()),
    ];
    let lines = facts.iter().map(|(name, fact)| format!("\n{name}: {fact}"));
    format!("larder {}{}", env!("CARGO_PKG_VERSION"), lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbose_is_recognised_among_short_options() {
        for argument in ["--verbose", "-v", "-vV", "-Vvv"] {
            assert!(is_verbose(argument), "{argument}");
        }
        for argument in ["-V", "--version", "v", "--", "-"] {
            assert!(!is_verbose(argument), "{argument}");
        }
    }
}
