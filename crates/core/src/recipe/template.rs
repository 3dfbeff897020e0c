//! Prompt templates: a strict subset of Jinja, checked at load and rendered under limits.
//!
//! Undefined names are errors; there is no loader, so a template sees only its project's prompts; fuel and output
//! size are limited, so a template terminates. Values are inserted verbatim and never rendered again, so untrusted
//! text cannot act as a template.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};
use serde_json::json;

use super::diagnostic::nearest;
use super::model::{PromptTemplate, Recipe};
use larder_text::Mode;

/// Names available to every template, and what they contain. A recipe's own variable of the same name takes
/// precedence.
pub const BUILTINS: [(&str, &str); 11] = [
    ("budget", "token_budget of the recipe: budget.total, .prompt, .input, .output, .response_reserve"),
    ("documents", "names of the documents in this call, in order"),
    ("mode", "chat or code"),
    ("query", "the user's query, byte for byte"),
    ("recipe", "the recipe: recipe.name, .category, .description"),
    ("sections", "numbers of the sections of context.md that the recipe reads"),
    ("session_id", "id of the session of the call; empty without one"),
    ("tools", "names of the tools the model may call"),
    ("turn_id", "id of the turn, such as turn_000042; empty outside a turn"),
    ("user", "the user whose store the call works with"),
    ("variant", "the current stage, or none"),
];
/// The fields of the built-in names that have fields.
const FIELDS: [(&str, &[&str]); 2] = [
    ("budget", &["total", "prompt", "input", "output", "response_reserve"]),
    ("recipe", &["name", "category", "description"]),
];
const SYNTAX_HELP: &str = "to write braces as text, put them between {% raw %} and {% endraw %}";
const CALL_HELP: &str = "use a filter or test of Jinja's, such as upper, trim, join, length or defined";
/// Functions that templates may call.
const FUNCTIONS: [&str; 3] = ["dict", "namespace", "range"];
/// Instructions per rendering.
const FUEL: u64 = 1_000_000;
/// Maximum bytes per rendering.
const MAX_RENDERED: usize = 8 << 20;

/// A template that could not be compiled or rendered, and the location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{template}:{line}:{column}: {message}{}", if help.is_empty() { String::new() } else { format!(" ({help})") })]
pub struct TemplateError {
    /// The prompt's name, as in [`PromptTemplate::name`], or `variables.NAME`.
    pub template: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How to fix it; may be empty.
    pub help: String,
}

/// The caller's values for rendering a recipe's prompts.
#[derive(Debug, Clone, Copy, Default)]
pub struct PromptInputs<'a> {
    /// The user's query, verbatim.
    pub query: &'a str,
    /// The mode of the call.
    pub mode: Option<Mode>,
    /// The state that selects a variant.
    pub variant: Option<&'a str>,
    /// The session's id.
    pub session_id: &'a str,
    /// The turn's id.
    pub turn_id: &'a str,
    /// The user.
    pub user: &'a str,
    /// The names of the tools that the model may call; `None` for those of the recipe.
    pub tools: Option<&'a [String]>,
    /// The names of the documents in this call.
    pub documents: &'a [String],
    /// Values for [`Recipe::inputs`]; others are ignored.
    pub values: Option<&'a BTreeMap<String, serde_json::Value>>,
}

/// The rendered system prompt of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedPrompts {
    /// The recipe's own prompts, rendered, in order.
    pub system: Vec<PromptTemplate>,
    /// The prompts of the chosen variant.
    pub variant: Vec<PromptTemplate>,
}

impl Recipe {
    /// Renders the prompts with the values of one call.
    ///
    /// # Errors
    /// If a required value is missing or a limit is exceeded; names template, line and column.
    pub fn render(&self, inputs: &PromptInputs<'_>) -> Result<RenderedPrompts, TemplateError> {
        let variant = self.variant(inputs.variant);
        let mut context = self.builtins(inputs, variant.map(|(name, _)| name));
        let env = environment(&self.includes);
        let given = inputs.values.into_iter().flatten().filter(|(name, _)| self.inputs.contains(*name));
        let mut outer = context.clone();
        outer.extend(given.map(|(name, given)| (name.clone(), value(given))));
        for (name, template) in &self.variables {
            let rendered = render(&env, &format!("variables.{name}"), template, &outer)?;
            context.insert(name.clone(), rendered.into());
        }
        let render_all = |templates: &[PromptTemplate]| -> Result<Vec<_>, TemplateError> {
            let rendered = templates.iter().map(|template| {
                let text = render(&env, &template.name, &template.text, &context)?;
                Ok(PromptTemplate { name: template.name.clone(), text })
            });
            rendered.collect()
        };
        Ok(RenderedPrompts {
            system: render_all(&self.system)?,
            variant: variant.map_or(Ok(Vec::new()), |(_, variant)| render_all(&variant.system))?,
        })
    }

