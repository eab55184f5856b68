//! `lisa session list`: lists sessions.

use crate::{
    LisaPlugin, columns,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::{At, invalid_argument},
    signature::{STATUSES, choice, example, lisa},
};
use lisa_engine::api::{ListRequest, words::Status};
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
            .named("agent", SyntaxShape::String, "Only sessions of this agent.", Some('a'))
            .param(choice("status", Some('s'), STATUSES, "Only sessions with this status."))
            .named(
                "project",
                SyntaxShape::String,
                "Only sessions of this project: its name, its hash, or a directory in it.",
                Some('p'),
            )
            .switch("all", "Sessions of all projects (overrides the setting `project`).", Some('A'))
            .input_output_type(Type::Nothing, columns::table(columns::ROW))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Show who waits for an answer",
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
                "Show what has been idle for a long time",
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
        let lisa = CommandContext::open(interface, call)?;
        let request = ListRequest {
            status: status(call)?,
            agent: call.get_flag("agent")?,
            project: lisa.settings.project(call)?.map(|project| lisa.absolute_project(project)),
            ..ListRequest::default()
        };
        let sessions = lisa.engine.sessions(&request).at(call.head)?;
        Ok(convert::sessions(&sessions, call.head))
    }
}

fn status(call: &EvaluatedCall) -> Result<Option<Status>, LabeledError> {
    let Some(given) = call.get_flag::<Spanned<String>>("status")? else { return Ok(None) };
    Status::parse(&given.item).map(Some).ok_or_else(|| {
        let message = format!("unknown status `{}`", given.item);
        invalid_argument(message, format!("statuses: {}", STATUSES.join(", ")), given.span)
    })
}
