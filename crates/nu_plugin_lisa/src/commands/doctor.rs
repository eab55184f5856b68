//! `lisa doctor`: checks the installation.

use crate::{
    LisaPlugin, columns,
    context::CommandContext,
    convert,
    signature::{example, lisa},
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
        lisa("lisa doctor")
            .switch(
                "trace",
                "Return a text for a bug report instead: versions, checks, and the log of one look at every session.",
                None,
            )
            .input_output_type(Type::Nothing, Type::one_of([columns::table(columns::CHECK), Type::String]))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Show what is missing and how to fix it",
                "lisa doctor | where required and ok == false | select name fix",
                Value::test_list(vec![]),
            ),
            Example {
                example: "lisa doctor --trace | save trace.txt",
                description: "Write a file to attach to a bug report",
                result: None,
            },
        ]
    }

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        _input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = CommandContext::open(interface, call)?;
        if call.has_flag("trace")? {
            return Ok(Value::string(lisa.engine.trace(), call.head));
        }
        Ok(convert::table(&lisa.engine.doctor().checks, columns::CHECK, call.head))
    }
}
