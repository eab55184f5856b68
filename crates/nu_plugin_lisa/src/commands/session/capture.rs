//! `lisa session capture`: reads a session.

use crate::{
    LisaPlugin,
    complete::{Arg, Source, completes},
    context::CommandContext,
    errors::{invalid_argument, label_argument},
    names::Names,
    signature::{OverNames, VIEWS, choice, example, lisa},
};
use lisa_engine::api::{ReadRequest, View};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Spanned, SyntaxShape, Type, Value};

/// `lisa session capture`
pub(crate) struct Capture;

impl SimplePluginCommand for Capture {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session capture"
    }

    fn description(&self) -> &str {
        "Read a session's screen, messages, output or events as text."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["screen", "read", "transcript", "output"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session capture")
            .one_name(Type::String)
            .param(choice("view", Some('v'), VIEWS, "What to read (default: screen)."))
            .named("lines", SyntaxShape::Int, "Maximum number of lines (default: 80).", Some('n'))
            .named("since", SyntaxShape::Int, "Only what is newer than this cursor.", None)
            .switch("ansi", "Keep colours (screen and output only).", None)
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Read the terminal of a session",
                "lisa session capture fix-login | str contains 'rm -rf build'",
                Value::test_bool(true),
            ),
            example(
                "Read the agent's last message",
                "lisa session capture docs --view last_message",
                Value::test_string("All done."),
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
        let lisa = CommandContext::open(interface, call)?;
        let named = Names::read(call, 0, input)?.one(call.head)?;
        let request = ReadRequest {
            session: named.name,
            view: view(call)?,
            since: since(call)?,
            max_lines: lisa.settings.lines(call)?,
            ansi: call.has_flag("ansi")?,
        };
        Ok(Value::string(
            lisa.engine.read(&request).map_err(|error| label_argument(&error, call, named.span))?.text,
            call.head,
        ))
    }
}

fn view(call: &EvaluatedCall) -> Result<View, LabeledError> {
    let Some(given) = call.get_flag::<Spanned<String>>("view")? else { return Ok(View::Screen) };
    View::parse(&given.item).ok_or_else(|| {
        invalid_argument(
            format!("unknown view `{}`", given.item),
            format!("views: {}", VIEWS.join(", ")),
            given.span,
        )
    })
}

fn since(call: &EvaluatedCall) -> Result<Option<u64>, LabeledError> {
    let Some(given) = call.get_flag::<Spanned<i64>>("since")? else { return Ok(None) };
    u64::try_from(given.item).map(Some).map_err(|_| {
        invalid_argument("a cursor cannot be negative", "use one that a command returned", given.span)
    })
}
