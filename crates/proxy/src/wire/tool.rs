//! Our tool as each dialect writes it. Knows no request.

use std::borrow::Cow;
use std::sync::LazyLock;

use larder_core::policy::{REHYDRATE, rehydrate_tool};
use larder_text::json::encoded;

use super::dialect::ApiDialect;

/// The names that our tool takes, the first that is not one of the client's.
pub(super) const NAMES: [&str; 4] =
    [REHYDRATE, "larder_rehydrate_2", "larder_rehydrate_3", "larder_rehydrate_4"];

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
    dialect.format().tool(&name, &description, &tool.parameters.to_string())
}
