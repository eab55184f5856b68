//! `lisa session spawn`: starts an agent.

use crate::{
    LisaPlugin, columns,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::{interrupted, invalid_argument, label_argument},
    signature::{example, inputs_to, lisa, mode},
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
        "Start an agent in its own session."
    }

    fn extra_description(&self) -> &str {
        "Arguments and flags that Lisa doesn't know are passed to the agent unchanged. A flag that disables the agent's\n\
         safety checks is rejected without --dangerous."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["start", "run", "launch", "new"]
    }

    fn signature(&self) -> Signature {
        let text = || SyntaxShape::String;
        lisa("lisa session spawn")
            .optional("agent", text(), "The agent's profile (default: the setting `agent`).")
            .rest(
                "args",
                text(),
                "Arguments for the agent, passed through unchanged. For `generic`: the command.",
            )
            .allows_unknown_args()
            .named("prompt", text(), "The prompt (default: piped input).", Some('p'))
            .named("name", text(), "The session's name (default: a generated one).", Some('n'))
            .named("tag", text(), "A label, also part of a generated name.", Some('t'))
            .named("cwd", SyntaxShape::Directory, "The working directory (default: this one).", Some('c'))
            .param(mode())
            .named("model", text(), "The model, as the agent names it.", None)
            .named(
                "env",
                SyntaxShape::Record([].into()),
                "Additional environment variables for the agent.",
                Some('e'),
            )
            .named(
                "policy",
                SyntaxShape::Record([].into()),
                "Permissions to allow or deny without asking: {allow: [Read], deny: []}.",
                None,
            )
            .named("size", text(), "Size of its terminal in columns and rows, such as 220x60.", None)
            .switch("trust", "Answer yes to a dialog that asks whether to trust the directory.", None)
            .switch("dangerous", "Allow flags that disable the agent's safety checks.", None)
            .named(
                "wait",
                SyntaxShape::Duration,
                "How long to wait for it to be ready or blocked.",
                Some('w'),
            )
            .input_output_types(inputs_to([Type::String], columns::record(columns::SPAWNED)))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Start an agent with a prompt and a name",
                "lisa session spawn demo --name tests --prompt '!say Done.' | get name",
                Value::test_string("tests"),
            ),
            example(
                "Run one prompt to completion and wait for it",
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
        let lisa = CommandContext::open(interface, call)?.with_liveness_check();
        let agent = lisa.settings.agent(call.opt(0)?, call.head)?;
        let piped = input.as_str().ok().map(str::to_owned);
        let request = SpawnRequest {
            prompt: call.get_flag("prompt")?.or(piped),
            cwd: lisa.settings.cwd(call)?.map(|path| lisa.absolute_path(&path)),
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
        let response =
            lisa.engine.spawn(&request).map_err(|error| label_argument(&error, call, agent.span))?;
        if lisa.interrupt.is_cancelled() {
            let name = &response.session.name;
            let prompt = match &response.receipt {
                Some(receipt) if receipt.delivered == Delivery::Refused => ", and its prompt was not sent",
                _ => "",
            };
            return Err(
                interrupted(call.head).with_help(format!("`{name}` was started and keeps running{prompt}"))
            );
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
                invalid_argument(
                    format!("the variable `{name}` is not a string"),
                    "environment variables must be strings",
                    span,
                )
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
        let message = format!("unknown field `{unknown}` in the policy");
        return Err(invalid_argument(message, "a policy is {allow: [Read], deny: ['Bash(rm *)']}", span));
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
        invalid_argument(
            format!("invalid terminal size `{}`", given.item),
            "pass columns x rows, such as 220x60",
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
    fn environment_values_become_strings() {
        let call = with("env", Value::test_record(record! { "N" => Value::test_int(1) }));
        assert_eq!(env(&call).unwrap(), BTreeMap::from([("N".to_owned(), "1".to_owned())]));
        let call = with("env", Value::test_record(record! { "N" => Value::test_list(vec![]) }));
        assert!(env(&call).is_err());
    }

    #[test]
    fn an_unknown_policy_field_is_an_error() {
        let list = || Value::test_list(vec![Value::test_string("Read")]);
        let call = with("policy", Value::test_record(record! { "allow" => list() }));
        assert_eq!(policy(&call).unwrap().unwrap().allow, ["Read"]);
        let call = with("policy", Value::test_record(record! { "alow" => list() }));
        assert_eq!(policy(&call).unwrap_err().code.as_deref(), Some("lisa::invalid_argument"));
    }
}
