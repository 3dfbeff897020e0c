//! Who confirms dangerous tool calls: the user at the terminal, a flag, or no one.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use larder_tools::Confirm;

use crate::keyboard::Keyboard;
use crate::output;

/// What is shown while a call waits for an answer.
pub trait Display: Send + Sync {
    /// Clears the display for a question to the user.
    fn pause(&self);
    /// Shows it again.
    fn resume(&self);
}

/// Who confirms: `--yes`, the user at the terminal, or nobody.
pub fn by(yes: bool, keyboard: &Arc<Keyboard>, display: impl Display + 'static) -> Arc<dyn Confirm> {
    match (yes, output::is_interactive()) {
        (true, _) => Arc::new(Always),
        (false, true) => Arc::new(Asking { keyboard: Arc::clone(keyboard), display: Box::new(display) }),
        (false, false) => Arc::new(Refusing),
    }
}

/// `--yes`.
struct Always;

impl Confirm for Always {
    fn confirm<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, bool> {
        async { true }.boxed()
    }
}

/// Refuses: there is no terminal to ask at. The output says what was refused and why.
pub struct Refusing;

impl Confirm for Refusing {
    fn confirm<'a>(&'a self, _: &'a str, what: &'a str) -> BoxFuture<'a, bool> {
        output::say(&format!(
            "refused: {}; there is no terminal to confirm it, and --yes was not given",
            visible(what)
        ));
        async { false }.boxed()
    }
}

/// Asks the user; anything but yes is a refusal.
struct Asking {
    keyboard: Arc<Keyboard>,
    display: Box<dyn Display>,
}

impl Confirm for Asking {
    fn confirm<'a>(&'a self, _: &'a str, what: &'a str) -> BoxFuture<'a, bool> {
        async move {
            self.display.pause();
            output::say(&format!("{}\nallow this? [y/N]", visible(what)));
            let line = self.keyboard.line().await;
            self.display.resume();
            matches!(line, Ok(Some(line)) if matches!(line.trim(), "y" | "Y" | "yes"))
        }
        .boxed()
    }
}

/// A call with control characters escaped, so that nothing in it moves the cursor or hides other text.
fn visible(what: &str) -> String {
    let shown =
        |char: char| if char.is_control() { char.escape_default().to_string() } else { char.to_string() };
    what.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("run(\"rm\")\r\u{1b}[2Kls"), "run(\"rm\")\\r\\u{1b}[2Kls");
    }
}
