//! What a run of the real agents leaves for people: how fast Lisa saw each change, and what works with which agent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use test_support::programs;

use crate::agents::AgentKind;
use crate::hands::Through;
use crate::lab::{Judgement, Lab};
use crate::play::Scene;
use crate::truth::{Delay, Lie, Span};

/// The variable that makes failures of scenarios data only, for agents that nobody has recorded yet.
pub const ONLY_REPORTS: &str = "LISA_TESTS_AGENTS";

/// What came of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was played to its end, and Lisa was right all the time.
    Works,
    /// It was not, or Lisa was wrong.
    Fails,
    /// The agent has nothing of the kind.
    NotOffered,
}

/// A scenario that was played.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Played {
    /// The run of the tests: what belongs to another is old.
    pub run: u32,
    /// The agent.
    pub agent: String,
    /// Its version.
    pub version: String,
    /// The front end.
    pub through: String,
    /// The scenario.
    pub scene: String,
    /// What works when it works.
    pub what: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Why it does not work, in a line.
    pub why: String,
    /// How long it took.
    pub seconds: f64,
    /// What the agent was really doing; milliseconds since the session's start.
    pub truth: Vec<Span>,
    /// How long Lisa took to see each change.
    pub delays: Vec<Delay>,
    /// Where it was wrong.
    pub lies: Vec<Lie>,
}

impl Played {
    /// A scenario that works until something else is known.
    pub fn new(lab: &Lab, through: Through, scene: &Scene) -> Self {
        Self {
            run: run(),
            agent: lab.kind.command().to_owned(),
            version: lab.version.clone(),
            through: through.name().to_owned(),
            scene: scene.id.to_owned(),
            what: scene.what.to_owned(),
            outcome: Outcome::Works,
            why: String::new(),
            seconds: 0.0,
            truth: Vec::new(),
            delays: Vec::new(),
            lies: Vec::new(),
        }
    }

    /// It does not work, for this reason; of several the first counts.
    pub fn fail(&mut self, why: &str) {
        if self.outcome != Outcome::Fails {
            self.outcome = Outcome::Fails;
            self.why = why.lines().next().unwrap_or_default().to_owned();
        }
    }

    /// Takes what belongs to it out of the comparison with the truth.
    pub fn judge(&mut self, judged: &Judgement) {
        fn of<T: Clone>(scene: &str, all: &[(String, T)]) -> Vec<T> {
            all.iter().filter(|(id, _)| id == scene).map(|(_, item)| item.clone()).collect()
        }
        self.truth = of(&self.scene, &judged.truth);
        self.delays = of(&self.scene, &judged.delays);
        self.lies = of(&self.scene, &judged.lies);
        if let Some(lie) = self.lies.first() {
            self.fail(&format!("said {:?} of {:?}, {}", lie.said, lie.truth, lie.why));
        } else if self.outcome == Outcome::Works && self.delays.iter().any(|delay| delay.ms.is_none()) {
            self.fail("a change was never seen");
        }
    }

    /// What failed, for people.
    pub fn failure(&self) -> Option<String> {
        let Self { agent, version, through, scene, why, lies, delays, truth, .. } = self;
        (self.outcome == Outcome::Fails).then(|| {
            format!(
                "{agent} {version} through {through}, {scene}: {why}\n  {lies:?}\n  {delays:?}\n  {truth:?}"
            )
        })
    }
}

/// The variable that names a run of the tests, so that what an earlier run has left is not taken for its own.
pub const RUN: &str = "LISA_TESTS_RUN";

/// This run of the tests: all programs that one `cargo xtask test` starts belong to one, else those of one cargo.
pub fn run() -> u32 {
    let named = std::env::var(RUN).ok().and_then(|run| run.parse().ok());
    named.unwrap_or_else(std::os::unix::process::parent_id)
}

/// Whether failures of scenarios are data only.
pub fn only_reports() -> bool {
    std::env::var(ONLY_REPORTS).is_ok_and(|value| value == "latest")
}

/// Writes down what came of scenarios.
pub fn played(all: &[Played]) {
    let done = change(|report| {
        let list = report.entry("scenarios").or_insert_with(|| json!([]));
        let mut known: Vec<Played> = serde_json::from_value(list.take()).unwrap_or_default();
        known.retain(|one| one.run == run());
        known.extend_from_slice(all);
        *list = json!(known);
    });
    assert!(done.is_ok(), "{}: {done:?}", path().display());
}

/// What did not work, a line each.
pub fn failures(all: &[Played]) -> String {
    let failed: Vec<_> = all.iter().filter(|one| one.outcome == Outcome::Fails).collect();
    if failed.is_empty() {
        return "\nEverything works.\n".to_owned();
    }
    let lines = failed.iter().map(|one| {
        let Played { agent, version, through, scene, why, .. } = one;
        format!("- {agent} {version} through {through}, `{scene}`: {why}\n")
    });
    "\n## What does not work\n\n".to_owned() + &lines.collect::<String>()
}

/// What came of the scenarios of this run.
pub fn scenarios() -> Vec<Played> {
    let text = fs::read_to_string(path()).unwrap_or_default();
    let mut report: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    let list = report.remove("scenarios").unwrap_or_default();
    let known: Vec<Played> = serde_json::from_value(list).unwrap_or_default();
    known.into_iter().filter(|one| one.run == run()).collect()
}

/// Where the figures are.
pub fn path() -> PathBuf {
    programs::target_dir().join("agents-report.json")
}

/// Writes the figures of one session into the report and shows them.
pub fn note(kind: &AgentKind, session: &str, delays: &[Delay], lies: &[Lie]) {
    let name = format!("{} {} {session}", kind.command(), kind.version());
    let words: Vec<String> = delays
        .iter()
        .map(|delay| {
            let to = serde_json::to_value(delay.to).unwrap_or_default();
            let to = to.as_str().unwrap_or_default().to_owned();
            delay.ms.map_or(format!("{to} never"), |ms| format!("{to} {ms} ms"))
        })
        .collect();
    // A test's own output; there is nowhere to report a failure to write it.
    let _ = writeln!(io::stderr(), "{name}: {}", words.join(", "));
    let _ = change(|report| {
        report.insert(name, json!({"delays": delays, "lies": lies}));
    });
}

/// Changes the report; several test programs may do so at once.
fn change(with: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
    fs::create_dir_all(programs::target_dir())?;
    let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path())?;
    File::lock(&file)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let mut report: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    with(&mut report);
    report.sort_keys();
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(serde_json::to_string_pretty(&report)?.as_bytes())
}
