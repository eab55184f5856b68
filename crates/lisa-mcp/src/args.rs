//! Checks arguments against the tool's schema before serde sees them.
//!
//! A parent model fixes a call faster when the error says which parameter is wrong, what was given, and what is
//! allowed. Serde's own messages don't.

use crate::{server::Lisa, tool_error::ToolError};
use lisa_engine::error::{Error, near_matches, printable};
use rmcp::{
    ErrorData,
    handler::server::{common::FromContextPart, tool::ToolCallContext},
    model::JsonObject,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Maximum size of one string parameter in bytes, such as a prompt.
pub const MAX_TEXT: usize = 1 << 20;

/// The parsed parameters of a tool call, or the tool error to return.
pub struct Args<P>(pub Result<P, ToolError>);

impl<P: DeserializeOwned> FromContextPart<ToolCallContext<'_, Lisa>> for Args<P> {
    fn from_context_part(context: &mut ToolCallContext<'_, Lisa>) -> Result<Self, ErrorData> {
        let arguments = context.arguments.take().unwrap_or_default();
        let schema = context.service.input_schema(&context.name);
        Ok(Self(parse(&context.name, &schema, arguments).map_err(ToolError)))
    }
}

/// Validates arguments against the schema and deserializes them.
pub fn parse<P: DeserializeOwned>(
    tool: &str,
    schema: &JsonObject,
    arguments: JsonObject,
) -> Result<P, Error> {
    let mut value = Value::Object(arguments);
    drop_nulls(&mut value);
    check(tool, schema, &mut value, "")?;
    serde_json::from_value(value).map_err(|error| {
        let why = error.to_string().replace(char::is_control, " ");
        Error::invalid(format!("invalid parameters for {tool}: {why}"), "fix that parameter")
    })
}

/// Rejects a string longer than [`MAX_TEXT`].
pub fn check_length(name: &str, text: Option<&str>) -> Result<(), Error> {
    match text {
        Some(text) if text.len() > MAX_TEXT => Err(Error::invalid(
            format!("`{name}` is {} bytes; the maximum is {MAX_TEXT} (1 MB)", text.len()),
            "write it to a file that the session can read and send the path",
        )),
        _ => Ok(()),
    }
}

/// Models send `null` for optional parameters that they leave out.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}

