//! Arguments checked against the tool's own schema, so that each mistake gets a sentence of its own.
//!
//! Serde would report the first mismatch in its own words; a parent model mends a call faster when it reads which
//! parameter is wrong, what was given, and what would have been right.

use crate::{failure::Failure, server::Lisa};
use lisa_engine::error::{Error, near_matches, printable};
use rmcp::{
    ErrorData,
    handler::server::{common::FromContextPart, tool::ToolCallContext},
    model::JsonObject,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The most bytes of one text: a prompt, an answer.
pub const MAX_TEXT: usize = 1 << 20;

/// The parameters of a call, or the sentence that says what is wrong with them.
pub struct Args<P>(pub Result<P, Failure>);

impl<P: DeserializeOwned> FromContextPart<ToolCallContext<'_, Lisa>> for Args<P> {
    fn from_context_part(context: &mut ToolCallContext<'_, Lisa>) -> Result<Self, ErrorData> {
        let arguments = context.arguments.take().unwrap_or_default();
        let schema = context.service.input_schema(&context.name);
        Ok(Self(parse(&context.name, &schema, arguments).map_err(Failure)))
    }
}

/// The typed parameters that these arguments are.
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
        Error::invalid(format!("{tool} can not read its parameters: {why}"), "mend that one")
    })
}

/// Refuses a text that is longer than agents take.
pub fn check_length(name: &str, text: Option<&str>) -> Result<(), Error> {
    match text {
        Some(text) if text.len() > MAX_TEXT => Err(Error::invalid(
            format!("`{name}` has {} bytes, more than the {MAX_TEXT} (1 MB) that fit", text.len()),
            "write it to a file that the session can read, and send the path",
        )),
        _ => Ok(()),
    }
}

/// Models say `null` for what they leave out.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}

fn check(tool: &str, schema: &JsonObject, value: &mut Value, at: &str) -> Result<(), Error> {
    let expected = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    whole_number(expected, value);
    if !fits(expected, value) {
        return Err(Error::invalid(
            format!("`{}` must be {}, not {}", printable(at), article(expected), kind_of(value)),
            format!("call {tool} again with `{}` as {}", printable(at), article(expected)),
        ));
    }
    check_words(schema, value, at)?;
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
                format!("{tool} needs `{}`", printable(&path)),
                meaning.map_or_else(|| "give it".to_owned(), |text| format!("give it: {text}")),
            ));
        }
    }
    Ok(())
}

fn unknown_field(tool: &str, path: &str, name: &str, known: &JsonObject) -> Error {
    let names: Vec<String> = known.keys().cloned().collect();
    let near = near_matches(name, &names);
    let takes =
        if names.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", names.join(", ")) };
    let hint = if near.is_empty() { takes } else { format!("did you mean {}? {takes}", near.join(" or ")) };
    Error::invalid(format!("`{}` is no parameter of {tool}", printable(path)), hint)
}

fn check_words(schema: &JsonObject, value: &Value, at: &str) -> Result<(), Error> {
    let (Some(words), Some(given)) = (schema.get("enum").and_then(Value::as_array), value.as_str()) else {
        return Ok(());
    };
    let words: Vec<String> = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if words.iter().any(|word| word == given) {
        return Ok(());
    }
    let near = near_matches(given, &words);
    let all = format!("it is one of {}", words.join(", "));
    let hint = if near.is_empty() { all } else { format!("did you mean {}? {all}", near.join(" or ")) };
    Err(Error::invalid(format!("`{}` can not be `{}`", printable(at), printable(given)), hint))
}

fn check_bounds(schema: &JsonObject, value: &Value, at: &str) -> Result<(), Error> {
    let Some(given) = value.as_f64() else { return Ok(()) };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(least) = bound("minimum").filter(|least| given < *least) {
        return Err(Error::invalid(
            format!("`{}` is {value}, but can not be less than {least}", printable(at)),
            format!("give {least} or more, or leave it out"),
        ));
    }
    if let Some(most) = bound("maximum").filter(|most| given > *most) {
        return Err(Error::invalid(
            format!("`{}` is {value}, but can not be more than {most}", printable(at)),
            format!("give {most} or less, or leave it out"),
        ));
    }
    Ok(())
}

