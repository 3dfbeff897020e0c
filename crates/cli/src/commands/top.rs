//! `larder top`: shows the activity of a running gateway, continuously or once. Reads the gateway's API; knows no
//! store.

use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use console::{Key, Style, Term, measure_text_width, truncate_str};
use larder_gateway::live_stats::LiveUpdate;
use larder_models::plain_client::PlainClient;
use larder_models::secret::Secret;
use larder_proxy::record::{RequestSummary, Tokens};
use tokio::sync::oneshot;

use crate::args::{Format, Global};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

/// The gateway's live endpoint.
const PATH: &str = "api/v1/live";
/// Time for the gateway to answer.
const LIMIT: Duration = Duration::from_secs(5);
/// How often it is polled.
const PACE: Duration = Duration::from_secs(1);
/// Requests that are printed once.
const PRINTED: usize = 20;

pub async fn run(global: Global, gateway: Option<String>, once: bool) -> Result<(), CliError> {
    let format = global.format;
    let gateway = match gateway {
        Some(gateway) => gateway,
        None => address(CommandContext::new(global)?.config.gateway().listen),
    };
    let gateway = gateway.as_str();
    let key = std::env::var("LARDER_KEY").ok().and_then(|key| Secret::new(&key));
    let server = PlainClient::new("the gateway", gateway, key, LIMIT)?;
    if format == Format::Json {
        return output::json(&ask(&server, gateway).await?);
    }
    if once || !io::stdout().is_terminal() {
        return output::line(&table(&ask(&server, gateway).await?));
    }
    // Asked before the screen changes: an error of the first request stays visible.
    let first = ask(&server, gateway).await?;
    let terminal = Term::stdout();
    terminal.write_str(OPEN).map_err(CliError::Print)?;
    let watched = watch(&terminal, &server, gateway, first).await;
    terminal.write_str(CLOSE).map_err(CliError::Print)?;
    watched
}

/// The address of a gateway on this machine that listens there.
fn address(listen: SocketAddr) -> String {
    let host = match listen.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    format!("http://{}", SocketAddr::new(host, listen.port()))
}

/// Switches to the second screen of the terminal, without a cursor …
const OPEN: &str = "\u{1b}[?1049h\u{1b}[?25l";
/// … and back to the first.
const CLOSE: &str = "\u{1b}[?25h\u{1b}[?1049l";

async fn ask(server: &PlainClient, gateway: &str) -> Result<LiveUpdate, CliError> {
    let (status, body) = server.get(PATH).await?;
    match status.as_u16() {
        200 => serde_json::from_slice(&body).map_err(|error| {
            CliError::Fixable(format!("{gateway} answered, but not like a gateway of this version: {error}"))
        }),
        401 | 403 if std::env::var_os("LARDER_KEY").is_some() => Err(CliError::Fixable(format!(
            "{gateway} refuses the key in $LARDER_KEY; set one that `larder keys list` shows as valid"
        ))),
        401 | 403 => Err(CliError::Fixable(format!(
            "{gateway} requires a key; set $LARDER_KEY (`larder keys create` creates one)"
        ))),
        other => {
            Err(CliError::Fixable(format!("{gateway} answered with status {other}; is it a Larder gateway?")))
        }
    }
}

/// Draws and polls until the user quits. A failed poll is shown below and repeated.
async fn watch(
    terminal: &Term,
    server: &PlainClient,
    gateway: &str,
    mut news: LiveUpdate,
) -> Result<(), CliError> {
    let mut left = left(terminal.clone());
    let mut trouble = None;
    loop {
        let (height, width) = terminal.size();
        let lines = screen(gateway, &news, trouble.as_deref(), usize::from(width), usize::from(height));
        // Each line ends by clearing the rest of it, and the last line clears everything below.
        let drawn = format!("\u{1b}[H{}\u{1b}[K\u{1b}[J", lines.join("\u{1b}[K\r\n"));
        terminal.write_str(&drawn).map_err(CliError::Print)?;
        tokio::select! {
            read = &mut left => return read.unwrap_or(Ok(())).map_err(CliError::Print),
            () = tokio::time::sleep(PACE) => {}
        }
        match ask(server, gateway).await {
            Ok(newer) => (news, trouble) = (newer, None),
            Err(error) => trouble = Some(error.to_string()),
        }
    }
}

