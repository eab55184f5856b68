//! `lisa session kill`: ends sessions.

use crate::{
    LisaPlugin, columns,
    commands::each::each_session,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    names::Names,
    signature::{OverNames, example, lisa},
};
use lisa_engine::api::KillRequest;
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Value, record};

/// `lisa session kill`
pub(crate) struct Kill;

impl SimplePluginCommand for Kill {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session kill"
    }

    fn description(&self) -> &str {
        "End sessions: each agent, its processes, and the sessions it started."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["stop", "end", "remove", "terminate"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session kill").names(columns::table(columns::ACTION)).switch(
            "force",
            "Kill the agent at once instead of letting it exit by itself first.",
            Some('f'),
        )
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "End a session",
                "lisa session kill docs | select name done",
                Value::test_list(vec![Value::test_record(record! {
                    "name" => Value::test_string("docs"),
                    "done" => Value::test_string("killed"),
                })]),
            ),
            example(
                "End what has completed",
                "lisa session list --status completed | lisa session kill",
                Value::test_list(vec![]),
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
        let lisa = CommandContext::open(interface, call)?;
        let force = call.has_flag("force")?;
        each_session(
            &lisa,
            Names::read(call, 0, input)?,
            |named| {
                let actions = lisa.engine.kill(&KillRequest { session: named.name.clone(), force })?;
                Ok(actions.sessions.iter().map(|action| convert::action(action, call.head)).collect())
            },
            |named, error| convert::not_done(&named.name, error, call.head),
        )
    }
}
