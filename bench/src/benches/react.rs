//! How long after an agent's change a caller knows who waits for it, with N other sessions beside: where the waiting
//! process is the observer itself, and where another process is. Beside it, one who asks once a second, and how long tmux
//! alone takes to answer.
//!
//! The moment of a change is the agent's own word (its log, its transcript) or our own kill. Those who wait and those
//! who ask look at different sessions: an answer to one would wake the other.

use super::{
    Options, PROGRAMS,
    report::{Column, Report},
    stats::Samples,
    trial::{self, Dice, command_session, lanes, last_at, sleepers, wall_clock},
    watcher::{self, observing, until_observer},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    stage::{self, Stage},
    tools::{self, Release},
};
use lisa_engine::{
    api::{
        AnswerRequest, KillRequest, ReadRequest, SendRequest, Session, SessionRequest, View, WaitRequest,
        words::StateName,
    },
    config::{Environment, Socket},
    engine::Engine,
    tmux::{Shown, Tmux},
    watch::Cancel,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    process, thread,
    time::{Duration, Instant},
};

const COLUMNS: &[Column] = &[
    Column { name: "sessions", unit: "" },
    Column { name: "where", unit: "" },
    Column { name: "change", unit: "" },
    Column { name: "changes", unit: "" },
    Column { name: "p50", unit: "ms" },
    Column { name: "p99", unit: "ms" },
];
/// How many lanes wait and how many ask, and how often each goes through all changes.
const WAITING: (usize, usize) = (3, 34);
const ASKING: (usize, usize) = (3, 20);
const ASK_EVERY: Duration = Duration::from_secs(1);
const LIMIT_S: f64 = 60.0;
/// How often tmux alone is asked, and how long it is left alone before each.
const EXCHANGES: usize = 100;
const ASKED_EVERY: Duration = Duration::from_millis(50);

/// How a caller learns of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Waits in the process that is the observer.
    Observer,
    /// Waits in another process.
    Elsewhere,
    Ask,
}

impl Way {
    const ALL: [Self; 3] = [Self::Observer, Self::Elsewhere, Self::Ask];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Observer => "observer",
            Self::Elsewhere => "elsewhere",
            Self::Ask => "ask every 1 s",
        }
    }
}

/// What changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Prompt,
    TurnEnd,
    Death,
}

impl Change {
    const ALL: [Self; 3] = [Self::Prompt, Self::TurnEnd, Self::Death];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::TurnEnd => "turn end",
            Self::Death => "death",
        }
    }
}

/// One change, and how long it took until somebody knew.
struct Noticed {
    way: Way,
    change: Change,
    after: Duration,
    /// Whether it was a prompt whose options could not be read yet.
    bare: bool,
}

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "react", &PROGRAMS)?;
    let mut report = Report::new(COLUMNS);
    let progress = Progress::start(context.terminal, "  changing things, and waiting for others to notice");
    let mut counts = options.sessions.clone();
    counts.sort_unstable();
    let mut others = 0;
    for count in counts {
        progress.say(&format!("  starting {} sessions that sleep", count.saturating_sub(others)));
        sleepers(context, &Engine::open(stage.caller())?, others..count)?;
        others = others.max(count);
        for way in [Way::Observer, Way::Elsewhere] {
            progress.say(&format!("  waiting beside {count} others, where: {}", way.as_str()));
            let asking = if way == Way::Observer && count == 1 { ASKING.0 } else { 0 };
            let noticed = Trial { context, stage: &stage, way, others }.run(asking, &mut report)?;
            rows(&mut report, count, &noticed);
        }
        let floor = exchanges(context, &stage)?;
        report.row(vec![
            count.into(),
            "tmux".into(),
            "floor: one exchange".into(),
            floor.len().into(),
            floor.p50().into(),
            floor.p99().into(),
        ]);
    }
    Ok(report)
}

/// How long tmux takes to say how one pane is, asked now and then as by the observer: no look can be quicker.
fn exchanges(context: &Context, stage: &Stage) -> Result<Samples> {
    let tmux = Tmux::new(Socket::Path(stage.socket()), &Environment::of_this_process())?;
    let panes = tmux.panes(false)?;
    let pane = panes.first().ok_or_else(|| Failure::new("tmux has no pane"))?;
    let mut samples = Samples::default();
    for _ in 0..EXCHANGES {
        trial::pause(context, ASKED_EVERY)?;
        let began = Instant::now();
        tmux.pane_snapshots(&[&pane.pane_id], Shown::Screen)?;
        samples.add(began.elapsed());
    }
    Ok(samples)
}

