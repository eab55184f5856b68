//! `lisa`: the head of all commands.

use crate::{
    LisaPlugin,
    signature::{example, lisa},
};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Type, Value};

/// `lisa`
pub(crate) struct Lisa;

impl SimplePluginCommand for Lisa {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa"
    }

    fn description(&self) -> &str {
        "Run AI coding agents in tmux, and know what each of them is doing."
    }

    fn extra_description(&self) -> &str {
        "Start with `lisa doctor`, then `lisa session spawn claude --prompt \"…\"` and `lisa session list`.\n\
         \n\
         Settings, all optional, in $env.config.plugins.lisa; flags override them:\n  \
         agent: string      the agent to start where none is named\n  \
         mode: string       interactive or exec\n  \
         model: string      the model, in the agent's own words\n  \
         cwd: string        the folder that sessions start in\n  \
         wait: duration     how long spawn and resume wait for the agent to be ready\n  \
         timeout: duration  how long monitor waits\n  \
         lines: int         how many lines capture takes\n  \
         project: string    the project that list is about, such as `.`"
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["agent", "claude", "codex", "tmux", "ai"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa").input_output_type(Type::Nothing, Type::String)
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example("Show this help", "lisa | str contains 'lisa session'", Value::test_bool(true)),
            example(
                "Start with codex where no agent is named",
                "$env.config.plugins.lisa = { agent: codex, timeout: 10min }",
                None,
            ),
        ]
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
