//! `lisa session monitor`: waits for sessions.

use crate::{
    LisaPlugin, columns,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::{At, labeled},
    interrupt::{Interrupt, POLL_INTERVAL},
    names::{NamedSession, Names, at_name},
    signature::{OverNames, choice, example, lisa},
    until,
};
use lisa_engine::{
    api::{Session, SessionRequest, Until, WaitMode, WaitRequest, WatchRequest, words::StateName},
    engine::{Engine, Watch},
    error::{Error, Kind},
    watch::holds,
};
use nu_plugin::{EngineInterface, EvaluatedCall, PluginCommand};
use nu_protocol::{
    Example, LabeledError, ListStream, PipelineData, Signature, Span, Spanned, SyntaxShape, Value,
};
use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// `lisa session monitor`
pub(crate) struct Monitor;

impl PluginCommand for Monitor {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session monitor"
    }

    fn description(&self) -> &str {
        "Wait until sessions need you, or reach a status, a state or the end of a turn."
    }

    fn extra_description(&self) -> &str {
        "Without names, it waits for any of your sessions. Without --timeout or the setting `timeout`, it waits forever; on\n\
         timeout it fails with lisa::timeout. With --stream, it yields a row whenever a session matches, and ends without\n\
         an error on timeout or when all named sessions have ended."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["wait", "block", "until", "follow"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session monitor")
            .names(columns::table(columns::SESSION))
            .param(choice("until", Some('u'), Until::WORDS, "What to wait for (default: attention)."))
            .named(
                "turn",
                SyntaxShape::String,
                "With --until turn: the turn to wait for, from a receipt.",
                None,
            )
            .switch("all", "Wait for all sessions (default: for the first that matches).", None)
            .named("timeout", SyntaxShape::Duration, "Timeout (default: none).", Some('t'))
            .switch("stream", "Yield a row whenever a session matches, instead of waiting once.", Some('s'))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Wait until a session needs you",
                "lisa session monitor fix-login docs | get 0.attention",
                Value::test_string("needs_you"),
            ),
            example(
                "Wait with a timeout",
                "try { lisa session monitor docs --until crashed --timeout 100ms } catch {|e| $e.details.code }",
                Value::test_string("lisa::timeout"),
            ),
            example(
                "Print who needs you as it happens",
                "lisa session monitor --stream | each {|row| $\"($row.name) is ($row.state)\" } | first 2",
                Value::test_list(vec![
                    Value::test_string("docs is ready"),
                    Value::test_string("fix-login is awaiting_permission"),
                ]),
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
        let until = match call.get_flag::<Spanned<String>>("until")? {
            Some(word) => until::parse(&word.item, word.span)?,
            None => Until::Attention,
        };
        let named = match Names::read(call, 0, &input.into_value(call.head)?)? {
            Names::Missing => Vec::new(),
            // An empty list means no sessions, not all sessions.
            Names::Given(named) if named.is_empty() => {
                return Ok(PipelineData::value(Value::list(Vec::new(), call.head), None));
            }
            Names::Given(named) => named,
        };
        let timeout = lisa.settings.timeout(call)?;
        if call.has_flag("stream")? {
            let stream = Stream::open(lisa, &named, until, timeout)?;
            let signals = interface.signals().clone();
            return Ok(PipelineData::list_stream(ListStream::new(stream, call.head, signals), None));
        }
        let turn = named.first().and_then(|named| named.turn.clone()).filter(|_| until == Until::Turn);
        let request = WaitRequest {
            sessions: named.iter().map(|named| named.name.clone()).collect(),
            mode: if call.has_flag("all")? { WaitMode::All } else { WaitMode::Any },
            until: Some(until.as_str().to_owned()),
            turn: call.get_flag("turn")?.or(turn),
            since: None,
            timeout_s: None,
        };
        let sessions = wait(lisa, call, &named, request, timeout)?;
        Ok(PipelineData::value(convert::table(&sessions, columns::SESSION, call.head), None))
    }
}

/// Maximum duration of one engine wait. Longer waits are split; each continues from the last cursor.
const ONE_WAIT: Duration = Duration::from_secs(600);

fn wait(
    lisa: CommandContext,
    call: &EvaluatedCall,
    named: &[NamedSession],
    mut request: WaitRequest,
    timeout: Option<Duration>,
) -> Result<Vec<Session>, LabeledError> {
    let CommandContext { engine, interrupt, head, .. } = lisa;
    let interrupt = interrupt.with_liveness_check();
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let now = left.map_or(ONE_WAIT, |left| left.min(ONE_WAIT));
        request.timeout_s = Some(now.as_secs_f64());
        let response = engine.wait(&request, &interrupt.cancel(), &mut |_| {});
        let response = response.map_err(|error| at_name(&error, named, call))?;
        if !response.timed_out {
            return Ok(response.sessions);
        }
        if interrupt.is_cancelled() {
            return Err(labeled(&Error::new(Kind::Cancelled, "interrupted", ""), head));
        }
        if left.is_some_and(|left| left <= ONE_WAIT) {
            return Err(timed_out(&request, timeout.unwrap_or_default(), head));
        }
        request.since = Some(response.cursor);
    }
}

