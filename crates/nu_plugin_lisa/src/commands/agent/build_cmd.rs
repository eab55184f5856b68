//! `lisa agent build-cmd`: the command line of a spawn.

use crate::{
    LisaPlugin,
    caller::Lisa,
    complete::{Arg, Source, completes},
    convert,
    errors::about,
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
        "Show the command that a spawn would run, without running it."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["argv", "dry-run", "command"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa agent build-cmd")
            .optional("agent", SyntaxShape::String, "The agent's profile; the setting `agent` unless said.")
            .rest("args", SyntaxShape::String, "Further arguments for the agent, as they are.")
            .allows_unknown_args()
            .param(mode())
            .named("prompt", SyntaxShape::String, "What to ask of it.", Some('p'))
            .named("model", SyntaxShape::String, "The model, in the agent's own words.", None)
            .input_output_types(inputs_to([Type::String], Type::list(Type::String)))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "See how a plain command is run",
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
        let lisa = Lisa::open(interface, call)?;
        let agent = lisa.settings.agent(call.opt(0)?, call.head)?;
        let piped = input.as_str().ok().map(str::to_owned);
        let request = BuildCommandRequest {
            mode: lisa.settings.mode(call)?,
            prompt: call.get_flag("prompt")?.or(piped),
            model: lisa.settings.model(call)?,
            args: call.rest(1)?,
            agent: agent.item,
        };
        let argv = lisa.engine.build_command(&request).map_err(|error| about(&error, call, agent.span))?;
        Ok(convert::list(&argv, call.head, |word, span| Value::string(word.as_str(), span)))
    }
}
