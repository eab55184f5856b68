//! `lisa cleanup`: removes leftovers of sessions.

use crate::{
    LisaPlugin, columns,
    context::CommandContext,
    convert,
    errors::At,
    signature::{example, lisa},
};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Type, Value};

/// `lisa cleanup`
pub(crate) struct Cleanup;

impl SimplePluginCommand for Cleanup {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa cleanup"
    }

    fn description(&self) -> &str {
        "Remove leftovers of sessions that no longer exist: directories, sockets and dead panes."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["prune", "remove", "stale"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa cleanup").input_output_type(Type::Nothing, columns::table(columns::REMOVED))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "Remove what is no longer used; live sessions stay",
            "lisa cleanup | where name == 'fix-login'",
            Value::test_list(vec![]),
        )]
    }

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        _input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = CommandContext::open(interface, call)?;
        let response = lisa.engine.cleanup().at(call.head)?;
        Ok(convert::table(&response.removed, columns::REMOVED, call.head))
    }
}
