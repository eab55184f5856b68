//! Prompts that are sent while somebody types into the same input box, at any moment: how many were submitted with what
//! they typed, and how often what they typed was lost. Both must be none.

use super::{
    Options, PROGRAMS,
    report::{Column, Report},
    stats::Samples,
    trial::{Dice, lanes},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    stage::{self, Stage},
    tools::{self, Release},
};
use lisa_engine::{
    api::{Delivery, SendRequest, SessionRequest, WaitRequest},
    config::{Environment, Socket},
    engine::Engine,
    tmux::{Cmd, Tmux},
    watch::Cancel,
};
use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

const COLUMNS: &[Column] = &[
    Column { name: "sends", unit: "" },
    Column { name: "submitted", unit: "" },
    Column { name: "refused", unit: "" },
    Column { name: "mixed", unit: "" },
    Column { name: "lost drafts", unit: "" },
    Column { name: "p50", unit: "ms" },
];
const SENDS: usize = 10_000;
const LANES: usize = 8;
/// How many sends nobody disturbs, to see how long they take here. Somebody types at any moment within twice that.
const UNDISTURBED: usize = 10;
/// What they type.
const TYPED: &str = "zq";
/// How long nobody types before a send: so soon after a key, Lisa waits for it to be drawn.
const QUIET: Duration = Duration::from_millis(250);
/// How long what they typed may take to show.
const SHOWN: Duration = Duration::from_secs(3);

/// What came of the sends of one lane.
#[derive(Default)]
struct Came {
    submitted: usize,
    refused: usize,
    mixed: usize,
    lost: usize,
    took: Samples,
}

pub(super) fn run(context: &Context, _options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "typing", &PROGRAMS)?;
    let progress =
        Progress::start(context.terminal, format!("  sending {SENDS} prompts while somebody types"));
    let sent = AtomicUsize::new(0);
    let all = lanes(LANES, |lane| Lane::start(context, &stage, lane)?.run(&sent))?;
    drop(progress);
    let mut sum = Came::default();
    for came in all {
        sum.submitted += came.submitted;
        sum.refused += came.refused;
        sum.mixed += came.mixed;
        sum.lost += came.lost;
        sum.took.extend(came.took);
    }
    let mut report = Report::new(COLUMNS);
    report.row(vec![
        (sum.submitted + sum.refused + sum.mixed).into(),
        sum.submitted.into(),
        sum.refused.into(),
        sum.mixed.into(),
        sum.lost.into(),
        sum.took.p50().into(),
    ]);
    if sum.mixed + sum.lost > 0 {
        report.note("some were mixed or lost, which must not happen");
    }
    Ok(report)
}

/// One agent, somebody who sends to it, and somebody who types.
struct Lane<'a> {
    context: &'a Context,
    stage: &'a Stage,
    engine: Engine,
    tmux: Tmux,
    name: String,
    dice: Dice,
    /// Within how long of the beginning of a send somebody types.
    within: Duration,
}

impl<'a> Lane<'a> {
    fn start(context: &'a Context, stage: &'a Stage, lane: usize) -> Result<Self> {
        let engine = Engine::open(stage.caller())?;
        let name = format!("shared{lane}");
        let mut request = stage::demo_agent(&name);
        request.args = vec!["--log".to_owned(), stage.file(&format!("{name}.log")).display().to_string()];
        engine.spawn(&request)?;
        let tmux = Tmux::new(Socket::Path(stage.socket()), &Environment::of_this_process())?;
        let mut lane = Self {
            context,
            stage,
            engine,
            tmux,
            name,
            dice: Dice::new(lane as u64 + 1),
            within: Duration::ZERO,
        };
        lane.within = lane.undisturbed()? * 2;
        Ok(lane)
    }

    /// How long a send takes that nobody disturbs.
    fn undisturbed(&self) -> Result<Duration> {
        let mut took = Samples::default();
        for number in 0..UNDISTURBED {
            self.until_ready()?;
            let began = Instant::now();
            let request = SendRequest {
                session: self.name.clone(),
                text: Some(format!("nobody types into number {number}")),
                ..SendRequest::default()
            };
            let receipt = self.engine.send(&request)?.receipt;
            if receipt.delivered != Delivery::Submitted {
                return Err(Failure::new(format!("an undisturbed send was {:?}", receipt.delivered)));
            }
            took.add(began.elapsed());
        }
        self.until_ready()?;
        Ok(Duration::from_secs_f64(took.p50().unwrap_or_default() / 1000.0))
    }

    fn until_ready(&self) -> Result<()> {
        let request = WaitRequest {
            sessions: vec![self.name.clone()],
            until: Some("ready".to_owned()),
            timeout_s: Some(30.0),
            ..WaitRequest::default()
        };
        self.engine.wait(&request, &Cancel::default(), &mut |_| {})?;
        Ok(())
    }

    fn run(mut self, sent: &AtomicUsize) -> Result<Came> {
        let mut came = Came::default();
        loop {
            let number = sent.fetch_add(1, Ordering::Relaxed);
            if number >= SENDS {
                return Ok(came);
            }
            self.context.go_on()?;
            self.round(number, &mut came)?;
        }
    }

    fn round(&mut self, number: usize, came: &mut Came) -> Result<()> {
        let text = format!("prompt number {number}");
        let before = self.prompts()?.len();
        let pause = Duration::from_micros(
            self.dice.below(u64::try_from(self.within.as_micros()).unwrap_or(u64::MAX)),
        );
        let began = Instant::now();
        let receipt = thread::scope(|scope| {
            let request = SendRequest {
                session: self.name.clone(),
                text: Some(text.clone()),
                ..SendRequest::default()
            };
            let engine = &self.engine;
            let sending = scope.spawn(move || engine.send(&request));
            thread::sleep(pause);
            let typed = self.press(TYPED);
            let sent = sending.join().map_err(|_| Failure::new("a send broke down"))?;
            typed.and(Ok(sent?.receipt))
        })?;
        came.took.add(began.elapsed());
        let got = self.prompts()?.split_off(before);
        match receipt.delivered {
            Delivery::Submitted if got == [text] => came.submitted += 1,
            Delivery::Refused if got.is_empty() => came.refused += 1,
            _ => came.mixed += 1,
        }
        if !self.until(|draft| draft == Some(TYPED))? {
            came.lost += 1;
        }
        self.press("C-u")?;
        self.until(|draft| draft.is_none())?;
        thread::sleep(QUIET);
        self.until_ready()
    }

    fn press(&self, keys: &str) -> Result<()> {
        let target = format!("={}:", self.name);
        self.tmux.call(&[Cmd::new("send-keys").args(["-t", &target]).arg(keys)])?;
        Ok(())
    }

    /// Waits until what stands in the input box is as it should be; says whether it came to that.
    fn until(&self, fits: impl Fn(Option<&str>) -> bool) -> Result<bool> {
        let began = Instant::now();
        while began.elapsed() < SHOWN {
            let session = self.engine.look(&SessionRequest { session: self.name.clone() })?;
            let draft = session.signals.as_ref().and_then(|signals| signals.get("draft")?.as_str());
            if fits(draft) {
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }

    /// The prompts that the agent got.
    fn prompts(&self) -> Result<Vec<String>> {
        let path = self.stage.file(&format!("{}.log", self.name));
        let text = fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, &error))?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        Ok(lines.filter_map(|line| line["text"].as_str().map(str::to_owned)).collect())
    }
}