fn timed_out(request: &WaitRequest, timeout: Duration, head: Span) -> LabeledError {
    let who = match request.sessions.as_slice() {
        [] => "no session".to_owned(),
        [only] => format!("session `{only}` has not"),
        many => format!("{} sessions have not", many.len()),
    };
    let verb = if request.sessions.is_empty() { "has reached" } else { "reached" };
    let what = request.until.as_deref().unwrap_or("attention");
    let message = format!("{who} {verb} `{what}` within {}", format_duration(timeout));
    labeled(&Error::new(Kind::Timeout, message, "use a longer timeout, or see `lisa session status`"), head)
}

/// Formats a duration as Nushell does.
fn format_duration(duration: Duration) -> String {
    let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    Value::duration(nanos, Span::unknown()).to_expanded_string("", &nu_protocol::Config::default())
}

/// Yields sessions as they match.
struct Stream {
    engine: Engine,
    watch: Watch,
    until: Until,
    /// The named sessions that have not ended; `None` if the stream includes all sessions.
    alive: Option<Vec<String>>,
    /// The last state yielded for each session, so that a state yields only one row.
    last: HashMap<String, (StateName, jiff::Timestamp)>,
    ready: VecDeque<Value>,
    end: Option<Instant>,
    interrupt: Interrupt,
    span: Span,
}

impl Stream {
    fn open(
        lisa: CommandContext,
        named: &[NamedSession],
        until: Until,
        timeout: Option<Duration>,
    ) -> Result<Self, LabeledError> {
        // Resolve prefixes and tags to exact names, because events contain exact names.
        let exact: Vec<String> = named
            .iter()
            .map(|named| {
                let session =
                    lisa.engine.status(&SessionRequest { session: named.name.clone() }).at(named.span)?;
                Ok(session.name)
            })
            .collect::<Result<_, LabeledError>>()?;
        // Follow the journal before checking each session, so that no event between the two is lost.
        let request = WatchRequest { sessions: exact.clone(), ..WatchRequest::default() };
        let watch = lisa.engine.watch(&request).at(lisa.head)?;
        let names = if exact.is_empty() { lisa.engine.names().at(lisa.head)? } else { exact.clone() };
        let mut stream = Self {
            engine: lisa.engine,
            watch,
            until,
            alive: (!exact.is_empty()).then_some(exact),
            last: HashMap::new(),
            ready: VecDeque::new(),
            end: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            interrupt: lisa.interrupt.with_liveness_check(),
            span: lisa.head,
        };
        for name in names {
            stream.check_session(name).at(lisa.head)?;
        }
        Ok(stream)
    }

    /// Checks a session, and queues a row if it matches and its state was not yielded before.
    fn check_session(&mut self, name: String) -> lisa_engine::error::Result<()> {
        let session = match self.engine.status(&SessionRequest { session: name.clone() }) {
            Ok(session) => session,
            // The session was killed and removed.
            Err(error) if error.kind() == Kind::SessionNotFound => {
                self.session_ended(&name);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let state = (session.state, session.since);
        if self.shows(&session) && self.last.get(&name) != Some(&state) {
            self.ready.push_back(convert::session(&session, self.span));
            self.last.insert(name, state);
        }
        if session.state == StateName::Exited {
            self.session_ended(&session.name);
        }
        Ok(())
    }

    /// Whether a session matches: it satisfies the wait or, with `--until turn`, is between two turns.
    fn shows(&self, session: &Session) -> bool {
        match self.until {
            Until::Event => true,
            Until::Turn => !matches!(session.state, StateName::Starting | StateName::Working),
            until => holds(until, session),
        }
    }

    fn session_ended(&mut self, name: &str) {
        if let Some(alive) = &mut self.alive {
            alive.retain(|other| other != name);
        }
    }

    fn over(&mut self) -> bool {
        self.interrupt.is_cancelled()
            || self.end.is_some_and(|end| end <= Instant::now())
            || self.alive.as_ref().is_some_and(Vec::is_empty)
    }
}

impl Iterator for Stream {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Some(row);
            }
            if self.over() {
                return None;
            }
            let checked = match self.watch.next(POLL_INTERVAL) {
                Ok(Some(event)) => self.check_session(event.session),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            match checked {
                Ok(()) => {}
                Err(error) if error.kind() == Kind::Cancelled => return None,
                Err(error) => {
                    self.alive = Some(Vec::new());
                    return Some(Value::error(labeled(&error, self.span).into(), self.span));
                }
            }
        }
    }
}
