//! The components that pages are built from: panels, tables, lists of facts, chips, bars, pagers. They own the markup,
//! its accessible names and its CSS classes. They know nothing of what a page shows.

use larder_core::pack::Rendition;
use maud::{Markup, PreEscaped, Render, html};

use super::figures::share;

/// The heading of a page: its title, a line about it, and links or chips at its end.
pub fn heading(title: impl Render, about: impl Render, tools: Option<Markup>) -> Markup {
    html! {
        div.heading {
            div { h1 { (title) } p { (about) } }
            @if let Some(tools) = tools { div.tools { (tools) } }
        }
    }
}

/// A section of a page under a heading of its own; `id` names both.
pub fn panel(id: &str, title: impl Render, content: impl Render) -> Markup {
    html! {
        section.panel aria-labelledby=(id) { h2 id=(id) { (title) } (content) }
    }
}

/// A panel whose heading line ends in links or controls.
pub fn panel_with_tools(id: &str, title: impl Render, tools: impl Render, content: impl Render) -> Markup {
    html! {
        section.panel aria-labelledby=(id) {
            div.heading { h2 id=(id) { (title) } div.tools { (tools) } }
            (content)
        }
    }
}

/// A section without a heading, such as the only list of a page.
pub fn untitled_panel(content: impl Render) -> Markup {
    html! { section.panel { (content) } }
}

/// What a list shows while it is empty: that it is, and how entries get there.
pub fn empty(title: &str, hint: impl Render) -> Markup {
    html! { div.empty { strong { (title) } (hint) } }
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column<'t> {
    title: &'t str,
    class: Option<&'static str>,
    is_row_heading: bool,
    is_title_hidden: bool,
}

impl<'t> Column<'t> {
    /// Text, aligned to the left.
    pub const fn text(title: &'t str) -> Self {
        Self { title, class: None, is_row_heading: false, is_title_hidden: false }
    }

    /// Numbers, aligned to the right.
    pub const fn number(title: &'t str) -> Self {
        Self { class: Some("numeric"), ..Self::text(title) }
    }

    /// A picture of what other columns say in numbers; screen readers get `title` alone.
    pub const fn bar(title: &'t str) -> Self {
        Self { is_title_hidden: true, ..Self::text(title).wide() }
    }

    /// Left out on narrow screens.
    pub const fn wide(self) -> Self {
        let class = if self.class.is_some() { "numeric wide-only" } else { "wide-only" };
        Self { class: Some(class), ..self }
    }

    /// The column that names its row.
    pub const fn heading(self) -> Self {
        Self { is_row_heading: true, ..self }
    }
}

/// A row of a table: one cell for each column.
#[derive(Debug)]
pub struct Row<const N: usize> {
    cells: [Markup; N],
    id: Option<String>,
}

impl<const N: usize> From<[Markup; N]> for Row<N> {
    fn from(cells: [Markup; N]) -> Self {
        Self { cells, id: None }
    }
}

impl<const N: usize> Row<N> {
    /// A row that links lead to.
    pub const fn with_id(cells: [Markup; N], id: String) -> Self {
        Self { cells, id: Some(id) }
    }
}

