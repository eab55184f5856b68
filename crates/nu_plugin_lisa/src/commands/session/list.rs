//! `lisa session list`: the sessions there are.

use crate::{
    LisaPlugin,
    caller::Lisa,
    complete::{Arg, Source, completes},
    convert,
    errors::{At, invalid},
    signature::{STATUSES, choice, example, lisa},
    types,
};
use lisa_engine::{api::ListRequest, words::Status};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Spanned, SyntaxShape, Type, Value, record};

/// `lisa session list`
pub(crate) struct List;

impl SimplePluginCommand for List {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session list"
    }

    fn description(&self) -> &str {
        "List sessions: what each is doing, since when, and what it asks."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["ps", "ls", "overview", "waiting"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session list")
            .named("agent", SyntaxShape::String, "Only those of this agent.", Some('a'))
            .param(choice("status", Some('s'), STATUSES, "Only those with this status."))
            .named(
                "project",
                SyntaxShape::String,
                "Only those of this project: its name, its hash, or a folder in it.",
                Some('p'),
            )
            .switch("all", "Those of every project, whatever the setting `project` says.", Some('A'))
            .input_output_type(Type::Nothing, types::table(types::row()))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "See who waits for an answer",
                "lisa session list | where prompt != null | get name",
                Value::test_list(vec![Value::test_string("fix-login")]),
            ),
            example(
                "Count sessions by status",
                "lisa session list | group-by status --to-table | update items { length }",
                Value::test_list(vec![Value::test_record(record! {
                    "status" => Value::test_string("waiting_input"),
                    "items" => Value::test_int(2),
                })]),
            ),
            example(
                "See what has been idle for long",
                "lisa session list | where idle > 5min",
                Value::test_list(vec![]),
            ),
        ]
    }

    completes!(Arg::Flag("agent") => Source::Agents);

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        _input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = Lisa::open(interface, call)?;
        let request = ListRequest {
            status: status(call)?,
            agent: call.get_flag("agent")?,
            project: lisa.settings.project(call)?.map(|project| lisa.project(project)),
            ..ListRequest::default()
        };
        let sessions = lisa.engine.sessions(&request).at(call.head)?;
        Ok(convert::rows(&sessions, call.head))
    }
}

fn status(call: &EvaluatedCall) -> Result<Option<Status>, LabeledError> {
    let Some(given) = call.get_flag::<Spanned<String>>("status")? else { return Ok(None) };
    Status::parse(&given.item).map(Some).ok_or_else(|| {
        let message = format!("there is no status `{}`", given.item);
        invalid(message, format!("statuses: {}", STATUSES.join(", ")), given.span)
    })
}
