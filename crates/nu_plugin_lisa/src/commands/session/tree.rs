//! `lisa session tree`: shows which session started which.

use crate::{
    LisaPlugin, columns,
    context::CommandContext,
    convert,
    errors::At,
    signature::{example, lisa},
};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Type, Value};

/// `lisa session tree`
pub(crate) struct Tree;

impl SimplePluginCommand for Tree {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session tree"
    }

    fn description(&self) -> &str {
        "Show sessions with the sessions they started."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["parent", "children", "nested"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session tree").input_output_type(Type::Nothing, columns::table(columns::TREE))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Show the sessions that no other session started",
                "lisa session tree | get name | sort",
                Value::test_list(vec![Value::test_string("docs"), Value::test_string("fix-login")]),
            ),
            example(
                "Show the whole tree",
                "lisa session tree | table --expand | str contains 'fix-login'",
                Value::test_bool(true),
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
        let lisa = CommandContext::open(interface, call)?;
        let roots = lisa.engine.tree().at(call.head)?;
        Ok(Value::list(roots.iter().map(|root| convert::tree(root, call.head)).collect(), call.head))
    }
}
