//! Tools with typed arguments: one struct is the schema that models read and the value that a call receives. Knows no
//! tool.

use std::future::Future;

use futures::future::{BoxFuture, FutureExt};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::ToolContext;
use super::spec::{Tool, ToolError, ToolOutput, ToolSpec};

/// A tool whose arguments are a struct. [`typed`] turns it into a [`Tool`].
pub trait TypedTool: Send + Sync + 'static {
    /// The arguments. The doc comment of the struct tells models what the tool does and when to use it, that of each
    /// field what the argument means. `#[serde(deny_unknown_fields)]` makes the schema reject unknown arguments.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// The tool's definition; [`ToolSpec::from_args`] derives it from the arguments.
    fn spec(&self) -> ToolSpec;

    /// Runs one call. The arguments satisfy the schema, and permission has been given where the tool's class needs it.
    ///
    /// # Errors
    /// [`ToolError`], whose text helps the model to correct its call.
    fn run(
        &self,
        args: Self::Args,
        context: &ToolContext<'_>,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// The tool for a [`ToolBox`](super::ToolBox).
pub fn typed<T: TypedTool>(tool: T) -> Box<dyn Tool> {
    Box::new(Typed { spec: tool.spec(), tool })
}

struct Typed<T> {
    tool: T,
    spec: ToolSpec,
}

impl<T: TypedTool> Tool for Typed<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let args = T::Args::deserialize(arguments)
                .map_err(|error| ToolError::Arguments(format!("the arguments cannot be read: {error}")))?;
            self.tool.run(args, context).await
        }
        .boxed()
    }
}

/// The description of an argument struct and its JSON Schema, without Rust-specific details.
pub(super) fn described<A: JsonSchema>() -> (String, Value) {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let generator = settings.with_transform(RecursiveTransform(simplify)).into_generator();
    let mut schema = generator.into_root_schema_for::<A>();
    schema.remove("title");
    let description = match schema.remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    (description, schema.to_value())
}

/// Optional arguments are those missing from `required`, never null ones. Defaults are in the descriptions, sizes of
/// numbers in their bounds, and line breaks of doc comments mean nothing.
fn simplify(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    for key in ["default", "format"] {
        object.remove(key);
    }
    for key in ["type", "enum"] {
        let Some(Value::Array(options)) = object.get_mut(key) else { continue };
        options.retain(|option| !option.is_null() && option != "null");
        if key == "type" && options.len() == 1 {
            let only = options.remove(0);
            object.insert(key.to_owned(), only);
        }
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// Do something that takes
    /// two lines to say.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its schema is read")]
    struct Args {
        /// what to do
        #[schemars(length(min = 1))]
        what: String,
        /// how often
        #[schemars(range(min = 1, max = 9))]
        times: Option<usize>,
        #[serde(default)]
        kinds: Vec<Kind>,
        kind: Option<Kind>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Fact,
        Preference,
    }

    #[test]
    fn a_struct_becomes_a_description_and_a_plain_schema() {
        let (description, schema) = described::<Args>();
        assert_eq!(description, "Do something that takes two lines to say.");
        let kind = json!({"type": "string", "enum": ["fact", "preference"]});
        let expected = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["what"],
            "properties": {
                "what": {"type": "string", "description": "what to do", "minLength": 1},
                "times": {"type": "integer", "description": "how often", "minimum": 1, "maximum": 9},
                "kinds": {"type": "array", "items": kind},
                "kind": kind,
            },
        });
        assert_eq!(schema, expected);
    }
}
