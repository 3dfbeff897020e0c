//! `larder top`: what a running gateway is doing, watched or once. Reads the gateway's own API; knows no store.

use std::io::{self, IsTerminal};
use std::time::Duration;

use larder_gateway::live_stats::LiveUpdate;
use larder_models::plain::Plain;
use larder_models::secret::Secret;
use larder_proxy::record::RequestSummary;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame};

use crate::args::{Format, Global};
use crate::error::CliError;
use crate::output;

/// Where the gateway tells what it is doing.
const PATH: &str = "api/v1/live";
/// Time for the gateway to answer.
const LIMIT: Duration = Duration::from_secs(5);
/// How often it is asked.
const PACE: Duration = Duration::from_secs(1);
/// Requests that are printed once.
const PRINTED: usize = 20;

pub async fn run(global: &Global, gateway: &str, once: bool) -> Result<(), CliError> {
    let key = std::env::var("LARDER_KEY").ok().and_then(|key| Secret::new(&key));
    let server = Plain::new("the gateway", gateway, key, LIMIT)?;
    if global.format == Format::Json {
        return output::json(&ask(&server, gateway).await?);
    }
    if once || !io::stdout().is_terminal() {
        return output::line(&table(&ask(&server, gateway).await?));
    }
    // Asked before the screen is taken: a gateway that is not there is said as an error, in plain sight.
    let first = ask(&server, gateway).await?;
    let terminal = ratatui::try_init().map_err(CliError::Print)?;
    let watched = watch(terminal, &server, gateway, first).await;
    ratatui::restore();
    watched
}

async fn ask(server: &Plain, gateway: &str) -> Result<LiveUpdate, CliError> {
    let (status, body) = server.get(PATH).await?;
    match status.as_u16() {
        200 => serde_json::from_slice(&body).map_err(|error| {
            CliError::Fixable(format!("{gateway} answered, but not like a gateway of this version: {error}"))
        }),
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
    mut terminal: DefaultTerminal,
    server: &Plain,
    gateway: &str,
    mut news: LiveUpdate,
) -> Result<(), CliError> {
    let mut trouble = None;
    loop {
        terminal.draw(|frame| draw(frame, gateway, &news, trouble.as_deref())).map_err(CliError::Print)?;
        if tokio::task::block_in_place(left).map_err(CliError::Print)? {
            return Ok(());
        }
        match ask(server, gateway).await {
            Ok(newer) => (news, trouble) = (newer, None),
            Err(error) => trouble = Some(error.to_string()),
        }
    }
}

/// Whether the user quits before the next poll.
fn left() -> io::Result<bool> {
    if !event::poll(PACE)? {
        return Ok(false);
    }
    let Event::Key(key) = event::read()? else { return Ok(false) };
    let interrupted = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    Ok(key.kind == KeyEventKind::Press
        && (interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)))
}

fn draw(frame: &mut Frame<'_>, gateway: &str, news: &LiveUpdate, trouble: Option<&str>) {
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(6),
        Constraint::Length(3),
        Constraint::Min(3),
        Constraint::Length(1),
    ]);
    let [title, totals, window, requests, foot] = areas.areas(frame.area());
    let state = match trouble {
        None => Span::from("live").fg(Color::Green),
        Some(_) => Span::from("no answer").fg(Color::Red),
    };
    let words = Line::from(vec![Span::from("Larder ").bold(), Span::from(plain(gateway)), " ".into(), state]);
    frame.render_widget(Paragraph::new(words), title);
    let lines: Vec<Line<'_>> = summary(news).into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("Totals")), totals);
    draw_window(frame, window, news);
    draw_requests(frame, requests, news);
    let hint = trouble.map_or_else(|| "q quits".to_owned(), plain);
    frame.render_widget(Paragraph::new(hint).dim(), foot);
}

fn draw_window(frame: &mut Frame<'_>, area: Rect, news: &LiveUpdate) {
    let tokens = news.totals.last.as_deref().map(|head| head.tokens).unwrap_or_default();
    let ratio = if tokens.budget == 0 { 0.0 } else { tokens.after as f64 / tokens.budget as f64 };
    let words = format!("{} of {} tokens, reserve {}", tokens.after, tokens.budget, tokens.reserve);
    let gauge = Gauge::default()
        .block(Block::bordered().title("The last window"))
        .gauge_style(Style::default().fg(Color::Blue))
        .ratio(ratio.clamp(0.0, 1.0))
        .label(words);
    frame.render_widget(gauge, area);
}

fn draw_requests(frame: &mut Frame<'_>, area: Rect, news: &LiveUpdate) {
    let rows = news.recent.iter().rev().map(|head| Row::new(cells(head)));
    let widths = [
        Constraint::Length(8),
        Constraint::Fill(2),
        Constraint::Length(13),
        Constraint::Length(19),
        Constraint::Length(9),
        Constraint::Length(15),
    ];
    let head = Row::new(COLUMNS).style(Style::default().add_modifier(Modifier::BOLD));
    let table = Table::new(rows, widths).header(head).block(Block::bordered().title("The last requests"));
    frame.render_widget(table, area);
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
            "fit {}   condensed {}   rejected {}   violations {}",
            totals.decisions.ok, totals.decisions.needs_summary, totals.decisions.reject, totals.violations
        ),
    ]
}

/// The same for a pipe.
fn table(news: &LiveUpdate) -> String {
    let mut lines = summary(news).to_vec();
    if let Some(head) = &news.totals.last {
        let tokens = head.tokens;
        lines.push(format!(
            "last window {} of {} tokens   reserve {}   pointers {}",
            tokens.after, tokens.budget, tokens.reserve, head.shape.pointers
        ));
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
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

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
        for (width, height) in [(80, 24), (20, 5), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, "http://x\u{1b}[2J", &news, Some("gone\u{7}"))).unwrap();
            let cells = terminal.backend().buffer().content();
            assert!(cells.iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
        }
    }
}
