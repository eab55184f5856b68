//! `lisa session spawn`: starting an agent.

use crate::{
    LisaPlugin,
    caller::Lisa,
    complete::{Arg, Source, completes},
    convert,
    errors::{about, interrupted, invalid},
    signature::{example, inputs_to, lisa, mode},
    types,
};
use lisa_engine::api::{Delivery, PermissionPolicy, Size, SpawnRequest};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, FromValue, LabeledError, Record, Signature, Spanned, SyntaxShape, Type, Value};
use std::collections::BTreeMap;

/// `lisa session spawn`
pub(crate) struct Spawn;

impl SimplePluginCommand for Spawn {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session spawn"
    }

    fn description(&self) -> &str {
        "Start an agent in a session of its own."
    }

    fn extra_description(&self) -> &str {
        "Arguments and flags that are not Lisa's own go to the agent as they are. A flag that switches the agent's\n\
         safety off is refused unless --dangerous says that it is meant."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["start", "run", "launch", "new"]
    }

    fn signature(&self) -> Signature {
        let text = || SyntaxShape::String;
        lisa("lisa session spawn")
            .optional("agent", text(), "The agent's profile; the setting `agent` unless said.")
            .rest("args", text(), "Further arguments for the agent, as they are. For `generic`: the command.")
            .allows_unknown_args()
            .named("prompt", text(), "What to ask of it; piped input unless said.", Some('p'))
            .named("name", text(), "A name of your own; a unique one is made unless said.", Some('n'))
            .named("tag", text(), "A label that becomes part of a made name.", Some('t'))
            .named("cwd", SyntaxShape::Directory, "The folder to work in; this one unless said.", Some('c'))
            .param(mode())
            .named("model", text(), "The model, in the agent's own words.", None)
            .named("env", SyntaxShape::Record([].into()), "Further environment for the agent.", Some('e'))
            .named(
                "policy",
                SyntaxShape::Record([].into()),
                "What to decide without asking: {allow: [Read], deny: []}.",
                None,
            )
            .named("size", text(), "Columns and rows of its terminal, such as 220x60.", None)
            .switch("trust", "Answer yes to a dialog that asks to trust the folder.", None)
            .switch("dangerous", "Allow flags that switch the agent's safety off.", None)
            .named("wait", SyntaxShape::Duration, "How long to wait until it is ready or blocked.", Some('w'))
            .input_output_types(inputs_to([Type::String], types::record(types::spawned())))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Start an agent with a prompt and a name",
                "lisa session spawn demo --name tests --prompt '!say Done.' | get name",
                Value::test_string("tests"),
            ),
            example(
                "Run one prompt to completion, and wait for it",
                "lisa session spawn demo --mode exec --prompt '!say Done.' | lisa session monitor --until completed | get status",
                Value::test_list(vec![Value::test_string("completed")]),
            ),
            example(
                "Start one agent for each file",
                "ls *.md | each {|file| $\"Check ($file.name).\" | lisa session spawn demo --tag $file.name | get tag }",
                Value::test_list(vec![Value::test_string("task.md")]),
            ),
        ]
    }

    completes!(Arg::Nth(0) => Source::Agents);

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = Lisa::open(interface, call)?.for_long();
        let agent = lisa.settings.agent(call.opt(0)?, call.head)?;
        let piped = input.as_str().ok().map(str::to_owned);
        let request = SpawnRequest {
            prompt: call.get_flag("prompt")?.or(piped),
            cwd: lisa.settings.cwd(call)?.map(|folder| lisa.folder(&folder)),
            name: call.get_flag("name")?,
            tag: call.get_flag("tag")?,
            mode: lisa.settings.mode(call)?,
            model: lisa.settings.model(call)?,
            args: call.rest(1)?,
            env: env(call)?,
            size: size(call)?,
            policy: policy(call)?,
            trust: call.has_flag("trust")?,
            dangerous: call.has_flag("dangerous")?,
            wait_ready_s: lisa.settings.wait_s(call)?,
            agent: agent.item,
        };
        let response = lisa.engine.spawn(&request).map_err(|error| about(&error, call, agent.span))?;
        if lisa.interrupt.raised() {
            let name = &response.session.name;
            let prompt = match &response.receipt {
                Some(receipt) if receipt.delivered == Delivery::Refused => ", and its prompt was not sent",
                _ => "",
            };
            return Err(interrupted(call.head).with_help(format!("`{name}` was started and stays{prompt}")));
        }
        Ok(convert::spawned(&response, call.head))
    }
}