fn check(tool: &str, schema: &JsonObject, value: &mut Value, at: &str) -> Result<(), Error> {
    let expected = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    float_to_integer(expected, value);
    if !has_type(expected, value) {
        return Err(Error::invalid(
            format!("`{}` must be {}, not {}", printable(at), type_name(expected), describe_value(value)),
            format!("call {tool} again with {} for `{}`", type_name(expected), printable(at)),
        ));
    }
    check_enum(schema, value, at)?;
    check_bounds(schema, value, at)?;
    match value {
        Value::Object(fields) => check_fields(tool, schema, fields, at),
        Value::Array(items) => match schema.get("items") {
            Some(Value::Object(item_schema)) => items
                .iter_mut()
                .enumerate()
                .try_for_each(|(i, item)| check(tool, item_schema, item, &format!("{at}[{i}]"))),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_fields(tool: &str, schema: &JsonObject, fields: &mut JsonObject, at: &str) -> Result<(), Error> {
    let none = JsonObject::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let extra = schema.get("additionalProperties");
    for (name, value) in fields.iter_mut() {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match (known.get(name), extra) {
            (Some(Value::Object(inner)), _) | (None, Some(Value::Object(inner))) => {
                check(tool, inner, value, &path)?
            }
            (None, Some(Value::Bool(false))) => return Err(unknown_field(tool, &path, name, known)),
            _ => {}
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            let path = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            let meaning = known.get(name).and_then(|p| p.get("description")).and_then(Value::as_str);
            return Err(Error::invalid(
                format!("missing parameter `{}` for {tool}", printable(&path)),
                match meaning {
                    Some(text) => format!("pass `{}`: {text}", printable(&path)),
                    None => format!("pass `{}`", printable(&path)),
                },
            ));
        }
    }
    Ok(())
}

fn unknown_field(tool: &str, path: &str, name: &str, known: &JsonObject) -> Error {
    let names: Vec<String> = known.keys().cloned().collect();
    let near = near_matches(name, &names);
    let all = if names.is_empty() {
        format!("{tool} has no parameters")
    } else {
        format!("parameters: {}", names.join(", "))
    };
    let hint = if near.is_empty() { all } else { format!("did you mean {}? {all}", near.join(" or ")) };
    Error::invalid(format!("unknown parameter `{}` for {tool}", printable(path)), hint)
}

fn check_enum(schema: &JsonObject, value: &Value, at: &str) -> Result<(), Error> {
    let (Some(allowed), Some(actual)) = (schema.get("enum").and_then(Value::as_array), value.as_str()) else {
        return Ok(());
    };
    let allowed: Vec<String> = allowed.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if allowed.iter().any(|word| word == actual) {
        return Ok(());
    }
    let near = near_matches(actual, &allowed);
    let all = format!("allowed: {}", allowed.join(", "));
    let hint = if near.is_empty() { all } else { format!("did you mean {}? {all}", near.join(" or ")) };
    Err(Error::invalid(format!("invalid value `{}` for `{}`", printable(actual), printable(at)), hint))
}

fn check_bounds(schema: &JsonObject, value: &Value, at: &str) -> Result<(), Error> {
    let Some(actual) = value.as_f64() else { return Ok(()) };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(min) = bound("minimum").filter(|min| actual < *min) {
        return Err(Error::invalid(
            format!("`{}` is {value}; the minimum is {min}", printable(at)),
            format!("pass {min} or more, or leave it out"),
        ));
    }
    if let Some(max) = bound("maximum").filter(|max| actual > *max) {
        return Err(Error::invalid(
            format!("`{}` is {value}; the maximum is {max}", printable(at)),
            format!("pass {max} or less, or leave it out"),
        ));
    }
    Ok(())
}

/// Converts a float like `20.0` to an integer: JSON doesn't tell them apart, serde does.
fn float_to_integer(expected: &str, value: &mut Value) {
    if expected != "integer" || value.is_u64() || value.is_i64() {
        return;
    }
    if let Some(number) = value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15) {
        *value = Value::from(number as i64);
    }
}

fn has_type(expected: &str, value: &Value) -> bool {
    match expected {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn type_name(expected: &str) -> &'static str {
    match expected {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "a boolean",
        "array" => "an array",
        _ => "an object",
    }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string `{}`", printable(text)),
        Value::Number(number) => format!("the number {number}"),
        Value::Bool(word) => format!("{word}"),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Null => "null".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use lisa_engine::api::{ReadRequest, SpawnRequest, WaitRequest};
    use serde_json::json;

    fn message<P: DeserializeOwned + schemars::JsonSchema>(arguments: Value) -> String {
        let schema = schema::input::<P>(|p| {
            p.bounds("timeout_s", 0, 3600);
        });
        let Value::Object(arguments) = arguments else { panic!("an object") };
        match parse::<P>("the_tool", &schema, arguments) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_unknown_parameter_suggests_similar_ones_and_lists_all() {
        let text = message::<ReadRequest>(json!({ "sesion": "a" }));
        assert_eq!(
            text,
            "unknown parameter `sesion` for the_tool; did you mean session? \
             parameters: session, view, since, max_lines, ansi"
        );
    }

    #[test]
    fn a_missing_parameter_is_described() {
        let text = message::<ReadRequest>(json!({}));
        assert!(
            text.starts_with("missing parameter `session` for the_tool; pass `session`: The session's name"),
            "{text}"
        );
    }

    #[test]
    fn a_wrong_type_says_what_was_given() {
        let text = message::<WaitRequest>(json!({ "timeout_s": "30" }));
        assert!(text.starts_with("`timeout_s` must be a number, not the string `30`"), "{text}");
        let text = message::<WaitRequest>(json!({ "sessions": ["a", 2] }));
        assert!(text.starts_with("`sessions[1]` must be a string, not the number 2"), "{text}");
    }

    #[test]
    fn a_negative_timeout_is_rejected_with_the_minimum() {
        let text = message::<WaitRequest>(json!({ "timeout_s": -5 }));
        assert!(text.starts_with("`timeout_s` is -5; the minimum is 0"), "{text}");
    }

    #[test]
    fn an_invalid_enum_value_lists_the_allowed_ones() {
        let text = message::<ReadRequest>(json!({ "session": "a", "view": "scren" }));
        assert!(
            text.starts_with("invalid value `scren` for `view`; did you mean screen? allowed: "),
            "{text}"
        );
    }

    #[test]
    fn nested_parameters_are_named_by_their_path() {
        let text = message::<SpawnRequest>(json!({ "agent": "demo", "size": { "colums": 80, "rows": 24 } }));
        assert!(text.starts_with("unknown parameter `size.colums`"), "{text}");
        let text = message::<SpawnRequest>(json!({ "agent": "demo", "env": { "A": 1 } }));
        assert!(text.starts_with("`env.A` must be a string"), "{text}");
    }

    #[test]
    fn control_characters_in_parameter_names_are_escaped() {
        let text = message::<SpawnRequest>(json!({ "agent": "demo", "env": { "A\u{1b}[2J": 1 } }));
        assert!(text.starts_with("`env.A\\u{1b}[2J` must be a string"), "{text}");
    }

    #[test]
    fn nulls_are_dropped_and_whole_floats_become_integers() {
        assert_eq!(message::<WaitRequest>(json!({ "since": null, "timeout_s": 1 })), "fine");
        assert_eq!(message::<WaitRequest>(json!({ "since": 20.0 })), "fine");
    }

    #[test]
    fn a_string_of_ten_megabytes_is_rejected_with_a_workaround() {
        let error = check_length("text", Some(&"x".repeat(10 << 20))).unwrap_err();
        assert!(error.to_string().contains("10485760 bytes"), "{error}");
        assert!(error.hint().contains("write it to a file"), "{error}");
    }
}