/// `20.0` is the whole number 20 in JSON, but not to serde.
fn whole_number(expected: &str, value: &mut Value) {
    if expected != "integer" || value.is_u64() || value.is_i64() {
        return;
    }
    if let Some(number) = value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15) {
        *value = Value::from(number as i64);
    }
}

fn fits(expected: &str, value: &Value) -> bool {
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

fn article(expected: &str) -> &'static str {
    match expected {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        _ => "an object",
    }
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text `{}`", printable(text)),
        Value::Number(number) => format!("the number {number}"),
        Value::Bool(word) => format!("{word}"),
        Value::Array(_) => "a list".to_owned(),
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

    fn sentence<P: DeserializeOwned + schemars::JsonSchema>(arguments: Value) -> String {
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
    fn a_misspelt_parameter_names_the_near_ones_and_all() {
        let said = sentence::<ReadRequest>(json!({ "sesion": "a" }));
        assert_eq!(
            said,
            "`sesion` is no parameter of the_tool; did you mean session? \
             it takes session, view, since, max_lines, ansi"
        );
    }

    #[test]
    fn a_missing_parameter_says_what_it_is() {
        let said = sentence::<ReadRequest>(json!({}));
        assert!(said.starts_with("the_tool needs `session`; give it: The session's name"), "{said}");
    }

    #[test]
    fn a_wrong_type_says_what_was_given() {
        let said = sentence::<WaitRequest>(json!({ "timeout_s": "30" }));
        assert!(said.starts_with("`timeout_s` must be a number, not the text `30`"), "{said}");
        let said = sentence::<WaitRequest>(json!({ "sessions": ["a", 2] }));
        assert!(said.starts_with("`sessions[1]` must be a text, not the number 2"), "{said}");
    }

    #[test]
    fn a_negative_time_out_is_refused_with_its_bound() {
        let said = sentence::<WaitRequest>(json!({ "timeout_s": -5 }));
        assert!(said.starts_with("`timeout_s` is -5, but can not be less than 0"), "{said}");
    }

    #[test]
    fn an_unknown_word_lists_the_known_ones() {
        let said = sentence::<ReadRequest>(json!({ "session": "a", "view": "scren" }));
        assert!(said.starts_with("`view` can not be `scren`; did you mean screen? it is one of"), "{said}");
    }

    #[test]
    fn nested_parameters_are_named_by_their_path() {
        let said = sentence::<SpawnRequest>(json!({ "agent": "demo", "size": { "colums": 80, "rows": 24 } }));
        assert!(said.starts_with("`size.colums` is no parameter"), "{said}");
        let said = sentence::<SpawnRequest>(json!({ "agent": "demo", "env": { "A": 1 } }));
        assert!(said.starts_with("`env.A` must be a text"), "{said}");
    }

    #[test]
    fn names_that_a_client_chose_are_shown_without_control_characters() {
        let said = sentence::<SpawnRequest>(json!({ "agent": "demo", "env": { "A\u{1b}[2J": 1 } }));
        assert!(said.starts_with("`env.A\\u{1b}[2J` must be a text"), "{said}");
    }

    #[test]
    fn nulls_and_whole_floats_are_taken_as_meant() {
        assert_eq!(sentence::<WaitRequest>(json!({ "since": null, "timeout_s": 1 })), "fine");
        assert_eq!(sentence::<WaitRequest>(json!({ "since": 20.0 })), "fine");
    }

    #[test]
    fn a_text_of_ten_megabytes_is_refused_with_a_way_out() {
        let error = check_length("text", Some(&"x".repeat(10 << 20))).unwrap_err();
        assert!(error.to_string().contains("10485760 bytes"), "{error}");
        assert!(error.hint().contains("write it to a file"), "{error}");
    }
}
