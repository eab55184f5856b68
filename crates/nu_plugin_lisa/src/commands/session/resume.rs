//! `lisa session resume`: resumes conversations.

use crate::{
    LisaPlugin, columns,
    commands::each::each_session,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    names::Names,
    signature::{OverNames, example, lisa},
};
use lisa_engine::api::ResumeRequest;
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, SyntaxShape, Value};

/// `lisa session resume`
pub(crate) struct Resume;

impl SimplePluginCommand for Resume {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session resume"
    }

    fn description(&self) -> &str {
        "Resume an agent's own conversation after the agent has ended."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["continue", "restart"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session resume")
            .names(columns::table(columns::ACTION))
            .named("prompt", SyntaxShape::String, "A prompt to continue with.", Some('p'))
            .named("wait", SyntaxShape::Duration, "How long to wait for the agent to be ready.", Some('w'))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Resume everything that crashed",
                "lisa session list --status crashed | lisa session resume",
                Value::test_list(vec![]),
            ),
            example(
                "A session that is still running is left alone",
                "lisa session resume docs --prompt 'go on' | get done",
                Value::test_list(vec![Value::test_string("already_running")]),
            ),
        ]
    }

    completes!(Arg::From(0) => Source::Sessions);

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = CommandContext::open(interface, call)?.with_liveness_check();
        let prompt: Option<String> = call.get_flag("prompt")?;
        let wait_ready_s = lisa.settings.wait_s(call)?;
        each_session(
            &lisa,
            Names::read(call, 0, input)?,
            |named| {
                let response = lisa.engine.resume(&ResumeRequest {
                    session: named.name.clone(),
                    prompt: prompt.clone(),
                    wait_ready_s,
                })?;
                Ok(vec![convert::action(&response.action, call.head)])
            },
            |named, error| convert::not_done(&named.name, error, call.head),
        )
    }
}