    /// Whether a call must give this value of [`Recipe::inputs`]: without it, a variable has no value.
    pub fn requires_value(&self, name: &str) -> bool {
        let env = environment(&self.includes);
        let mut context = self.builtins(&PromptInputs::default(), None);
        let others = self.inputs.iter().filter(|other| *other != name);
        context.extend(others.map(|other| (other.clone(), Value::from(""))));
        self.variables.iter().any(|(variable, template)| {
            render(&env, &format!("variables.{variable}"), template, &context).is_err()
        })
    }

    fn builtins(&self, inputs: &PromptInputs<'_>, variant: Option<&str>) -> BTreeMap<String, Value> {
        let mode = inputs.mode.or(self.mode).unwrap_or(Mode::Chat);
        let recipe = json!({"name": self.name, "category": self.category, "description": self.description});
        let values = [
            ("budget", value(self.budget)),
            ("documents", value(inputs.documents)),
            ("mode", value(mode)),
            ("query", Value::from(inputs.query)),
            ("recipe", value(recipe)),
            ("sections", value(&self.input_sections)),
            ("session_id", Value::from(inputs.session_id)),
            ("tools", value(inputs.tools.unwrap_or(&self.tools))),
            ("turn_id", Value::from(inputs.turn_id)),
            ("user", Value::from(inputs.user)),
            ("variant", value(variant)),
        ];
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn value(value: impl serde::Serialize) -> Value {
    minijinja::value::Serde(value).into()
}

/// Whether a template may use `name` without the recipe declaring it.
pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.iter().any(|(builtin, _)| *builtin == name) || FUNCTIONS.contains(&name)
}

/// An environment with `prompts` available for inclusion. Prompts that do not compile are omitted: they have been
/// reported, and including them fails.
fn environment(prompts: &BTreeMap<String, String>) -> Environment<'_> {
    let mut env = Environment::new();
    if let Ok(syntax) =
        SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()
    {
        env.set_syntax(syntax);
    }
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    env.set_fuel(Some(FUEL));
    env.set_debug(true);
    env.remove_global("debug");
    for (name, text) in prompts {
        let _ = env.add_template(name, text);
    }
    env
}

fn render(
    env: &Environment<'_>,
    name: &str,
    text: &str,
    context: &BTreeMap<String, Value>,
) -> Result<String, TemplateError> {
    let mut out = Limited(Vec::new());
    let template = env.template_from_named_str(name, text).map_err(|error| explain(name, text, &error))?;
    template.render_captured_to(context, &mut out).map_err(|error| explain(name, text, &error))?;
    Ok(String::from_utf8_lossy(&out.0).trim_end().to_owned())
}