/// Waits in a separate thread for a key that ends the program.
fn left(terminal: Term) -> oneshot::Receiver<io::Result<()>> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let read = loop {
            match terminal.read_key_raw() {
                Ok(Key::Char('q') | Key::Escape | Key::CtrlC) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        // Without a receiver the program is ending already.
        let _ = sender.send(read);
    });
    receiver
}

/// The whole screen, line by line, none longer than `width` nor more than `height` of them.
fn screen(
    gateway: &str,
    news: &LiveUpdate,
    trouble: Option<&str>,
    width: usize,
    height: usize,
) -> Vec<String> {
    let state = match trouble {
        None => Style::new().green().apply_to("live"),
        Some(_) => Style::new().red().apply_to("no answer"),
    };
    let mut lines = vec![format!("{} {} {state}", Style::new().bold().apply_to("Larder"), plain(gateway))];
    lines.extend(framed("Totals", &summary(news), width));
    lines.extend(framed("The last window", &[gauge(news, width.saturating_sub(2))], width));
    let rest = height.saturating_sub(lines.len() + 4);
    lines.extend(framed("The last requests", &requests(news, width.saturating_sub(2), rest), width));
    let hint = trouble.map_or_else(|| "q quits".to_owned(), plain);
    lines.truncate(height.saturating_sub(1));
    lines.push(Style::new().dim().apply_to(hint).to_string());
    lines.iter().map(|line| truncate_str(line, width, "").into_owned()).collect()
}

/// Lines in a frame with a title.
fn framed(title: &str, lines: &[String], width: usize) -> Vec<String> {
    let inside = width.saturating_sub(2);
    let bar = "─".repeat(inside.saturating_sub(title.len()));
    let mut framed = vec![format!("┌{title}{bar}┐")];
    framed.extend(lines.iter().map(|line| format!("│{}│", padded(line, inside))));
    framed.push(format!("└{}┘", "─".repeat(inside)));
    framed
}

/// A text in exactly `width` columns.
fn padded(text: &str, width: usize) -> String {
    let text = truncate_str(text, width, "");
    let missing = width.saturating_sub(measure_text_width(&text));
    format!("{text}{}", " ".repeat(missing))
}

/// How full the last window is, as a bar with its figures in the middle.
fn gauge(news: &LiveUpdate, width: usize) -> String {
    let tokens = news.totals.last.as_deref().map(|head| head.tokens).unwrap_or_default();
    let share = if tokens.budget == 0 { 0.0 } else { tokens.after as f64 / tokens.budget as f64 };
    let words = used(&tokens);
    let before = width.saturating_sub(words.len()) / 2;
    let bar = padded(&format!("{}{words}", " ".repeat(before)), width);
    // The words are ASCII, so bytes are columns.
    let (full, empty) = bar.split_at((share.clamp(0.0, 1.0) * width as f64).round() as usize);
    format!("{}{}", Style::new().on_blue().apply_to(full), Style::new().blue().apply_to(empty))
}

/// How much of its budget a prompt uses; a model whose window is unknown has none.
fn used(tokens: &Tokens) -> String {
    let budget = if tokens.budget == 0 { "unknown".to_owned() } else { tokens.budget.to_string() };
    format!("{} of {budget} tokens, reserve {}", tokens.after, tokens.reserve)
}

/// A line of titles and at most `count` requests, the last one first.
fn requests(news: &LiveUpdate, width: usize, count: usize) -> Vec<String> {
    // Five columns have a fixed width, each followed by a space; the model's name takes the rest.
    let name = width.saturating_sub(8 + 13 + 19 + 9 + 15 + 5);
    let line = |cells: [String; 6]| {
        let widths = [8, name, 13, 19, 9, 15];
        let cells: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| padded(cell, width)).collect();
        cells.join(" ")
    };
    let titles = Style::new().bold().apply_to(line(COLUMNS.map(str::to_owned))).to_string();
    let last = news.recent.iter().rev().take(count).map(|head| line(cells(head)));
    std::iter::once(titles).chain(last).collect()
}

const COLUMNS: [&str; 6] = ["time", "model", "decision", "prompt tokens", "took", "outcome"];

