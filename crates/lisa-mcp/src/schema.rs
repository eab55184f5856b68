//! Tool schemas that every client can read.
//!
//! The engine's types are the source; one transform turns what schemars writes into the plain subset that clients,
//! inspectors and model providers agree on: one type per field, no `null`, no Rust number formats, and closed sets
//! of words as `enum`. Inputs stand on their own (no references), outputs share definitions.

use rmcp::model::JsonObject;
use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The schema of a tool's parameters, with bounds and words that the engine's types do not carry.
pub fn input<T: JsonSchema>(refine: impl FnOnce(&mut Properties)) -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let mut object = generate::<T>(settings, Portable { meanings: true });
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        refine(&mut Properties(properties));
    }
    object.entry("properties").or_insert_with(|| json!({}));
    object.insert("additionalProperties".to_owned(), Value::Bool(false));
    Arc::new(object)
}

/// The schema of a tool's structured answer.
pub fn output<T: JsonSchema>() -> Arc<JsonObject> {
    Arc::new(generate::<T>(SchemaSettings::draft2020_12().for_serialize(), Portable { meanings: false }))
}

/// The parameters of one tool, to be refined.
pub struct Properties<'a>(&'a mut Map<String, Value>);

impl Properties<'_> {
    /// Says what a parameter means here, where that is more than its type can know.
    pub fn describe(&mut self, name: &str, text: &str) -> &mut Self {
        self.set(name, "description", json!(text))
    }

    /// The smallest and the largest value of a number.
    pub fn bounds(&mut self, name: &str, least: u32, most: u32) -> &mut Self {
        self.set(name, "minimum", json!(least)).set(name, "maximum", json!(most))
    }

    /// The words that a text may be.
    pub fn words<'w>(&mut self, name: &str, words: impl IntoIterator<Item = &'w str>) -> &mut Self {
        let words: Vec<&str> = words.into_iter().collect();
        self.set(name, "enum", json!(words))
    }

    /// A parameter of a parameter, to be refined.
    pub fn inside(&mut self, name: &str, refine: impl FnOnce(&mut Properties)) -> &mut Self {
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

fn generate<T: JsonSchema>(settings: SchemaSettings, portable: Portable) -> JsonObject {
    let generator = settings.with_transform(RecursiveTransform(portable)).into_generator();
    let schema = generator.into_root_schema_for::<T>();
    let Value::Object(mut object) = schema.to_value() else { return JsonObject::new() };
    for noise in ["$schema", "title", "description"] {
        object.remove(noise);
    }
    object
}

/// Formats that mean the same to everybody.
const FORMATS: &[&str] = &["date-time"];

#[derive(Clone)]
struct Portable {
    /// Whether each word's meaning goes into the description: a model needs it to choose one, and hardly to read
    /// one, and some clients put output schemas before the model.
    meanings: bool,
}

impl Transform for Portable {
    fn transform(&mut self, schema: &mut Schema) {
        let Some(object) = schema.as_object_mut() else { return };
        without_null_branch(object);
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
        if let Some(Value::Array(words)) = object.get_mut("enum") {
            words.retain(|word| !word.is_null());
        }
        words_as_enum(object, self.meanings);
        if let Some(Value::String(text)) = object.get_mut("description") {
            *text = one_line(text);
        }
    }
}

/// A description as one line, however its doc comment was wrapped.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `anyOf: [X, null]` is X that may be absent.
fn without_null_branch(object: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = object.get("anyOf") else { return };
    let mut others = branches.iter().filter(|b| b.get("type").is_none_or(|t| t != "null"));
    let (Some(Value::Object(only)), None) = (others.next().cloned(), others.next()) else { return };
    object.remove("anyOf");
    for (key, value) in only {
        object.entry(key).or_insert(value);
    }
}

/// `oneOf` of constants, each with its meaning, is an `enum` whose description may say the meanings.
fn words_as_enum(object: &mut Map<String, Value>, with_meanings: bool) {
    let Some(Value::Array(branches)) = object.get("oneOf") else { return };
    let mut words = Vec::new();
    let mut meanings = Vec::new();
    for branch in branches {
        let Some(word) = branch.get("const").and_then(Value::as_str) else { return };
        if let Some(meaning) = branch.get("description").and_then(Value::as_str) {
            meanings.push(format!("{word}: {meaning}"));
        }
        words.push(json!(word));
    }
    object.remove("oneOf");
    object.insert("type".to_owned(), json!("string"));
    object.insert("enum".to_owned(), Value::Array(words));
    if with_meanings && !meanings.is_empty() {
        let own = object.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{own} {}", meanings.join(" ")).trim().to_owned();
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
    fn inputs_stand_on_their_own() {
        let schema = Value::Object(input::<SpawnRequest>(|_| {}).as_ref().clone()).to_string();
        assert!(!schema.contains("$ref") && !schema.contains("$defs"), "{schema}");
    }

    #[test]
    fn closed_sets_of_words_are_enums_with_their_meanings() {
        let schema = input::<ReadRequest>(|_| {});
        let view = &schema["properties"]["view"];
        assert_eq!(view["enum"][0], "last_message");
        assert!(view["description"].as_str().unwrap().contains("screen: What the terminal shows."), "{view}");
    }

    #[test]
    fn bounds_and_descriptions_can_be_refined() {
        let schema = input::<WaitRequest>(|p| {
            p.bounds("timeout_s", 0, 3600).describe("since", "x").words("until", ["attention"]);
        });
        assert_eq!(schema["properties"]["timeout_s"]["maximum"], 3600);
        assert_eq!(schema["properties"]["since"]["description"], "x");
        assert_eq!(schema["properties"]["until"]["enum"][0], "attention");
    }
}
