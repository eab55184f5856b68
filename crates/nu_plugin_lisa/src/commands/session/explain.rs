//! `lisa session explain`: explains a verdict.

use crate::{
    LisaPlugin, columns,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::At,
    names::Names,
    signature::{OverNames, example, lisa},
};
use lisa_engine::api::SessionRequest;
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Value, record};

/// `lisa session explain`
pub(crate) struct Explain;

impl SimplePluginCommand for Explain {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session explain"
    }

    fn description(&self) -> &str {
        "Explain a session's status: the rule that decided, and the evidence."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["why", "evidence", "rule"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session explain").one_name(columns::record(columns::EXPLANATION))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "Show the state, and whether there is evidence for it",
            "lisa session explain fix-login | {state: $in.state, proven: ($in.evidence_for | is-not-empty)}",
            Value::test_record(record! {
                "state" => Value::test_string("awaiting_permission"),
                "proven" => Value::test_bool(true),
            }),
        )]
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
        let explanation = lisa.engine.explain(&SessionRequest { session: named.name }).at(named.span)?;
        Ok(convert::explanation(&explanation, call.head))
    }
}
