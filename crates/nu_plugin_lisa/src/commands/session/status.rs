//! `lisa session status`: shows what sessions are doing.

use crate::{
    LisaPlugin, columns,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::At,
    names::Names,
    signature::{OverNames, example, lisa},
};
use lisa_engine::api::SessionRequest;
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Value};

/// `lisa session status`
pub(crate) struct Status;

impl SimplePluginCommand for Status {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session status"
    }

    fn description(&self) -> &str {
        "Show what sessions are doing, with prompts, usage and all signals."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["state", "prompt", "signals"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session status").names(columns::table(columns::SESSION))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Show what a session is blocked on",
                "lisa session status fix-login | get prompt.command",
                Value::test_list(vec![Value::test_string("rm -rf build")]),
            ),
            example(
                "Show which signals could not be read",
                "lisa session list | lisa session status | get failed_signals | flatten",
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
        let sessions = Names::read(call, 0, input)?.required(call.head)?.into_iter().map(|named| {
            let session = lisa.engine.look(&SessionRequest { session: named.name }).at(named.span)?;
            Ok(convert::session(&session, call.head))
        });
        Ok(Value::list(sessions.collect::<Result<_, LabeledError>>()?, call.head))
    }
}
