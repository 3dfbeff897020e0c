//! Our tool as each dialect writes it, and the tools of a request that read originals as it does. Knows no history.

use std::borrow::Cow;
use std::sync::LazyLock;

use larder_core::policy::{REHYDRATE, reads_back, rehydrate_tool};
use larder_text::json::encoded;

use super::dialect::ApiDialect;
use super::request::{OfferedTool, Request};

/// The names that our tool takes, the first that is not one of the client's.
pub(super) const NAMES: [&str; 4] =
    [REHYDRATE, "larder_rehydrate_2", "larder_rehydrate_3", "larder_rehydrate_4"];

/// What a definition of a tool that opens pointers mentions: their beginning.
const POINTERS: &str = "lp1-";

impl Request<'_> {
    /// The tool of the client's that opens pointers, such as Larder's over MCP: it reads back by its name, and says in
    /// its definition what it takes.
    pub fn reader_of_client(&self) -> Option<&str> {
        let opens = |tool: &&OfferedTool<'_>| reads_back(&tool.name) && tool.raw.contains(POINTERS);
        self.tools.iter().find(opens).map(|tool| &*tool.name)
    }

    /// Whether a tool of this name reads originals, so that its results are what was left out before.
    pub fn reads_back(&self, tool: &str) -> bool {
        tool == self.tool_name || reads_back(tool)
    }

    /// The name under which Larder's tool is offered.
    pub const fn tool_name(&self) -> &'static str {
        self.tool_name
    }
}

/// The definition as a dialect expects it in `tools`: always the same bytes for a name.
pub fn rehydrate_tool_json(dialect: ApiDialect, name: &str) -> Cow<'static, str> {
    // Every request counts it.
    static WRITTEN: LazyLock<[(ApiDialect, String); ApiDialect::ALL.len()]> =
        LazyLock::new(|| ApiDialect::ALL.map(|dialect| (dialect, written(dialect, REHYDRATE))));
    if name != REHYDRATE {
        return Cow::Owned(written(dialect, name));
    }
    Cow::Borrowed(WRITTEN.iter().find(|(written, _)| *written == dialect).map_or("", |(_, tool)| tool))
}

fn written(dialect: ApiDialect, name: &str) -> String {
    let tool = rehydrate_tool();
    let (name, description) = (encoded(name), encoded(&tool.description));
    tool_json(dialect, &name, &description, &tool.parameters.to_string())
}

/// The definition of a tool as a dialect expects it in `tools`; all arguments are JSON.
pub fn tool_json(dialect: ApiDialect, name: &str, description: &str, parameters: &str) -> String {
    dialect.format().tool(name, description, parameters)
}
