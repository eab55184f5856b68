//! `lisa`: shows help for all commands.

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
        "Run AI coding agents in tmux, and see what each of them is doing."
    }

    fn extra_description(&self) -> &str {
        "Start with `lisa doctor`, then `lisa session spawn claude --prompt \"…\"` and `lisa session list`.\n\
         \n\
         Settings in $env.config.plugins.lisa (all optional; flags override them):\n  \
         agent: string      default agent\n  \
         mode: string       interactive (default) or exec\n  \
         model: string      the model, as the agent names it\n  \
         cwd: string        directory for new sessions\n  \
         wait: duration     how long spawn and resume wait for the agent to be ready\n  \
         timeout: duration  timeout of monitor (default: none)\n  \
         lines: int         maximum number of lines for capture (default: 80)\n  \
         project: string    the project to list, such as `.` (default: all)"
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
                "Use codex as the default agent",
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
