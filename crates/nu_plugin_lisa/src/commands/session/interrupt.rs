//! `lisa session interrupt`: stops turns.

use crate::{
    LisaPlugin, columns,
    commands::each::each_session,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    names::Names,
    signature::{OverNames, example, lisa},
};
use lisa_engine::api::SessionRequest;
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Value};

/// `lisa session interrupt`
pub(crate) struct Interrupt;

impl SimplePluginCommand for Interrupt {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session interrupt"
    }

    fn description(&self) -> &str {
        "Stop the current turn of sessions; the agents keep running."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["stop", "escape", "cancel"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session interrupt").names(columns::table(columns::ACTION))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "A session that is not working has no turn to stop",
                "lisa session interrupt docs | get done",
                Value::test_list(vec![Value::test_string("not_working")]),
            ),
            example(
                "Stop every session that is working",
                "lisa session list --status in_progress | lisa session interrupt",
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
        each_session(
            &lisa,
            Names::read(call, 0, input)?,
            |named| {
                let response = lisa.engine.interrupt(&SessionRequest { session: named.name.clone() })?;
                Ok(vec![convert::action(&response.action, call.head)])
            },
            |named, error| convert::not_done(&named.name, error, call.head),
        )
    }
}
