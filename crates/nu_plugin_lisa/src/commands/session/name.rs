//! `lisa session name`: generates a unique name.

use crate::{
    LisaPlugin,
    complete::{Arg, Source, completes},
    context::CommandContext,
    errors::label_argument,
    signature::{example, lisa, mode},
};
use lisa_engine::api::NameRequest;
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, SyntaxShape, Type, Value};

/// `lisa session name`
pub(crate) struct Name;

impl SimplePluginCommand for Name {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session name"
    }

    fn description(&self) -> &str {
        "Generate a unique session name without starting anything."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["unique", "id"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session name")
            .optional("agent", SyntaxShape::String, "The agent's profile (default: the setting `agent`).")
            .param(mode())
            .named("tag", SyntaxShape::String, "A label that becomes part of the name.", Some('t'))
            .named("cwd", SyntaxShape::Directory, "The working directory (default: this one).", Some('c'))
            .input_output_type(Type::Nothing, Type::String)
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "Generate a name with a label",
            "lisa session name demo --tag docs | str ends-with '-demo-interactive-docs'",
            Value::test_bool(true),
        )]
    }

    completes!(Arg::Nth(0) => Source::Agents);

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        _input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = CommandContext::open(interface, call)?;
        let agent = lisa.settings.agent(call.opt(0)?, call.head)?;
        let request = NameRequest {
            mode: lisa.settings.mode(call)?,
            tag: call.get_flag("tag")?,
            cwd: lisa.settings.cwd(call)?.map(|path| lisa.absolute_path(&path)),
            agent: agent.item,
        };
        Ok(Value::string(
            lisa.engine.name(&request).map_err(|error| label_argument(&error, call, agent.span))?,
            call.head,
        ))
    }
}
