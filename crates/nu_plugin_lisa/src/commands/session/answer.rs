//! `lisa session answer`: answers prompts.

use crate::{
    LisaPlugin, columns,
    commands::each::each_session,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::{code, invalid_argument},
    names::Names,
    signature::{OverNames, example, lisa},
};
use lisa_engine::{api::AnswerRequest, error::Kind};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, SyntaxShape, Value};

/// `lisa session answer`
pub(crate) struct Answer;

impl SimplePluginCommand for Answer {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session answer"
    }

    fn description(&self) -> &str {
        "Answer the prompt that each session is blocked on."
    }

    fn extra_description(&self) -> &str {
        "Rows from `lisa session list` or `status` contain the prompt's id: if another prompt is open by now, nothing is\n\
         pressed."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["allow", "deny", "permission", "choose"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session answer")
            .names(columns::table(columns::ANSWERED))
            .named(
                "choice",
                SyntaxShape::OneOf(vec![
                    SyntaxShape::List(Box::new(SyntaxShape::String)),
                    SyntaxShape::String,
                ]),
                "An option's key, label or effect (allow_once, allow_always, deny); a list for several.",
                Some('c'),
            )
            .named("text", SyntaxShape::String, "A free-text answer, if the prompt takes one.", Some('t'))
            .named("prompt-id", SyntaxShape::String, "Answer only if this prompt is still open.", None)
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Allow what a session asks for",
                "lisa session answer fix-login --choice allow_once | get effect",
                Value::test_list(vec![Value::test_string("allow_once")]),
            ),
            example(
                "Deny everything that is asked",
                "lisa session list | where prompt != null | lisa session answer --choice deny | get name",
                Value::test_list(vec![Value::test_string("fix-login")]),
            ),
            example(
                "Allow what has been waiting for a long time",
                "lisa session list | where status == waiting_input and idle > 5min | lisa session answer --choice allow_once",
                Value::test_list(vec![]),
            ),
        ]
    }

    completes!(Arg::From(0) => Source::BlockedSessions, Arg::Flag("choice") => Source::Options);

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = CommandContext::open(interface, call)?;
        let choices = choices(call)?;
        let text: Option<String> = call.get_flag("text")?;
        if choices.is_empty() && text.is_none() {
            return Err(invalid_argument("no answer given", "pass --choice or --text", call.head));
        }
        let prompt_id: Option<String> = call.get_flag("prompt-id")?;
        let (choice, choices) = match choices.as_slice() {
            [only] => (Some(only.clone()), Vec::new()),
            _ => (None, choices),
        };
        each_session(
            &lisa,
            Names::read(call, 0, input)?,
            |named| {
                let response = lisa.engine.answer(&AnswerRequest {
                    session: named.name.clone(),
                    choice: choice.clone(),
                    choices: choices.clone(),
                    text: text.clone(),
                    prompt_id: prompt_id.clone().or_else(|| named.prompt_id.clone()),
                })?;
                Ok(vec![convert::answered(&response, call.head)])
            },
            |named, error| convert::not_answered(&named.name, error, call.head),
        )
        .map_err(|error| at_choice(error, call))
    }
}

/// Labels an error about the choice at the flag instead of the session.
fn at_choice(mut error: LabeledError, call: &EvaluatedCall) -> LabeledError {
    let about_choice = error.code.as_deref() == Some(code(Kind::UnknownChoice).as_str());
    let given = call.get_flag_value("choice").or_else(|| call.get_flag_value("text"));
    if let (true, Some(given)) = (about_choice, given) {
        error.labels.iter_mut().for_each(|label| label.span = given.span());
    }
    error
}

/// `--choice`: one word or a list. Nushell parses a key such as `1` as a number.
fn choices(call: &EvaluatedCall) -> Result<Vec<String>, LabeledError> {
    let word = |value: Value| {
        let span = value.span();
        value.coerce_into_string().map_err(|_| {
            invalid_argument("a choice must be a key, a label or an effect", "such as 1 or deny", span)
        })
    };
    match call.get_flag_value("choice") {
        None => Ok(Vec::new()),
        Some(Value::List { vals, .. }) => vals.into_iter().map(word).collect(),
        Some(value) => Ok(vec![word(value)?]),
    }
}
