//! `lisa session send`: sends a prompt or keys to a session.

use crate::{
    LisaPlugin, columns,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::{interrupted, invalid_argument, label_argument},
    signature::{example, inputs_to, lisa},
};
use lisa_engine::api::{Delivery, SendRequest};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Spanned, SyntaxShape, Type, Value};
use std::time::Duration;

/// `lisa session send`
pub(crate) struct Send;

impl SimplePluginCommand for Send {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session send"
    }

    fn description(&self) -> &str {
        "Send a prompt or keys to a session, and check that they arrived."
    }

    fn extra_description(&self) -> &str {
        "Nothing is typed blindly. A send is refused if a prompt is open, the agent is working (unless --queue), somebody's\n\
         draft is in the input box, or the agent has exited. The result says why, and what to do instead."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["prompt", "type", "keys", "input"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session send")
            .required("name", SyntaxShape::String, "The session's exact name.")
            .optional("text", SyntaxShape::String, "The prompt (default: piped input).")
            .named(
                "keys",
                SyntaxShape::List(Box::new(SyntaxShape::String)),
                "Keys to press instead of text, such as [Escape C-c].",
                Some('k'),
            )
            .switch(
                "queue",
                "Also send to a working agent, which starts the prompt after its current turn.",
                Some('q'),
            )
            .switch("replace-draft", "Replace a draft in the input box.", None)
            .switch("force", "Press keys even if a dialog is open. Never applies to text.", Some('f'))
            .named(
                "wait",
                SyntaxShape::Duration,
                "How long to wait for an agent that is still starting (default: 30sec).",
                Some('w'),
            )
            .input_output_types(inputs_to([Type::String], columns::record(columns::SENT)))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Send a prompt",
                "lisa session send docs '!say Thanks.' | get delivered",
                Value::test_string("submitted"),
            ),
            example(
                "A blocked session takes no text: answer its prompt instead",
                "lisa session send fix-login 'go on' | get refusal",
                Value::test_string("prompt_open"),
            ),
            example(
                "Send a file as the prompt, and wait for the end of its turn",
                "open task.md --raw | lisa session send docs | lisa session monitor --until turn | get state",
                Value::test_list(vec![Value::test_string("ready")]),
            ),
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
        let lisa = CommandContext::open(interface, call)?.with_liveness_check();
        let name: Spanned<String> = call.req(0)?;
        let piped = input.as_str().ok().map(str::to_owned);
        let request = SendRequest {
            text: call.opt(1)?.or(piped),
            keys: call.get_flag("keys")?.unwrap_or_default(),
            queue: call.has_flag("queue")?,
            replace_draft: call.has_flag("replace-draft")?,
            force: call.has_flag("force")?,
            wait_s: call.get_flag::<Duration>("wait")?.map(|wait| wait.as_secs_f64()),
            session: name.item,
        };
        if request.text.is_none() && request.keys.is_empty() {
            return Err(invalid_argument(
                "there is nothing to send",
                "pass a text, pipe one in, or use --keys",
                call.head,
            ));
        }
        let response = lisa.engine.send(&request).map_err(|error| label_argument(&error, call, name.span))?;
        if lisa.interrupt.is_cancelled() && response.receipt.delivered == Delivery::Refused {
            return Err(interrupted(call.head).with_help("nothing was sent"));
        }
        Ok(convert::sent(&response, call.head))
    }
}
