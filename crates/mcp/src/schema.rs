//! JSON Schemas of arguments and results, in the small subset that every client and model understands.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema of arguments.
pub(super) fn input<T: JsonSchema>() -> Arc<JsonObject> {
    object::<T>(SchemaSettings::draft2020_12())
}

/// The schema of results.
pub(super) fn output<T: JsonSchema>() -> Arc<JsonObject> {
    object::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn object<T: JsonSchema>(settings: SchemaSettings) -> Arc<JsonObject> {
    let plain = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let generator = plain.with_transform(RecursiveTransform(simplify)).into_generator();
    let mut object = match generator.into_root_schema_for::<T>().to_value() {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    };
    object.shift_remove("title");
    object.shift_remove("description");
    Arc::new(object)
}

/// Drops `null`, since `required` already says what is optional, and the number formats of Rust.
fn simplify(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.get("default").is_some_and(Value::is_null) {
        object.shift_remove("default");
    }
    object.shift_remove("format");
    for key in ["type", "enum"] {
        let Some(Value::Array(options)) = object.get_mut(key) else { continue };
        options.retain(|option| !option.is_null() && option != "null");
        if key == "type" && options.len() == 1 {
            let only = options.remove(0);
            object.insert(key.to_owned(), only);
        }
    }
}
