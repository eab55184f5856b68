//! `lisa replay`: shows Lisa's verdict on each frame of a recording.

use crate::{
    LisaPlugin, columns,
    context::CommandContext,
    convert,
    errors::{At, invalid_argument, labeled},
    signature::{example, inputs_to, lisa},
};
use lisa_engine::error::Error;
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Spanned, SyntaxShape, Type, Value};
use std::{fs::File, io::BufReader};

/// `lisa replay`
pub(crate) struct Replay;

impl SimplePluginCommand for Replay {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa replay"
    }

    fn description(&self) -> &str {
        "Show Lisa's verdict on each frame of a recording."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["recording", "verdict", "test"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa replay")
            .optional("file", SyntaxShape::Filepath, "The recording, plain or gzip (default: piped input).")
            .input_output_types(inputs_to([Type::String, Type::Binary], columns::table(columns::REPLAYED)))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "A file that does not exist",
                "try { lisa replay /nowhere.jsonl } catch {|e| $e.details.code }",
                Value::test_string("lisa::io"),
            ),
            example(
                "Show when the verdict changed",
                "lisa replay docs.jsonl | chunk-by { get state } | each { first | get state }",
                Value::test_list(vec![Value::test_string("ready")]),
            ),
        ]
    }

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = CommandContext::open(interface, call)?;
        let rows = match (call.opt::<Spanned<String>>(0)?, input) {
            (Some(given), _) => {
                let path = lisa.cwd.join(&given.item);
                let file = File::open(&path)
                    .map_err(|error| labeled(&Error::io("read", &path, &error), given.span))?;
                lisa.engine.replay(&mut BufReader::new(file)).at(given.span)?
            }
            (None, Value::String { val, internal_span, .. }) => {
                lisa.engine.replay(&mut val.as_bytes()).at(*internal_span)?
            }
            (None, Value::Binary { val, internal_span, .. }) => {
                lisa.engine.replay(&mut val.as_ref()).at(*internal_span)?
            }
            (None, _) => {
                return Err(invalid_argument(
                    "no recording given",
                    "pass a file, or pipe a recording in",
                    call.head,
                ));
            }
        };
        Ok(convert::table(&rows, columns::REPLAYED, call.head))
    }
}