/// A writer that accepts at most [`MAX_RENDERED`] bytes.
struct Limited(Vec<u8>);

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > MAX_RENDERED {
            return Err(io::Error::other(format!("the prompt is larger than {MAX_RENDERED} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn explain(name: &str, text: &str, error: &Error) -> TemplateError {
    let problem = SyntaxProblem::of(error, text);
    let template = error.name().unwrap_or(name).to_owned();
    let source = error.template_source().unwrap_or(text);
    let before = source.get(..problem.range.start).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    let help = match error.kind() {
        ErrorKind::UndefinedError => {
            "pass the value with --set NAME=VALUE, or add a default: {{ name | default('') }}"
        }
        ErrorKind::OutOfFuel => "the template exceeds its instruction limit",
        _ => "",
    };
    TemplateError { template, line, column, message: problem.message, help: help.to_owned() }
}

/// What is wrong with a template, and its byte range.
pub(super) struct SyntaxProblem {
    pub range: Range<usize>,
    pub message: String,
    pub help: &'static str,
}

impl SyntaxProblem {
    fn of(error: &Error, text: &str) -> Self {
        let source = error.template_source().unwrap_or(text);
        let line_start = |line: usize| -> usize {
            source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
        };
        let range = error.range().filter(|range| range.end <= source.len()).unwrap_or_else(|| {
            let start = line_start(error.line().unwrap_or(1));
            let end =
                source.get(start..).and_then(|rest| rest.find('\n')).map_or(source.len(), |len| start + len);
            start..end
        });
        let cause = std::error::Error::source(error).map(ToString::to_string);
        let detail = cause.or(error.detail().map(str::to_owned));
        let message = detail.unwrap_or_else(|| error.kind().to_string());
        let mut message = format!("{message} in `{}`", source.get(range.clone()).unwrap_or("").trim());
        if message.len() > 200 {
            message.truncate(message.floor_char_boundary(200));
            message.push('…');
        }
        Self { range, message, help: SYNTAX_HELP }
    }
}

/// The names that a template uses without defining them, sorted.
pub(super) fn undeclared(text: &str) -> Result<BTreeSet<String>, SyntaxProblem> {
    let prompts = BTreeMap::new();
    let env = environment(&prompts);
    match env.template_from_str(text) {
        Ok(template) => {
            let names = || template.undeclared_variables(true).into_iter().collect();
            match unknown_call(&env, text).or_else(|| unknown_field(&names(), text)) {
                Some(problem) => Err(problem),
                None => Ok(template.undeclared_variables(false).into_iter().collect()),
            }
        }
        Err(error) => Err(SyntaxProblem::of(&error, text)),
    }
}

/// The first filter or test of a template that there is not. The template itself fails only when it gets there.
fn unknown_call(env: &Environment<'_>, text: &str) -> Option<SyntaxProblem> {
    let is_unknown = |expression: String, kind: ErrorKind| {
        let tried = env.compile_expression(&expression).and_then(|expression| expression.eval(()));
        tried.is_err_and(|error| error.kind() == kind)
    };
    let mut places = tags(text).into_iter().flat_map(|(is_statement, range)| {
        let mut before = [""; 2];
        words(text, range).map(move |(last, word, range)| {
            let follows = before;
            before = [follows[1], word];
            (is_statement, last, follows, word, range)
        })
    });
    places.find_map(|(is_statement, last, follows, word, range)| {
        let is_joined = last.is_alphanumeric() && word != "not";
        let what = match follows {
            ["", "filter"] if is_statement && is_unknown(format!("0|{word}"), ErrorKind::UnknownFilter) => {
                "filter"
            }
            _ if last == '|' && is_unknown(format!("0|{word}"), ErrorKind::UnknownFilter) => "filter",
            [_, "is"] | ["is", "not"]
                if is_joined && is_unknown(format!("0 is {word}"), ErrorKind::UnknownTest) =>
            {
                "test"
            }
            _ => return None,
        };
        Some(SyntaxProblem { range, message: format!("there is no {what} `{word}`"), help: CALL_HELP })
    })
}

/// The first use of a field that a built-in name has not. `names` are those that the template does not define, also with
/// fields (`budget.total`).
fn unknown_field(names: &BTreeSet<String>, text: &str) -> Option<SyntaxProblem> {
    let problem = |name: &str, field: &str, range: Range<usize>| {
        let (_, fields) = FIELDS.iter().find(|(builtin, _)| *builtin == name)?;
        let message = format!("`{name}` has no field `{field}`; it has {}", fields.join(", "));
        (!fields.contains(&field)).then_some(SyntaxProblem { range, message, help: "" })
    };
    let dotted: BTreeSet<(&str, &str)> = names
        .iter()
        .filter_map(|name| name.split_once('.'))
        .map(|(name, rest)| (name, rest.split('.').next().unwrap_or_default()))
        .collect();
    let words = tags(text).into_iter().flat_map(|(_, tag)| {
        let end = tag.end;
        words(text, tag).map(move |(last, name, range)| (last, name, range.start, &text[range.end..end]))
    });
    let mut used = words.filter(|(last, ..)| *last != '.').filter_map(|(_, name, start, rest)| {
        let (field, left) = attribute(rest)
            .filter(|(field, _)| dotted.contains(&(name, *field)))
            .or_else(|| subscript(rest).filter(|_| names.contains(name)))?;
        let len = name.len() + rest.len() - left.len();
        problem(name, field, start..start + len)
    });
    // A tag with its own end in a string hides where the rest of it is.
    used.next().or_else(|| dotted.iter().find_map(|(name, field)| problem(name, field, 0..0)))
}

/// The field of `.field` at the start of a text, and what follows.
fn attribute(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix('.')?.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    Some(text.split_at(end))
}

/// The field of `["field"]` at the start of a text, and what follows.
fn subscript(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix('[')?.trim_start();
    let (field, rest) =
        ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.split_once(quote))?;
    Some((field, rest.trim_start().strip_prefix(']')?))
}

/// The tags of a template outside comments and raw blocks: whether it is a statement, and the bytes between the
/// braces.
fn tags(text: &str) -> Vec<(bool, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find('{')).map(|offset| at + offset) {
        let (close, statement) = match text.as_bytes().get(open + 1) {
            Some(b'{') => ("}}", false),
            Some(b'%') => ("%}", true),
            Some(b'#') => ("#}", false),
            _ => {
                at = open + 1;
                continue;
            }
        };
        let start = open + 2;
        let Some(end) = text.get(start..).and_then(|rest| rest.find(close)).map(|len| start + len) else {
            break;
        };
        at = end + 2;
        let inner = text.get(start..end).unwrap_or("").trim_matches(['-', '+', ' ', '\t', '\n']);
        if statement && inner == "raw" {
            let Some(resume) = text.get(at..).and_then(|rest| rest.find("endraw")).map(|len| at + len) else {
                break;
            };
            at = resume;
        } else if close != "#}" {
            found.push((statement, start..end));
        }
    }
    found
}

/// The words of a tag outside quoted text, each with the last character before it that is no space, and its place.
fn words(text: &str, tag: Range<usize>) -> impl Iterator<Item = (char, &str, Range<usize>)> {
    let inner = text.get(tag.clone()).unwrap_or("");
    let mut chars = inner.char_indices().peekable();
    let (mut quote, mut last) = (None, ' ');
    std::iter::from_fn(move || {
        while let Some((at, c)) = chars.next() {
            let before = last;
            if !c.is_whitespace() {
                last = c;
            }
            if quote.is_some() {
                if c == '\\' {
                    chars.next();
                }
                quote = quote.filter(|open| *open != c);
            } else if matches!(c, '"' | '\'') {
                quote = Some(c);
            } else if c.is_alphanumeric() || c == '_' {
                let mut end = at + c.len_utf8();
                while let Some((next, c)) = chars.next_if(|(_, c)| c.is_alphanumeric() || *c == '_') {
                    end = next + c.len_utf8();
                }
                return Some((before, inner.get(at..end)?, tag.start + at..tag.start + end));
            }
        }
        None
    })
}

/// The first use of each name in a template, excluding attributes, filters and quoted text.
pub(super) fn names(text: &str) -> BTreeMap<&str, Range<usize>> {
    let mut found = BTreeMap::new();
    for (_, range) in tags(text) {
        for (last, name, range) in words(text, range) {
            if !matches!(last, '.' | '|') {
                found.entry(name).or_insert(range);
            }
        }
    }
    found
}

/// The includes of a template: the quoted name, or `None` if the name is computed; and the location.
pub(super) fn includes(text: &str) -> Vec<(Option<String>, Range<usize>)> {
    let statements = tags(text).into_iter().filter(|(statement, _)| *statement);
    let found = statements.filter_map(|(_, range)| {
        let inner = text.get(range.clone())?.trim_start_matches(['-', '+']).trim_start();
        let word = inner.split(char::is_whitespace).next()?;
        if !["include", "import", "from", "extends"].contains(&word) {
            return None;
        }
        let rest = inner.get(word.len()..)?.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let name = quote.and_then(|quote| rest.get(1..)?.split_once(quote)).map(|(name, _)| name.to_owned());
        Some((name, range))
    });
    found.collect()
}

/// Help for an undeclared name.
pub(super) fn undeclared_help<'v>(name: &str, declared: impl Iterator<Item = &'v str>) -> String {
    match nearest(name, declared.chain(BUILTINS.iter().map(|(builtin, _)| *builtin))) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("declare it: `variables: {{{name}: \"{{{{ {name} }}}}\"}}` takes it from the caller"),
    }
}
