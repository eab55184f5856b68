//! `lisa session exists`: tests whether a session exists.

use crate::{
    LisaPlugin,
    complete::{Arg, Source, completes},
    context::CommandContext,
    errors::At,
    names::Names,
    signature::{OverNames, example, lisa},
};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Type, Value};

/// `lisa session exists`
pub(crate) struct Exists;

impl SimplePluginCommand for Exists {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session exists"
    }

    fn description(&self) -> &str {
        "Test whether a session with this exact name exists."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["has", "find"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session exists").one_name(Type::Bool)
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example("A session that exists", "lisa session exists fix-login", Value::test_bool(true)),
            example("A session that does not exist", "lisa session exists nobody", Value::test_bool(false)),
        ]
    }

    completes!(Arg::Nth(0) => Source::Sessions);

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = CommandContext::open(interface, call)?;
        let named = Names::read(call, 0, input)?.one(call.head)?;
        Ok(Value::bool(lisa.engine.exists(&named.name).at(named.span)?, call.head))
    }
}
