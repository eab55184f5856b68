//! How long after an agent's change a caller knows: one who waits for it, and beside it one who asks once a second.
//!
//! The moment of a change is the agent's own word (its log, its transcript) or our own kill. Those who wait and those
//! who ask look at different sessions: an answer to one would wake the other.

use super::{
    Options, PROGRAMS,
    report::{Column, Report},
    stats::Samples,
    trial::{Dice, lanes, last_at, since, wall_clock},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    stage::{self, Stage},
    tools::{self, Release},
};
use lisa_engine::{
    api::{AnswerRequest, KillRequest, SendRequest, Session, SessionRequest, SpawnRequest, WaitRequest},
    engine::{Cancel, Engine},
    words::StateName,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{thread, time::Duration};

const COLUMNS: &[Column] = &[
    Column { name: "change", unit: "" },
    Column { name: "way", unit: "" },
    Column { name: "changes", unit: "" },
    Column { name: "p50", unit: "ms" },
    Column { name: "p99", unit: "ms" },
];
/// How many lanes wait and how many ask, and how often each goes through all changes.
const LANES: [(Way, usize, usize); 2] = [(Way::Wait, 3, 34), (Way::Ask, 3, 20)];
const ASK_EVERY: Duration = Duration::from_secs(1);
const LIMIT_S: f64 = 60.0;

/// How a caller learns of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Wait,
    Ask,
}

/// What changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Prompt,
    TurnEnd,
    Death,
}

/// One change, and how long it took until somebody knew.
struct Noticed {
    way: Way,
    change: Change,
    after: Duration,
    /// Whether it was a prompt whose options could not be read yet.
    bare: bool,
}

pub(super) fn run(context: &Context, _options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "react", &PROGRAMS)?;
    let engine = stage.engine()?;
    let progress = Progress::start(context.terminal, "  changing things, and waiting for others to notice");
    let plan: Vec<(Way, usize)> =
        LANES.iter().flat_map(|(way, lanes, rounds)| std::iter::repeat_n((*way, *rounds), *lanes)).collect();
    let noticed = lanes(plan.len(), |at| {
        let (way, rounds) = plan[at];
        // One who asks is another process in real life, with an engine of its own.
        let engine = if way == Way::Wait { engine.clone() } else { Engine::open(stage.caller())? };
        let dice = Dice::new(at as u64 + 1);
        Lane { context, stage: &stage, engine, way, name: format!("lane{at}"), dice }.run(rounds)
    })?;
    drop(progress);
    Ok(report(&noticed.into_iter().flatten().collect::<Vec<_>>()))
}

fn report(noticed: &[Noticed]) -> Report {
    let mut report = Report::new(COLUMNS);
    for (change, what) in
        [(Change::Prompt, "prompt"), (Change::TurnEnd, "turn end"), (Change::Death, "death")]
    {
        for (way, how) in [(Way::Wait, "wait"), (Way::Ask, "ask every 1 s")] {
            let mut samples = Samples::default();
            noticed.iter().filter(|n| n.change == change && n.way == way).for_each(|n| samples.add(n.after));
            report.row(vec![
                what.into(),
                how.into(),
                samples.len().into(),
                samples.p50().into(),
                samples.p99().into(),
            ]);
        }
    }
    let bare = noticed.iter().filter(|noticed| noticed.bare).count();
    report.note(format!("{bare} prompts were noticed before their options could be read"));
    report
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
        for _ in 0..rounds {
            self.context.go_on()?;
            let turn = self.send()?;
            let session = self.until(StateName::AwaitingPermission, None)?;
            let opened = since(last_at(&log, |line| line.get("opened").is_some())?);
            let bare = session.prompt.is_none_or(|prompt| prompt.options.is_empty());
            noticed.push(Noticed { way: self.way, change: Change::Prompt, after: opened, bare });
            let answer = AnswerRequest {
                session: self.name.clone(),
                choice: Some("allow_once".to_owned()),
                ..AnswerRequest::default()
            };
            self.engine.answer(&answer)?;
            self.until(StateName::Ready, Some(turn))?;
            let transcript = self.stage.session_file(&self.name, "transcript.jsonl");
            let ended = since(last_at(&transcript, |line| line["type"] == "turn_end")?);
            noticed.push(Noticed { way: self.way, change: Change::TurnEnd, after: ended, bare: false });
            let died = self.death()?;
            noticed.push(Noticed { way: self.way, change: Change::Death, after: died, bare: false });
        }
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
        sent.receipt
            .turn
            .ok_or_else(|| Failure::new(format!("`{}` took no prompt: {:?}", self.name, sent.status)))
    }

    /// Comes back when the session is known to be in this state, or a turn of it to have ended.
    fn until(&self, state: StateName, turn: Option<String>) -> Result<Session> {
        match self.way {
            Way::Wait => self.wait_until(&self.name, state, turn),
            Way::Ask => self.ask_until(&self.name, state),
        }
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
        let request = SpawnRequest {
            agent: "generic".to_owned(),
            name: Some(name.clone()),
            args: ["sleep", "3600"].map(str::to_owned).to_vec(),
            ..SpawnRequest::default()
        };
        let pid = self.engine.spawn(&request)?.session.pid.and_then(|pid| i32::try_from(pid).ok());
        let pid =
            pid.and_then(Pid::from_raw).ok_or_else(|| Failure::new(format!("`{name}` has no process")))?;
        let pause = Duration::from_millis(self.pause());
        let killer = thread::spawn(move || {
            thread::sleep(pause);
            let at = wall_clock();
            kill_process(pid, Signal::KILL).map(|()| at)
        });
        match self.way {
            Way::Wait => self.wait_until(&name, StateName::Exited, None)?,
            Way::Ask => self.ask_until(&name, StateName::Exited)?,
        };
        let known = wall_clock();
        let killed = killer.join().map_err(|_| Failure::new("the killer broke down"))?;
        let killed = killed.map_err(|error| Failure::new(format!("could not kill `{name}`: {error}")))?;
        self.engine.kill(&KillRequest { session: name, force: true })?;
        Ok(Duration::from_millis(known.saturating_sub(killed)))
    }
}
