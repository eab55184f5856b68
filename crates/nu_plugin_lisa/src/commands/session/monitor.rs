//! `lisa session monitor`: waiting for sessions.

use crate::{
    LisaPlugin,
    caller::Lisa,
    complete::{Arg, Source, completes},
    convert,
    errors::{At, labeled},
    interrupt::{Interrupt, TICK},
    names::{Named, Names, at_name},
    signature::{OverNames, choice, example, lisa},
    types,
    until::Until,
};
use lisa_engine::{
    api::{Session, SessionRequest, WaitMode, WaitRequest, WatchRequest},
    engine::{Engine, Watch},
    error::{Error, Kind},
    words::StateName,
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
        "Wait until sessions need you, or come to a status, a state or the end of a turn."
    }

    fn extra_description(&self) -> &str {
        "Without names it is about all of your sessions. It waits without a limit unless --timeout or the setting\n\
         `timeout` says how long; when the time is over it fails with lisa::timeout. --stream yields a row whenever a\n\
         session comes to it, and simply ends when the time is over or every named session has ended."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["wait", "block", "until", "follow"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session monitor")
            .names(types::table(types::session()))
            .param(choice("until", Some('u'), Until::WORDS, "What to wait for; attention unless said."))
            .named("turn", SyntaxShape::String, "With --until turn: the turn of a receipt.", None)
            .switch("all", "Wait for all of them; the first is enough otherwise.", None)
            .named("timeout", SyntaxShape::Duration, "How long to wait.", Some('t'))
            .switch(
                "stream",
                "Yield a row whenever a session comes to it, instead of waiting once.",
                Some('s'),
            )
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example(
                "Wait until somebody is needed",
                "lisa session monitor fix-login docs | get 0.attention",
                Value::test_string("needs_you"),
            ),
            example(
                "Wait for a while only",
                "try { lisa session monitor docs --until crashed --timeout 100ms } catch {|e| $e.details.code }",
                Value::test_string("lisa::timeout"),
            ),
            example(
                "Say who needs you as it happens",
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
        let lisa = Lisa::open(interface, call)?;
        let until = match call.get_flag::<Spanned<String>>("until")? {
            Some(word) => Until::parse(&word.item, word.span)?,
            None => Until::Attention,
        };
        let named = match Names::read(call, 0, &input.into_value(call.head)?)? {
            Names::Unsaid => Vec::new(),
            // An empty list is about no session at all, not about all of them.
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
        Ok(PipelineData::value(convert::list(&sessions, call.head, convert::session), None))
    }
}

/// The longest that one wait of the engine may take; a longer one is several, each taking up where the last ended.
const ONE_WAIT: Duration = Duration::from_secs(600);

fn wait(
    lisa: Lisa,
    call: &EvaluatedCall,
    named: &[Named],
    mut request: WaitRequest,
    timeout: Option<Duration>,
) -> Result<Vec<Session>, LabeledError> {
    let Lisa { engine, interrupt, head, .. } = lisa;
    let interrupt = interrupt.for_long();
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
        if interrupt.raised() {
            return Err(labeled(&Error::new(Kind::Cancelled, "interrupted", ""), head));
        }
        if left.is_some_and(|left| left <= ONE_WAIT) {
            return Err(timed_out(&request, timeout.unwrap_or_default(), head));
        }
        request.since = Some(response.cursor);
    }
}

fn timed_out(request: &WaitRequest, timeout: Duration, head: Span) -> LabeledError {
    let whom = match request.sessions.as_slice() {
        [] => "no session".to_owned(),
        [only] => format!("session `{only}` has not"),
        many => format!("{} sessions have not", many.len()),
    };
    let verb = if request.sessions.is_empty() { "has come" } else { "come" };
    let what = request.until.as_deref().unwrap_or("attention");
    let message = format!("{whom} {verb} to `{what}` within {}", said(timeout));
    labeled(&Error::new(Kind::Timeout, message, "wait longer, or see `lisa session status`"), head)
}

/// A duration as Nushell writes it.
fn said(duration: Duration) -> String {
    let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    Value::duration(nanos, Span::unknown()).to_expanded_string("", &nu_protocol::Config::default())
}

/// Sessions as they come to what is waited for.
struct Stream {
    engine: Engine,
    watch: Watch,
    until: Until,
    /// Those that were named and have not ended; `None` where the stream is about all.
    alive: Option<Vec<String>>,
    /// What was yielded last of each, so that one state is one row.
    last: HashMap<String, (StateName, jiff::Timestamp)>,
    ready: VecDeque<Value>,
    end: Option<Instant>,
    interrupt: Interrupt,
    span: Span,
}

impl Stream {
    fn open(
        lisa: Lisa,
        named: &[Named],
        until: Until,
        timeout: Option<Duration>,
    ) -> Result<Self, LabeledError> {
        // A prefix or a tag stands for one session from here on: events bring exact names.
        let exact: Vec<String> = named
            .iter()
            .map(|named| {
                let session =
                    lisa.engine.status(&SessionRequest { session: named.name.clone() }).at(named.span)?;
                Ok(session.name)
            })
            .collect::<Result<_, LabeledError>>()?;
        // The journal first, then a look at each, so that nothing is lost between the two.
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
            interrupt: lisa.interrupt.for_long(),
            span: lisa.head,
        };
        for name in names {
            stream.look(name).at(lisa.head)?;
        }
        Ok(stream)
    }

    /// Looks at a session and has it yielded if it is what is waited for and was not already.
    fn look(&mut self, name: String) -> lisa_engine::error::Result<()> {
        let session = match self.engine.status(&SessionRequest { session: name.clone() }) {
            Ok(session) => session,
            // Killed and removed: there is nothing left to show.
            Err(error) if error.kind() == Kind::SessionNotFound => {
                self.ended(&name);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let state = (session.state, session.since);
        if self.until.shows(&session) && self.last.get(&name) != Some(&state) {
            self.ready.push_back(convert::session(&session, self.span));
        }
        self.last.insert(name, state);
        if session.state == StateName::Exited {
            self.ended(&session.name);
        }
        Ok(())
    }

    fn ended(&mut self, name: &str) {
        if let Some(alive) = &mut self.alive {
            alive.retain(|other| other != name);
        }
    }

    fn over(&mut self) -> bool {
        self.interrupt.raised()
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
            let looked = match self.watch.next(TICK) {
                Ok(Some(event)) => self.look(event.session),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            match looked {
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
