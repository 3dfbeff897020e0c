//! `larder config`: prints every setting with its value, origin and meaning.

use larder_engine::config::factor_in_key;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

/// Width of the lines that explain a setting, in columns.
const WIDTH: usize = 100;

pub fn run(context: &CommandContext) -> Result<(), CliError> {
    let mut settings = context.learned()?.0.settings();
    // The settings of a project that cannot be opened are listed nonetheless, with all factors.
    if settings.iter().any(|setting| factor_in_key(&setting.key).is_some())
        && let Ok(engine) = context.engine_to_read()
    {
        settings.retain(|setting| {
            factor_in_key(&setting.key).is_none_or(|(id, estimate)| engine.estimates_by(id, estimate))
        });
    }
    if context.global.format == Format::Json {
        return output::json(&settings);
    }
    for setting in &settings {
        output::line(&format!("{:<32} {:<24} {}", setting.key, setting.value, setting.origin))?;
        for line in wrapped(setting.help, WIDTH) {
            output::line(&output::dim(&format!("    {line}")))?;
        }
    }
    Ok(())
}

/// A text in lines of at most `width` characters, as far as its words allow.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a-long-word b", 4), ["a-long-word", "b"]);
        assert!(wrapped("", 4).is_empty());
    }
}