fn cells(head: &RequestSummary) -> [String; 6] {
    let time = head.time.to_string();
    let model = head.answered_by.as_ref().map_or(&head.model, |model| &model.id);
    let decision = head.decision.as_ref().map_or("-", |decision| decision.status.as_str());
    let tokens = match head.tokens.saved() {
        0 => head.tokens.after.to_string(),
        _ => format!("{} of {}", head.tokens.after, head.tokens.before),
    };
    [
        time.get(11..19).unwrap_or_default().to_owned(),
        plain(model),
        decision.to_owned(),
        tokens,
        format!("{} ms", head.times.total_us / 1_000),
        head.outcome.as_str().to_owned(),
    ]
}

/// Text by others without control characters.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn summary(news: &LiveUpdate) -> [String; 4] {
    let totals = &news.totals;
    [
        format!(
            "requests {}   under way {}   refused {}   failed {}   sessions {}",
            totals.requests, totals.in_flight, totals.refused, totals.failed, totals.sessions
        ),
        format!(
            "tokens sent {} of {}   saved {}   compactions {}   read back {}",
            totals.prompt_tokens,
            totals.tokens_before,
            totals.tokens_saved,
            totals.compactions,
            totals.refetches
        ),
        format!(
            "cost ${} instead of ${}   saved ${}",
            totals.cost,
            totals.cost_without,
            plain(&totals.saved)
        ),
        format!(
            "within budget {}   shrunk to fit {}   rejected {}   violations {}",
            totals.decisions.ok, totals.decisions.needs_summary, totals.decisions.reject, totals.violations
        ),
    ]
}

/// The same output for a pipe.
fn table(news: &LiveUpdate) -> String {
    let mut lines = summary(news).to_vec();
    if let Some(head) = &news.totals.last {
        let tokens = head.tokens;
        lines.push(format!("last window {}   pointers {}", used(&tokens), head.shape.pointers));
    }
    let line = |cells: [String; 6]| {
        let [time, model, decision, tokens, took, outcome] = cells;
        format!("{time:<8}  {model:<24}  {decision:<13}  {tokens:<19}  {took:>9}  {outcome}")
    };
    lines.push(String::new());
    lines.push(line(COLUMNS.map(str::to_owned)));
    lines.extend(news.recent.iter().rev().take(PRINTED).map(|head| line(cells(head))));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_gateway::live_stats::LiveStats;
    use larder_store::Timestamp;

    #[test]
    fn a_request_is_shown_with_its_model_and_not_with_its_server() {
        let numbers = |names: &[&str]| -> serde_json::Value { names.iter().map(|name| (*name, 0)).collect() };
        let forms = || numbers(&["whole", "condensed", "pointer", "absent"]);
        let mut shape = numbers(&["pointers", "compactions", "rehydrations", "epoch"]);
        (shape["parts"], shape["tokens"]) = (forms(), forms());
        let tokens = ["system", "tools", "messages", "before", "after", "budget", "reserve", "output"];
        let head = serde_json::json!({
            "id": "1", "time": "2026-11-21T12:00:00.000Z", "user": "ada", "wire": "chat", "model": "gpt-9",
            "answered_by": {"name": "gateway.openai", "id": "gpt-9", "provider": "openai"}, "stream": false,
            "outcome": "ok", "status": 200, "tokens": numbers(&tokens),
            "times": numbers(&["total_us", "upstream_us", "policy_us"]), "shape": shape});
        let head: RequestSummary = serde_json::from_value(head).unwrap();
        let cells = cells(&head);
        assert_eq!([&*cells[0], &*cells[1], &*cells[5]], ["12:00:00", "gpt-9", "ok"]);
    }

    #[test]
    fn a_gateway_without_requests_is_drawn_and_printed() {
        let news = LiveStats::new(Timestamp::from_millis(0)).user("a").news(0);
        assert!(table(&news).contains("requests 0"));
        for (width, height) in [(80, 24), (20, 5), (1, 1), (0, 0)] {
            let lines = screen("http://x\u{1b}[2J", &news, Some("no route\u{7}"), width, height);
            assert!(lines.len() <= height.max(1), "{lines:?}");
            for line in lines {
                let shown = console::strip_ansi_codes(&line);
                assert!(measure_text_width(&shown) <= width, "{shown:?}");
                assert!(!shown.contains(char::is_control), "{shown:?}");
            }
        }
        let lines = screen("http://x", &news, None, 80, 24).join("\n");
        for text in ["Totals", "requests 0", "The last window", "0 of unknown tokens", "outcome", "q quits"] {
            assert!(lines.contains(text), "{text}: {lines}");
        }
    }
}
