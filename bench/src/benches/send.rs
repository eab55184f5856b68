//! A thousand prompts of every size and kind, to several agents at once: how long a proven prompt takes, and whether
//! each of them arrived exactly once and byte for byte. What arrived is the agent's own word.

use super::{
    Options, PROGRAMS,
    report::{Column, Report},
    stats::Samples,
    trial::{Dice, json_lines, lanes},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    stage::{self, Stage},
    tools::{self, Release},
};
use lisa_engine::{
    api::{Delivery, SendRequest, WaitRequest},
    engine::Engine,
    watch::Cancel,
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

const COLUMNS: &[Column] = &[
    Column { name: "size", unit: "" },
    Column { name: "prompts", unit: "" },
    Column { name: "submitted", unit: "" },
    Column { name: "arrived once, exact", unit: "" },
    Column { name: "p50", unit: "ms" },
    Column { name: "p99", unit: "ms" },
];
const PROMPTS: usize = 1000;
const LANES: usize = 4;

/// Sizes in bytes, and how many prompts of a hundred have about that size.
const SIZES: &[(&str, usize, u64)] = &[
    ("1 B", 1, 10),
    ("up to 100 B", 100, 40),
    ("up to 1 KB", 1_000, 30),
    ("up to 10 KB", 10_000, 14),
    ("up to 100 KB", 100_000, 5),
    ("up to 1 MB", 1_048_576 - 4096, 1),
];

/// What prompts are made of: everything that some layer on the way might take for its own.
const PIECES: &[&str] = &[
    "plain words and a few more of them ",
    "'single' \"double\" `back` \\ \\\\ ",
    "two\nlines ",
    "a\ttab ",
    "windows\r\nline ",
    "-leading --dashes -- ",
    "; ;; semi; ",
    "#{pane_id} #{session_name} #(date) %begin %end %exit ",
    "$HOME ~ ${x} $(date) !history & | > < * ? [a-z] ",
    "中文字符 日本語 한국어 ",
    "🎉 👩‍👩‍👧 é ü ß ",
    "\u{1b}[201~ \u{1b}]0;title\u{7} ",
    "\u{0}\u{1}\u{8}\u{7f}\u{9b} ",
    "\n- a list\n- of things\n",
];

/// One prompt's way.
struct Sent {
    size: &'static str,
    took: Duration,
    submitted: bool,
    exact: bool,
}

pub(super) fn run(context: &Context, _options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "send", &PROGRAMS)?;
    let engine = stage.engine()?;
    let progress =
        Progress::start(context.terminal, format!("  sending {PROMPTS} prompts to {LANES} agents"));
    let sent = lanes(LANES, |lane| {
        let lane =
            Lane { context, stage: &stage, engine: engine.clone(), name: format!("lane{lane}"), seed: lane };
        lane.run(PROMPTS / LANES)
    })?;
    drop(progress);
    let mut report = Report::new(COLUMNS);
    let mut strangers = 0;
    let mut all: Vec<Sent> = Vec::new();
    for (sent, more) in sent {
        all.extend(sent);
        strangers += more;
    }
    for (size, _, _) in SIZES {
        row(&mut report, size, all.iter().filter(|sent| sent.size == *size));
    }
    row(&mut report, "all", all.iter());
    report.note(format!("{strangers} prompts arrived that nobody had sent, or a second time"));
    Ok(report)
}

fn row<'a>(report: &mut Report, size: &str, sent: impl Iterator<Item = &'a Sent>) {
    let mut samples = Samples::default();
    let (mut submitted, mut exact) = (0, 0);
    for sent in sent {
        samples.add(sent.took);
        submitted += usize::from(sent.submitted);
        exact += usize::from(sent.exact);
    }
    let times = [samples.p50().into(), samples.p99().into()];
    report.row(
        [vec![size.into(), samples.len().into(), submitted.into(), exact.into()], times.to_vec()].concat(),
    );
}

/// One agent, and somebody who has much to say to it.
struct Lane<'a> {
    context: &'a Context,
    stage: &'a Stage,
    engine: Engine,
    name: String,
    seed: usize,
}

