//! `lisa agent`: shows help for its subcommands.

use crate::{
    LisaPlugin,
    signature::{example, lisa},
};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Type, Value};

/// `lisa agent`
pub(crate) struct Agent;

impl SimplePluginCommand for Agent {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa agent"
    }

    fn description(&self) -> &str {
        "Show the agents that can be started."
    }

    fn extra_description(&self) -> &str {
        "To add an agent, put its profile (a TOML file) into $XDG_CONFIG_HOME/lisa/agents."
    }

    fn signature(&self) -> Signature {
        lisa("lisa agent").input_output_type(Type::Nothing, Type::String)
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "Show this help",
            "lisa agent | str contains 'lisa agent build-cmd'",
            Value::test_bool(true),
        )]
    }

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        _input: &Value,
    ) -> Result<Value, LabeledError> {
        Ok(Value::string(interface.get_help()?, call.head))
    }
}
