//! `lisa session interrupt`: stopping turns.

use crate::{
    LisaPlugin,
    caller::Lisa,
    commands::each::each,
    complete::{Arg, Source, completes},
    convert,
    names::Names,
    signature::{OverNames, example, lisa},
    types,
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
        "Stop the turn that each session works on; the agent stays."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["stop", "escape", "cancel"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session interrupt").names(types::table(types::action()))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "A session that does not work has nothing to stop",
                "lisa session interrupt docs | get done",
                Value::test_list(vec![Value::test_string("not_working")]),
            ),
            example(
                "Stop everything that works",
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
        let lisa = Lisa::open(interface, call)?;
        each(
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
