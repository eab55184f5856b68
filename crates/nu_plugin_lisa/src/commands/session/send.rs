//! `lisa session send`: a prompt or keys for a session.

use crate::{
    LisaPlugin,
    caller::Lisa,
    complete::{Arg, Source, completes},
    convert,
    errors::{about, interrupted, invalid},
    signature::{example, inputs_to, lisa},
    types,
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
        "Send a prompt or keys to a session, and prove that they arrived."
    }

    fn extra_description(&self) -> &str {
        "Nothing is typed blindly. A send is refused, and says why and what to do instead, when a prompt is open, the\n\
         agent works (unless --queue), somebody's draft stands in the input box, or the agent is gone."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["prompt", "type", "keys", "input"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session send")
            .required("name", SyntaxShape::String, "The session's exact name.")
            .optional("text", SyntaxShape::String, "The prompt; piped input unless said.")
            .named(
                "keys",
                SyntaxShape::List(Box::new(SyntaxShape::String)),
                "Instead of text: keys such as [Escape C-c].",
                Some('k'),
            )
            .switch(
                "queue",
                "Send to a working agent too; it takes the prompt up when its turn is over.",
                Some('q'),
            )
            .switch("replace-draft", "Replace what somebody has typed but not sent.", None)
            .switch("force", "Press keys even while a dialog is open. Never applies to text.", Some('f'))
            .named(
                "wait",
                SyntaxShape::Duration,
                "How long to wait for an agent that is still starting.",
                Some('w'),
            )
            .input_output_types(inputs_to([Type::String], types::record(types::sent())))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Ask for something",
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
        let lisa = Lisa::open(interface, call)?.for_long();
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
            return Err(invalid(
                "there is nothing to send",
                "give a text, pipe one in, or use --keys",
                call.head,
            ));
        }
        let response = lisa.engine.send(&request).map_err(|error| about(&error, call, name.span))?;
        if lisa.interrupt.raised() && response.receipt.delivered == Delivery::Refused {
            return Err(interrupted(call.head).with_help("nothing was sent"));
        }
        Ok(convert::sent(&response, call.head))
    }
}