/// A table in a box that scrolls sideways on its own. `label` is its accessible name.
pub fn table<const N: usize, R: Into<Row<N>>>(
    label: &str,
    columns: [Column<'_>; N],
    rows: impl IntoIterator<Item = R>,
) -> Markup {
    html! {
        div.scroll role="group" aria-label=(label) tabindex="0" {
            table {
                thead {
                    tr {
                        @for column in &columns {
                            th class=[column.class] scope="col" {
                                @if column.is_title_hidden { span.visually-hidden { (column.title) } }
                                @else { (column.title) }
                            }
                        }
                    }
                }
                tbody { @for row in rows { (body_row(&columns, &row.into())) } }
            }
        }
    }
}

fn body_row<const N: usize>(columns: &[Column<'_>; N], row: &Row<N>) -> Markup {
    html! {
        tr id=[row.id.as_deref()] tabindex=[row.id.as_ref().map(|_| "-1")] {
            @for (column, cell) in columns.iter().zip(&row.cells) {
                @if column.is_row_heading { th class=[column.class] scope="row" { (cell) } }
                @else { td class=[column.class] { (cell) } }
            }
        }
    }
}

/// Links to the pages before and after this one; nothing without any.
pub fn pager(links: &[(&str, String)]) -> Markup {
    html! {
        @if !links.is_empty() {
            nav.pager aria-label="Pages" {
                @for (title, address) in links { a href=(address) { (title) } }
            }
        }
    }
}

/// Facts about one thing: terms and their values.
pub fn facts<T: Render, V: Render>(facts: impl IntoIterator<Item = (T, V)>) -> Markup {
    html! {
        dl.facts {
            @for (term, value) in facts { div { dt { (term) } dd { (value) } } }
        }
    }
}

/// A figure on a card: what it counts, its value, and what to know about it. `state` is `good`, `bad` or empty.
pub fn card(state: &str, title: &str, value: impl Render, note: impl Render) -> Markup {
    html! {
        div class=(with_state("card", state)) { dt { (title) } dd.value { (value) } dd.note { (note) } }
    }
}

/// A word in a frame. `state` is `good`, `warn`, `bad` or empty; the word says the same as the colour.
pub fn chip(state: &str, word: impl Render) -> Markup {
    html! { span class=(with_state("chip", state)) { (word) } }
}

/// A class, and one for the state if there is any.
fn with_state(class: &str, state: &str) -> String {
    if state.is_empty() { class.to_owned() } else { format!("{class} {state}") }
}

/// The rendition of a part, in its colour.
pub fn rendition(rendition: Rendition) -> Markup {
    html! { span class={ "chip rendition-" (rendition.as_str()) } { (rendition.as_str()) } }
}

/// A bar in a table cell: `part` of `whole`, drawn over `of`, with `most` as the full width. The cells next to it hold
/// the numbers.
pub fn bar(whole: (u64, &str), part: (u64, &str), most: u64) -> Markup {
    html! {
        svg.bar.small width="100%" height="12" aria-hidden="true" {
            @for (value, fill) in [whole, part] {
                rect width=(share(value, most)) height="100%" fill={ "url(#fill-" (fill) ")" } {}
            }
        }
    }
}

/// Something that opens in place: the script loads `address` into it, and without the script the link leads there.
/// `hint` tells screen readers what opens.
pub fn disclosure(address: &str, summary: impl Render, hint: impl Render, link: &str) -> Markup {
    html! {
        details.disclosure data-load=(address) {
            summary { (summary) span.visually-hidden { ", " (hint) } }
            div.loaded { a href=(address) { (link) } }
        }
    }
}

/// Text by others in a box of its own, every character of it shown. `label` is its accessible name.
pub fn payload(label: impl Render, text: &str) -> Markup {
    html! {
        pre.payload tabindex="0" role="group" aria-label=(label) dir="auto" { (verbatim(text)) }
    }
}

/// Text that a browser shows with every character of it: a parser drops the first line feed of a `pre`, turns carriage
/// returns into line feeds, and leaves NUL out.
pub fn verbatim(text: &str) -> Markup {
    let escaped = html! { (text) }.into_string().replace('\r', "&#13;").replace('\0', "\u{fffd}");
    PreEscaped(format!("\n{escaped}"))
}

/// The state of a live connection and the button that pauses it; the script finds both by their ids.
pub fn live_controls() -> Markup {
    html! {
        span.chip.live-state #live-state role="status" { "not live" }
        button.secondary #live-pause type="button" aria-pressed="false" { "Pause updates" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_take_the_classes_of_their_columns() {
        let columns = [Column::text("Model").heading(), Column::number("Tokens").wide()];
        let shown = table("Costs", columns, [[html! { "<m>" }, html! { "12" }]]).into_string();
        let head = "<th scope=\"col\">Model</th><th class=\"numeric wide-only\" scope=\"col\">Tokens</th>";
        let row = "<tr><th scope=\"row\">&lt;m&gt;</th><td class=\"numeric wide-only\">12</td></tr>";
        assert!(shown.contains(head) && shown.contains(row), "{shown}");
        assert!(
            shown.starts_with("<div class=\"scroll\" role=\"group\" aria-label=\"Costs\" tabindex=\"0\">")
        );
    }

    #[test]
    fn a_pager_without_links_is_absent() {
        assert_eq!(pager(&[]).into_string(), "");
        let shown = pager(&[("Older", "/x".to_owned())]).into_string();
        assert_eq!(shown, "<nav class=\"pager\" aria-label=\"Pages\"><a href=\"/x\">Older</a></nav>");
    }
}