impl Lane<'_> {
    /// Sends prompts one after the other; also counts what the agent got beyond them.
    fn run(self, prompts: usize) -> Result<(Vec<Sent>, usize)> {
        let log = self.stage.file(&format!("{}.log", self.name));
        let mut request = stage::demo_agent(&self.name);
        request.args = vec!["--log".to_owned(), log.display().to_string(), "--stream-cps=0".to_owned()];
        self.engine.spawn(&request)?;
        let mut dice = Dice::new(self.seed as u64 + 7);
        let mut sent = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..prompts {
            self.context.go_on()?;
            let (size, text) = prompt(&mut dice);
            let request = SendRequest {
                session: self.name.clone(),
                text: Some(text.clone()),
                ..SendRequest::default()
            };
            let began = Instant::now();
            let answer = self.engine.send(&request)?;
            let (receipt, state) = (answer.receipt, answer.state);
            let took = began.elapsed();
            let submitted = receipt.delivered == Delivery::Submitted;
            sent.push(Sent { size, took, submitted, exact: false });
            expected.push(as_documented(&text));
            match receipt.turn {
                Some(turn) => self.wait(turn)?,
                None => {
                    let why = receipt.refusal.map_or("nobody knows why", |refusal| refusal.as_str());
                    let hint = receipt.hint.unwrap_or_default();
                    return Err(Failure::new(format!(
                        "a prompt was not taken: {why}; {} is {state}",
                        self.name
                    ))
                    .hint(hint));
                }
            }
        }
        let mut arrived: BTreeMap<String, usize> = BTreeMap::new();
        for line in json_lines(&log)? {
            if let Some(text) = line.get("text").and_then(serde_json::Value::as_str) {
                *arrived.entry(text.to_owned()).or_default() += 1;
            }
        }
        // The same short prompt may have been sent more than once: each counts for one arrival.
        for (sent, text) in sent.iter_mut().zip(&expected) {
            if let Some(count) = arrived.get_mut(text).filter(|count| **count > 0) {
                *count -= 1;
                sent.exact = true;
            }
        }
        Ok((sent, arrived.values().sum()))
    }

    fn wait(&self, turn: String) -> Result<()> {
        let request = WaitRequest {
            sessions: vec![self.name.clone()],
            turn: Some(turn),
            timeout_s: Some(60.0),
            ..WaitRequest::default()
        };
        let answer = self.engine.wait(&request, &Cancel::default(), &mut |_| {})?;
        if answer.timed_out {
            Err(Failure::new(format!("a turn of `{}` never ended", self.name)))
        } else {
            Ok(())
        }
    }
}

/// A prompt of some size, made of all kinds of pieces.
fn prompt(dice: &mut Dice) -> (&'static str, String) {
    let mut roll = dice.below(100);
    let (name, most, _) = SIZES
        .iter()
        .find(|(_, _, share)| {
            let hit = roll < *share;
            roll = roll.saturating_sub(*share);
            hit
        })
        .copied()
        .unwrap_or(SIZES[0]);
    let least = SIZES.iter().map(|(_, size, _)| *size).filter(|size| *size < most).max().unwrap_or(0);
    let size = least + 1 + usize::try_from(dice.below((most - least) as u64)).unwrap_or(0);
    // It must say something once control bytes are gone, and be neither a step nor a command of the agent's.
    let mut text = char::from(b'a' + u8::try_from(dice.below(26)).unwrap_or(0)).to_string();
    while text.len() < size {
        let at = usize::try_from(dice.below(PIECES.len() as u64)).unwrap_or(0);
        text.push_str(PIECES.get(at).copied().unwrap_or_default());
    }
    let end = (1..=size.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(1);
    text.truncate(end);
    (name, text)
}

/// What is documented to arrive: line ends as newlines, no other control bytes than tab and newline, and no backslash
/// right before the Enter.
fn as_documented(text: &str) -> String {
    let mut arrives = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\r' => {
                chars.next_if_eq(&'\n');
                arrives.push('\n');
            }
            '\n' | '\t' => arrives.push(char),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {}
            _ => arrives.push(char),
        }
    }
    if arrives.ends_with('\\') {
        arrives.push(' ');
    }
    arrives
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_have_every_size_and_never_look_like_a_step() {
        let mut dice = Dice::new(3);
        let made: Vec<_> = (0..2000).map(|_| prompt(&mut dice)).collect();
        for (name, most, _) in SIZES {
            assert!(made.iter().any(|(size, _)| size == name), "{name}");
            assert!(made.iter().filter(|(size, _)| size == name).all(|(_, text)| text.len() <= *most));
        }
        let step = |text: &str| text.lines().any(|line| line.trim_start().starts_with('!'));
        assert!(made.iter().all(|(_, text)| !step(&as_documented(text)) && !text.starts_with('/')));
    }

    #[test]
    fn control_bytes_go_and_line_ends_become_one() {
        assert_eq!(as_documented("a\r\nb\rc\td\u{1b}[201~\u{0}\u{9b}e\u{7f}"), "a\nb\nc\td[201~e");
    }
}