fn rows(report: &mut Report, sessions: usize, noticed: &[Noticed]) {
    for way in Way::ALL {
        for change in Change::ALL {
            let mut samples = Samples::default();
            noticed.iter().filter(|n| n.change == change && n.way == way).for_each(|n| samples.add(n.after));
            if samples.len() > 0 {
                report.row(vec![
                    sessions.into(),
                    way.as_str().into(),
                    change.as_str().into(),
                    samples.len().into(),
                    samples.p50().into(),
                    samples.p99().into(),
                ]);
            }
        }
    }
    let bare = noticed.iter().filter(|noticed| noticed.bare).count();
    if bare > 0 {
        report.note(format!(
            "{sessions} sessions: {bare} prompts were noticed before their options could be read"
        ));
    }
}

/// One measurement: who waits, and where.
struct Trial<'a> {
    context: &'a Context,
    stage: &'a Stage,
    way: Way,
    /// How many sessions sleep beside.
    others: usize,
}

impl Trial<'_> {
    fn run(&self, asking: usize, report: &mut Report) -> Result<Vec<Noticed>> {
        let caller = self.stage.caller();
        let (observer, engine) = match self.way {
            Way::Elsewhere => {
                let observer = watcher::observer(self.context, &caller)?;
                (Some(observer), self.stage.engine()?)
            }
            _ => (None, observing(self.context, &caller, self.others)?),
        };
        let watches = observer.as_ref().map_or(process::id(), watcher::Watcher::pid);
        let lane = |at: usize, way: Way, engine: Engine, rounds: usize| {
            let dice = Dice::new(at as u64 + 1);
            let name = format!("lane{at}");
            Lane { context: self.context, stage: self.stage, engine, way, name, dice }.run(rounds)
        };
        let noticed = lanes(WAITING.0 + asking, |at| match at < WAITING.0 {
            true => lane(at, self.way, engine.clone(), WAITING.1),
            // One who asks is another process in real life, with an engine of its own.
            false => lane(at, Way::Ask, Engine::open(caller.clone())?, ASKING.1),
        })?;
        if until_observer(self.context, &caller, watches).is_err() {
            report.note(format!("another process became the observer meanwhile ({})", self.way.as_str()));
        }
        Ok(noticed.into_iter().flatten().collect())
    }
}

/// One agent after the other, and somebody who wants to know.
struct Lane<'a> {
    context: &'a Context,
    stage: &'a Stage,
    engine: Engine,
    way: Way,
    name: String,
    dice: Dice,
}

