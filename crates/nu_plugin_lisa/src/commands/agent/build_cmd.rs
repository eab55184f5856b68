//! `lisa agent build-cmd`: shows the command line of a spawn.

use crate::{
    LisaPlugin,
    complete::{Arg, Source, completes},
    context::CommandContext,
    errors::label_argument,
    signature::{example, inputs_to, lisa, mode},
};
use lisa_engine::api::BuildCommandRequest;
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, SyntaxShape, Type, Value};

/// `lisa agent build-cmd`
pub(crate) struct BuildCmd;

impl SimplePluginCommand for BuildCmd {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa agent build-cmd"
    }

    fn description(&self) -> &str {
        "Show the command line that a spawn would run, without running it."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["argv", "dry-run", "command"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa agent build-cmd")
            .optional("agent", SyntaxShape::String, "The agent's profile (default: the setting `agent`).")
            .rest("args", SyntaxShape::String, "Arguments for the agent, passed through unchanged.")
            .allows_unknown_args()
            .param(mode())
            .named("prompt", SyntaxShape::String, "The prompt (default: piped input).", Some('p'))
            .named("model", SyntaxShape::String, "The model, as the agent names it.", None)
            .input_output_types(inputs_to([Type::String], Type::list(Type::String)))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "Show how a plain command is run",
            "lisa agent build-cmd generic sleep 10 | last 2 | path basename",
            Value::test_list(vec![Value::test_string("sleep"), Value::test_string("10")]),
        )]
    }

    completes!(Arg::Nth(0) => Source::Agents);

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = CommandContext::open(interface, call)?;
        let agent = lisa.settings.agent(call.opt(0)?, call.head)?;
        let piped = input.as_str().ok().map(str::to_owned);
        let request = BuildCommandRequest {
            mode: lisa.settings.mode(call)?,
            prompt: call.get_flag("prompt")?.or(piped),
            model: lisa.settings.model(call)?,
            args: call.rest(1)?,
            agent: agent.item,
        };
        let argv =
            lisa.engine.build_command(&request).map_err(|error| label_argument(&error, call, agent.span))?;
        Ok(Value::list(argv.into_iter().map(|word| Value::string(word, call.head)).collect(), call.head))
    }
}
