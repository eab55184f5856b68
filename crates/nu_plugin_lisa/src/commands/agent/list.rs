//! `lisa agent list`: lists agents.

use crate::{
    LisaPlugin, columns,
    context::CommandContext,
    convert,
    errors::At,
    signature::{example, lisa},
};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Type, Value};

/// `lisa agent list`
pub(crate) struct List;

impl SimplePluginCommand for List {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa agent list"
    }

    fn description(&self) -> &str {
        "List the agents that can be started, and whether each is installed."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["profiles", "claude", "codex"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa agent list").input_output_type(Type::Nothing, columns::table(columns::AGENT))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "Find an agent",
            "lisa agent list | where id == demo | get id",
            Value::test_list(vec![Value::test_string("demo")]),
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
        let agents = lisa.engine.agents().at(call.head)?;
        Ok(convert::table(&agents, columns::AGENT, call.head))
    }
}