fn env(call: &EvaluatedCall) -> Result<BTreeMap<String, String>, LabeledError> {
    let record: Record = call.get_flag("env")?.unwrap_or_default();
    record
        .into_iter()
        .map(|(name, value)| {
            let span = value.span();
            let text = value.coerce_into_string().map_err(|_| {
                invalid(format!("the variable `{name}` is no text"), "environment variables are texts", span)
            })?;
            Ok((name, text))
        })
        .collect()
}

#[derive(Debug, Default, FromValue)]
struct Policy {
    #[nu_value(default)]
    allow: Vec<String>,
    #[nu_value(default)]
    deny: Vec<String>,
}

fn policy(call: &EvaluatedCall) -> Result<Option<PermissionPolicy>, LabeledError> {
    let Some(value) = call.get_flag_value("policy") else { return Ok(None) };
    let span = value.span();
    let known = ["allow", "deny"];
    if let Some(unknown) = value.as_record()?.columns().find(|name| !known.contains(&name.as_str())) {
        let message = format!("a policy has no `{unknown}`");
        return Err(invalid(message, "a policy is {allow: [Read], deny: ['Bash(rm *)']}", span));
    }
    let Policy { allow, deny } = Policy::from_value(value)?;
    Ok(Some(PermissionPolicy { allow, deny }))
}

fn size(call: &EvaluatedCall) -> Result<Option<Size>, LabeledError> {
    let Some(given) = call.get_flag::<Spanned<String>>("size")? else { return Ok(None) };
    let parsed = given
        .item
        .split_once('x')
        .and_then(|(columns, rows)| Some(Size { columns: columns.parse().ok()?, rows: rows.parse().ok()? }));
    parsed.map(Some).ok_or_else(|| {
        invalid(
            format!("`{}` is no size of a terminal", given.item),
            "columns x rows, such as 220x60",
            given.span,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nu_protocol::{IntoSpanned, Span, record};

    fn with(flag: &str, value: Value) -> EvaluatedCall {
        EvaluatedCall::new(Span::test_data())
            .with_named(flag.to_owned().into_spanned(Span::test_data()), value)
    }

    #[test]
    fn a_size_is_columns_and_rows() {
        let given = |text: &str| size(&with("size", Value::test_string(text)));
        assert_eq!(given("120x40").unwrap(), Some(Size { columns: 120, rows: 40 }));
        assert!(given("120").is_err());
        assert!(given("120x-1").is_err());
    }

    #[test]
    fn environment_values_become_text() {
        let call = with("env", Value::test_record(record! { "N" => Value::test_int(1) }));
        assert_eq!(env(&call).unwrap(), BTreeMap::from([("N".to_owned(), "1".to_owned())]));
        let call = with("env", Value::test_record(record! { "N" => Value::test_list(vec![]) }));
        assert!(env(&call).is_err());
    }

    #[test]
    fn a_misspelt_policy_is_an_error() {
        let list = || Value::test_list(vec![Value::test_string("Read")]);
        let call = with("policy", Value::test_record(record! { "allow" => list() }));
        assert_eq!(policy(&call).unwrap().unwrap().allow, ["Read"]);
        let call = with("policy", Value::test_record(record! { "alow" => list() }));
        assert_eq!(policy(&call).unwrap_err().code.as_deref(), Some("lisa::invalid_argument"));
    }
}
