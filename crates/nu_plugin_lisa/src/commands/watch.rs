//! `lisa watch`: streams the journal.

use crate::{
    LisaPlugin, columns,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::{invalid_argument, labeled},
    interrupt::{Interrupt, POLL_INTERVAL},
    names::{Names, at_name},
    signature::{EVENTS, OverNames, choice, example, lisa},
};
use lisa_engine::{
    api::{EventKind, WatchRequest},
    engine,
    error::Kind,
};
use nu_plugin::{EngineInterface, EvaluatedCall, PluginCommand};
use nu_protocol::{
    Example, LabeledError, ListStream, PipelineData, Signature, Span, Spanned, SyntaxShape, Value,
};

/// `lisa watch`
pub(crate) struct Watch;

impl PluginCommand for Watch {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa watch"
    }

    fn description(&self) -> &str {
        "Follow the events of sessions as an endless stream; end it with Ctrl-C or `first`."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["events", "journal", "follow", "tail", "stream"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa watch")
            .names(columns::table(columns::EVENT))
            .named("since", SyntaxShape::Int, "Start after this cursor (default: only new events).", None)
            .param(choice("event", Some('e'), EVENTS, "Only events of this kind."))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Show the first event of a session",
                "lisa watch fix-login --since 0 | first | select session event",
                Value::test_record(nu_protocol::record! {
                    "session" => Value::test_string("fix-login"),
                    "event" => Value::test_string("spawned"),
                }),
            ),
            example(
                "Ring a bell in the background whenever an agent asks something",
                "job spawn { lisa watch --event prompt | each { print --no-newline (char bel) } }",
                Value::test_int(1),
            ),
        ]
    }

    completes!(Arg::From(0) => Source::Sessions);

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        input: PipelineData,
    ) -> Result<PipelineData, LabeledError> {
        let lisa = CommandContext::open(interface, call)?;
        let named = match Names::read(call, 0, &input.into_value(call.head)?)? {
            Names::Missing => Vec::new(),
            // An empty list means no sessions, not all sessions.
            Names::Given(named) if named.is_empty() => {
                return Ok(PipelineData::value(Value::list(Vec::new(), call.head), None));
            }
            Names::Given(named) => named,
        };
        let sessions = named.iter().map(|named| named.name.clone()).collect();
        let request = WatchRequest { sessions, events: events(call)?, since: since(call)? };
        let stream = Stream {
            watch: lisa.engine.watch(&request).map_err(|error| at_name(&error, &named, call))?,
            interrupt: lisa.interrupt.with_liveness_check(),
            span: call.head,
            over: false,
        };
        let signals = interface.signals().clone();
        Ok(PipelineData::list_stream(ListStream::new(stream, call.head, signals), None))
    }
}

fn events(call: &EvaluatedCall) -> Result<Vec<EventKind>, LabeledError> {
    let Some(given) = call.get_flag::<Spanned<String>>("event")? else { return Ok(Vec::new()) };
    EventKind::parse(&given.item).map(|kind| vec![kind]).ok_or_else(|| {
        let message = format!("unknown event `{}`", given.item);
        invalid_argument(message, format!("events: {}", EVENTS.join(", ")), given.span)
    })
}

fn since(call: &EvaluatedCall) -> Result<Option<u64>, LabeledError> {
    let Some(given) = call.get_flag::<Spanned<i64>>("since")? else { return Ok(None) };
    u64::try_from(given.item).map(Some).map_err(|_| {
        invalid_argument("a cursor cannot be negative", "use one that a command returned", given.span)
    })
}

struct Stream {
    watch: engine::Watch,
    interrupt: Interrupt,
    span: Span,
    over: bool,
}

impl Iterator for Stream {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        while !self.over && !self.interrupt.is_cancelled() {
            match self.watch.next(POLL_INTERVAL) {
                Ok(Some(event)) => return Some(convert::row(&event, columns::EVENT, self.span)),
                Ok(None) => {}
                Err(error) => {
                    self.over = true;
                    let cancelled = error.kind() == Kind::Cancelled;
                    return (!cancelled).then(|| Value::error(labeled(&error, self.span).into(), self.span));
                }
            }
        }
        None
    }
}
