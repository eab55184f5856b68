//! `lisa session kill-all`: ends many sessions.

use crate::{
    LisaPlugin, columns,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::At,
    signature::{example, lisa},
};
use lisa_engine::api::KillAllRequest;
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, SyntaxShape, Type, Value};

/// `lisa session kill-all`
pub(crate) struct KillAll;

impl SimplePluginCommand for KillAll {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session kill-all"
    }

    fn description(&self) -> &str {
        "End all sessions, or all of a project or an agent."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["stop", "end", "clear"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session kill-all")
            .named(
                "project",
                SyntaxShape::String,
                "Only sessions of this project: its name, its hash, or a directory in it.",
                Some('p'),
            )
            .named("agent", SyntaxShape::String, "Only sessions of this agent.", Some('a'))
            .switch(
                "force",
                "Kill the agents at once instead of letting them exit by themselves first.",
                Some('f'),
            )
            .input_output_type(Type::Nothing, columns::table(columns::ACTION))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "End every session of an agent",
            "lisa session kill-all --agent demo | get name | sort",
            Value::test_list(vec![Value::test_string("docs"), Value::test_string("fix-login")]),
        )]
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
        let project: Option<String> = call.get_flag("project")?;
        let request = KillAllRequest {
            project: project.map(|project| lisa.absolute_project(project)),
            agent: call.get_flag("agent")?,
            force: call.has_flag("force")?,
        };
        let actions = lisa.engine.kill_all(&request).at(call.head)?;
        Ok(Value::list(
            actions.sessions.iter().map(|action| convert::action(action, call.head)).collect(),
            call.head,
        ))
    }
}
