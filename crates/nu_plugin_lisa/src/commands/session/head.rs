//! `lisa session`: shows help for its subcommands.

use crate::{
    LisaPlugin,
    signature::{example, lisa},
};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Type, Value};

/// `lisa session`
pub(crate) struct Session;

impl SimplePluginCommand for Session {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session"
    }

    fn description(&self) -> &str {
        "Start, drive and inspect sessions."
    }

    fn extra_description(&self) -> &str {
        "A session is one agent in one tmux session. Pass its exact name; commands that only read also accept a unique\n\
         prefix or a tag."
    }

    fn signature(&self) -> Signature {
        lisa("lisa session").input_output_type(Type::Nothing, Type::String)
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "Show this help",
            "lisa session | str contains 'lisa session list'",
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
