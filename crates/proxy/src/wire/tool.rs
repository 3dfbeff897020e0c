//! Our tool as each dialect writes it. Knows no request.

use std::sync::LazyLock;

use larder_core::policy::rehydrate_tool;
use larder_text::json::encoded;

use super::dialect::ApiDialect;

/// The definition as a dialect expects it in `tools`: always the same bytes.
pub fn rehydrate_tool_json(dialect: ApiDialect) -> &'static str {
    // Every request counts it.
    static WRITTEN: LazyLock<[(ApiDialect, String); ApiDialect::ALL.len()]> =
        LazyLock::new(|| ApiDialect::ALL.map(|dialect| (dialect, written(dialect))));
    WRITTEN.iter().find(|(written, _)| *written == dialect).map_or("", |(_, tool)| tool)
}

fn written(dialect: ApiDialect) -> String {
    let tool = rehydrate_tool();
    let (name, description) = (encoded(&tool.name), encoded(&tool.description));
    dialect.format().tool(&name, &description, &tool.parameters.to_string())
}
