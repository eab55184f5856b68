//! `lisa doctor`: checks the installation.

use crate::{
    LisaPlugin,
    context::CommandContext,
    convert,
    signature::{example, lisa},
    types,
};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Type, Value};

/// `lisa doctor`
pub(crate) struct Doctor;

impl SimplePluginCommand for Doctor {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa doctor"
    }

    fn description(&self) -> &str {
        "Check the installation: tmux, agents, directories and limits."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["check", "health", "install"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa doctor").input_output_type(Type::Nothing, types::table(types::check()))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "Show what is missing and how to fix it",
            "lisa doctor | where required and ok == false | select name fix",
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
        Ok(convert::list(&lisa.engine.doctor().checks, call.head, convert::check))
    }
}
