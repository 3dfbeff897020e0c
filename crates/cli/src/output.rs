//! Printing: data on stdout, talk on stderr, colour only on terminals.

use std::io::{self, IsTerminal, Write};

use anstream::{stderr, stdout};
use serde::Serialize;

use crate::error::CliError;

const RED: &str = "\x1b[1;31m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// Prints bytes unchanged.
pub fn bytes(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(CliError::Print)
}

/// Prints a text and a line break.
pub fn line(text: &str) -> Result<(), CliError> {
    let mut out = stdout().lock();
    writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush()).map_err(CliError::Print)
}

/// Prints a possibly untrusted text and a line break: on a terminal nothing in it moves the cursor.
pub fn text(text: &str) -> Result<(), CliError> {
    if io::stdout().is_terminal() { line(&visible(text)) } else { line(text) }
}

/// A text with its control characters spelled out, but for line breaks and tabs, and those that change the order in which
/// others are shown.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\r' => {}
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => shown.extend(char.escape_unicode()),
            char if char.is_control() && !matches!(char, '\n' | '\t') => shown.extend(char.escape_default()),
            char => shown.push(char),
        }
    }
    shown
}

/// Prints data as JSON.
pub fn json(value: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| CliError::Bug(error.to_string()))?;
    text.push('\n');
    // As it is: what adapts text to terminals would take some characters out of strings.
    bytes(text.as_bytes())
}

/// A text that steps back, on terminals.
pub fn dim(text: &str) -> String {
    format!("{DIM}{text}{RESET}")
}

/// Says something on stderr.
pub fn say(text: &str) {
    // Messages that cannot be delivered are dropped: the data still counts.
    let _ = writeln!(stderr().lock(), "{}", text.trim_end_matches('\n'));
}

/// Says what went wrong.
pub fn error(text: &str) {
    // Reports of problems in files name their own severity.
    say(&if text.starts_with("error[") { text.to_owned() } else { format!("{RED}error{RESET}: {text}") });
}

/// Says what went wrong, for programs.
pub fn error_json(error: &serde_json::Value) {
    say(&error.to_string());
}

/// Whether someone is there to read and answer.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Logs to stderr: errors, or more when asked. `LARDER_LOG` overrides. Why a server could not be reached is logged for
/// people in any case: errors do not name its address, because a gateway shows them to its clients.
pub fn start_logging(verbose: u8, is_for_people: bool) {
    let level = match verbose {
        0 if is_for_people => "error,larder_models::http=warn,rmcp=off",
        0 => "error,rmcp=off",
        1 => "larder=info,warn,rmcp=off",
        // The protocol library reports in its own words what a command reports in plain ones.
        // At `info`, the protocol library logs messages; logs must contain no payloads.
        _ => "larder=debug,larder_models=debug,larder_store=debug,info,rmcp=warn",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("LARDER_LOG").unwrap_or_else(|_| level.into());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .without_time()
        .try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_cannot_move_the_cursor() {
        assert_eq!(visible("a\u{1b}]52;c;x\u{7}\r\n\té"), "a\\u{1b}]52;c;x\\u{7}\n\té");
        assert_eq!(visible("a\u{202E}cba"), "a\\u{202e}cba");
    }
}
