//! Tool schemas that every client can parse.
//!
//! Schemas are generated from the engine's types. A transform reduces schemars' output to the subset of JSON Schema that
//! clients, inspectors and model providers agree on: one type per field, no `null`, no Rust number formats, and closed
//! sets as `enum`. Input schemas are inlined (no `$ref`); output schemas share definitions.

use rmcp::model::JsonObject;
use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The schema of a tool's parameters. `refine` adds bounds and enums that the engine's types don't have.
pub fn input<T: JsonSchema>(refine: impl FnOnce(&mut Properties)) -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let mut object = generate::<T>(settings, MakePortable { describe_values: true });
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        refine(&mut Properties(properties));
    }
    object.entry("properties").or_insert_with(|| json!({}));
    object.insert("additionalProperties".to_owned(), Value::Bool(false));
    Arc::new(object)
}

/// The schema of a tool's structured content.
pub fn output<T: JsonSchema>() -> Arc<JsonObject> {
    Arc::new(generate::<T>(
        SchemaSettings::draft2020_12().for_serialize(),
        MakePortable { describe_values: false },
    ))
}

/// The `properties` of a schema, for refining.
pub struct Properties<'a>(&'a mut Map<String, Value>);

impl Properties<'_> {
    /// Replaces a parameter's description.
    pub fn describe(&mut self, name: &str, text: &str) -> &mut Self {
        self.set(name, "description", json!(text))
    }

    /// Sets the minimum and maximum of a number.
    pub fn bounds(&mut self, name: &str, min: u32, max: u32) -> &mut Self {
        self.set(name, "minimum", json!(min)).set(name, "maximum", json!(max))
    }

    /// Sets the allowed values of a string.
    pub fn enum_values<'w>(&mut self, name: &str, values: impl IntoIterator<Item = &'w str>) -> &mut Self {
        let values: Vec<&str> = values.into_iter().collect();
        self.set(name, "enum", json!(values))
    }

    /// Refines the properties of a nested object.
    pub fn nested(&mut self, name: &str, refine: impl FnOnce(&mut Properties)) -> &mut Self {
        if let Some(Value::Object(inner)) = self.0.get_mut(name).and_then(|p| p.get_mut("properties")) {
            refine(&mut Properties(inner));
        }
        self
    }

    fn set(&mut self, name: &str, key: &str, value: Value) -> &mut Self {
        if let Some(Value::Object(property)) = self.0.get_mut(name) {
            property.insert(key.to_owned(), value);
        }
        self
    }
}

fn generate<T: JsonSchema>(settings: SchemaSettings, portable: MakePortable) -> JsonObject {
    let generator = settings.with_transform(RecursiveTransform(portable)).into_generator();
    let schema = generator.into_root_schema_for::<T>();
    let Value::Object(mut object) = schema.to_value() else { return JsonObject::new() };
    for noise in ["$schema", "title", "description"] {
        object.remove(noise);
    }
    object
}

/// Formats that all clients understand.
const FORMATS: &[&str] = &["date-time"];

#[derive(Clone)]
struct MakePortable {
    /// Whether descriptions explain each enum value. A model needs that for inputs, but hardly for outputs, and some
    /// clients show output schemas to the model.
    describe_values: bool,
}

impl Transform for MakePortable {
    fn transform(&mut self, schema: &mut Schema) {
        let Some(object) = schema.as_object_mut() else { return };
        remove_null_branch(object);
        if let Some(Value::Array(types)) = object.get("type") {
            let mut types = types.iter().filter(|t| *t != "null");
            if let (Some(only), None) = (types.next().cloned(), types.next()) {
                object.insert("type".to_owned(), only);
            }
        }
        if object.get("default").is_some_and(Value::is_null) {
            object.remove("default");
        }
        if object.get("format").and_then(Value::as_str).is_some_and(|f| !FORMATS.contains(&f)) {
            object.remove("format");
        }
        if let Some(Value::Array(values)) = object.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        one_of_to_enum(object, self.describe_values);
        if let Some(Value::String(text)) = object.get_mut("description") {
            *text = one_line(text);
        }
    }
}

/// Unwraps a doc comment into one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Turns `anyOf: [X, null]` into X.
fn remove_null_branch(object: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = object.get("anyOf") else { return };
    let mut others = branches.iter().filter(|b| b.get("type").is_none_or(|t| t != "null"));
    let (Some(Value::Object(only)), None) = (others.next().cloned(), others.next()) else { return };
    object.remove("anyOf");
    for (key, value) in only {
        object.entry(key).or_insert(value);
    }
}

/// Turns a `oneOf` of constants into an `enum`; its description may explain each value.
fn one_of_to_enum(object: &mut Map<String, Value>, describe_values: bool) {
    let Some(Value::Array(branches)) = object.get("oneOf") else { return };
    let mut values = Vec::new();
    let mut descriptions = Vec::new();
    for branch in branches {
        let Some(value) = branch.get("const").and_then(Value::as_str) else { return };
        if let Some(meaning) = branch.get("description").and_then(Value::as_str) {
            descriptions.push(format!("{value}: {meaning}"));
        }
        values.push(json!(value));
    }
    object.remove("oneOf");
    object.insert("type".to_owned(), json!("string"));
    object.insert("enum".to_owned(), Value::Array(values));
    if describe_values && !descriptions.is_empty() {
        let own = object.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{own} {}", descriptions.join(" ")).trim().to_owned();
        object.insert("description".to_owned(), json!(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisa_engine::api::{ReadRequest, SendResponse, SpawnRequest, WaitRequest};

    fn walk(value: &Value, visit: &mut dyn FnMut(&Map<String, Value>)) {
        match value {
            Value::Object(object) => {
                visit(object);
                object.values().for_each(|v| walk(v, visit));
            }
            Value::Array(items) => items.iter().for_each(|v| walk(v, visit)),
            _ => {}
        }
    }

    fn assert_portable(schema: &JsonObject) {
        walk(&Value::Object(schema.clone()), &mut |object| {
            assert!(!object.get("type").is_some_and(Value::is_array), "{object:?}");
            assert!(!object.get("default").is_some_and(Value::is_null), "{object:?}");
            if let Some(format) = object.get("format").and_then(Value::as_str) {
                assert!(FORMATS.contains(&format), "{format}");
            }
        });
    }

    #[test]
    fn schemas_have_one_type_for_each_field_and_no_rust_formats() {
        assert_portable(&input::<SpawnRequest>(|_| {}));
        assert_portable(&input::<WaitRequest>(|_| {}));
        assert_portable(&output::<SendResponse>());
    }

    #[test]
    fn input_schemas_have_no_references() {
        let schema = Value::Object(input::<SpawnRequest>(|_| {}).as_ref().clone()).to_string();
        assert!(!schema.contains("$ref") && !schema.contains("$defs"), "{schema}");
    }

    #[test]
    fn closed_sets_are_enums_with_a_description_of_each_value() {
        let schema = input::<ReadRequest>(|_| {});
        let view = &schema["properties"]["view"];
        assert_eq!(view["enum"][0], "last_message");
        assert!(view["description"].as_str().unwrap().contains("screen: What the terminal shows."), "{view}");
    }

    #[test]
    fn bounds_and_descriptions_can_be_refined() {
        let schema = input::<WaitRequest>(|p| {
            p.bounds("timeout_s", 0, 3600).describe("since", "x").enum_values("until", ["attention"]);
        });
        assert_eq!(schema["properties"]["timeout_s"]["maximum"], 3600);
        assert_eq!(schema["properties"]["since"]["description"], "x");
        assert_eq!(schema["properties"]["until"]["enum"][0], "attention");
    }
}