impl Lane<'_> {
    fn run(mut self, rounds: usize) -> Result<Vec<Noticed>> {
        let log = self.stage.file(&format!("{}.log", self.name));
        let mut request = stage::demo_agent(&self.name);
        request.args = vec!["--log".to_owned(), log.display().to_string(), "--stream-cps=0".to_owned()];
        self.engine.spawn(&request)?;
        let mut noticed = Vec::new();
        let mut add = |way: Way, change: Change, after: Duration, bare: bool| {
            noticed.push(Noticed { way, change, after, bare });
        };
        for _ in 0..rounds {
            self.context.go_on()?;
            let turn = self.send()?;
            let (session, known) = self.until(StateName::AwaitingPermission, None)?;
            let opened = last_at(&log, |line| line.get("opened").is_some())?;
            let bare = session.prompt.is_none_or(|prompt| prompt.options.is_empty());
            add(self.way, Change::Prompt, known.saturating_sub(opened), bare);
            let answer = AnswerRequest {
                session: self.name.clone(),
                choice: Some("allow_once".to_owned()),
                ..AnswerRequest::default()
            };
            self.engine.answer(&answer)?;
            let (_, known) = self.until(StateName::Ready, Some(turn))?;
            let transcript = self.stage.session_file(&self.name, "transcript.jsonl");
            let ended = last_at(&transcript, |line| line["type"] == "turn_end")?;
            add(self.way, Change::TurnEnd, known.saturating_sub(ended), false);
            add(self.way, Change::Death, self.death()?, false);
        }
        self.engine.kill(&KillRequest { session: self.name, force: true })?;
        Ok(noticed)
    }

    /// Some time between half a second and one and a half: so that nothing keeps step with anything.
    fn pause(&mut self) -> u64 {
        500 + self.dice.below(1000)
    }

    /// Sends a prompt that asks for permission after a while and ends some time after the answer.
    fn send(&mut self) -> Result<String> {
        let text = format!(
            "!think {}ms ; !permission Bash ls ; !think {}ms ; !say done",
            self.pause(),
            self.pause() + 500
        );
        let request = SendRequest { session: self.name.clone(), text: Some(text), ..SendRequest::default() };
        let sent = self.engine.send(&request)?;
        let (receipt, state) = (sent.receipt, sent.state);
        let why = format!("{}: {:?}, {:?}", self.name, receipt.delivered, receipt.refusal);
        receipt.turn.ok_or_else(|| {
            Failure::new(format!("a prompt was not taken by {why}; it is {state}\n{}", self.told()))
        })
    }

    /// What the session's last events and its rules say, for whoever has to find out what went wrong.
    fn told(&self) -> String {
        let request = ReadRequest {
            session: self.name.clone(),
            view: View::Events,
            max_lines: Some(500),
            ..ReadRequest::default()
        };
        let events = self.engine.read(&request).map(|read| read.text).unwrap_or_default();
        let lines: Vec<&str> = events.lines().rev().take(12).collect();
        let why = self.engine.explain(&SessionRequest { session: self.name.clone() });
        let why = why.map(|why| format!("{}: {:?}", why.rule, why.evidence_for)).unwrap_or_default();
        format!("{why}\n{}", lines.join("\n"))
    }

    /// Comes back when the session is known to be in this state, or a turn of it to have ended, and says when that was.
    fn until(&self, state: StateName, turn: Option<String>) -> Result<(Session, Duration)> {
        self.until_of(&self.name, state, turn)
    }

    fn until_of(&self, name: &str, state: StateName, turn: Option<String>) -> Result<(Session, Duration)> {
        let session = match self.way {
            Way::Observer | Way::Elsewhere => self.wait_until(name, state, turn)?,
            Way::Ask => self.ask_until(name, state)?,
        };
        Ok((session, wall_clock()))
    }

    fn wait_until(&self, name: &str, state: StateName, turn: Option<String>) -> Result<Session> {
        let request = WaitRequest {
            sessions: vec![name.to_owned()],
            until: turn.is_none().then(|| state.to_string()),
            turn,
            timeout_s: Some(LIMIT_S),
            ..WaitRequest::default()
        };
        let answer = self.engine.wait(&request, &Cancel::default(), &mut |_| {})?;
        let session = answer.sessions.into_iter().next().filter(|_| !answer.timed_out);
        session.ok_or_else(|| Failure::new(format!("`{name}` never became {state}")))
    }

    fn ask_until(&self, name: &str, state: StateName) -> Result<Session> {
        for _ in 0..60 {
            let session = self.engine.status(&SessionRequest { session: name.to_owned() })?;
            if session.state == state {
                return Ok(session);
            }
            thread::sleep(ASK_EVERY);
        }
        Err(Failure::new(format!("`{name}` never became {state}")))
    }

    /// Kills a process while somebody waits for its end, and says how long it took to know.
    fn death(&mut self) -> Result<Duration> {
        let name = format!("{}-dies", self.name);
        let request = command_session(&name, &["sleep", "3600"]);
        let pid = self.engine.spawn(&request)?.session.pid.and_then(|pid| i32::try_from(pid).ok());
        let pid =
            pid.and_then(Pid::from_raw).ok_or_else(|| Failure::new(format!("`{name}` has no process")))?;
        let pause = Duration::from_millis(self.pause());
        let killer = thread::spawn(move || {
            thread::sleep(pause);
            let at = wall_clock();
            kill_process(pid, Signal::KILL).map(|()| at)
        });
        let (_, known) = self.until_of(&name, StateName::Exited, None)?;
        let killed = killer.join().map_err(|_| Failure::new("the killer broke down"))?;
        let killed = killed.map_err(|error| Failure::new(format!("could not kill `{name}`: {error}")))?;
        self.engine.kill(&KillRequest { session: name, force: true })?;
        Ok(known.saturating_sub(killed))
    }
}
