//! What an agent was really doing, and how far Lisa's word differs from it.
//!
//! The truth comes from the model server's log and from what the test itself did (answered, interrupted, killed); never
//! from the screen. So it is right even where Lisa is wrong.

use lisa_engine::api::Session;
use lisa_engine::api::words::{StateName, Status};
use lisa_engine::classify::recording::Truth;
use serde::{Deserialize, Serialize};

use crate::model_server::{Asker, End, Exchange, Step};

/// How long Lisa may take to see a change before its word counts as wrong.
pub const TOLERANCE_MS: u64 = 1_000;

/// How long before a change Lisa may know of it already: an agent begins a turn before it asks its model.
pub const LEAD_MS: u64 = 400;

/// How long an agent may take from its model's last word to what it then asks. It works until it asks, and only the
/// agent knows when that is: until then neither word is wrong.
pub const REACTION_MS: u64 = 1_000;
/// A stretch that is shorter than this is only a mark between two others.
const SHORTEST_MS: u64 = 20;

/// What an agent can be doing, as far as the truth tells it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// The model answers, a tool runs, or a request is made again.
    Working,
    /// The turn is over.
    Ready,
    /// It waits for an answer.
    Blocked,
    /// The turn failed for good.
    Failed,
    /// Somebody stopped the turn.
    Stopped,
    /// Its process has ended.
    Gone,
    /// Nobody can tell.
    Unsure,
}

impl Doing {
    /// What Lisa says, in these words.
    pub fn said(session: &Session) -> Self {
        match session.state {
            StateName::Starting | StateName::Unknown | StateName::Stalled => Self::Unsure,
            StateName::Working => Self::Working,
            StateName::Ready => Self::Ready,
            StateName::Interrupted => Self::Stopped,
            StateName::Error => Self::Failed,
            StateName::Exited => Self::Gone,
            _ => Self::Blocked,
        }
    }

    /// The label that recordings have for it, unless more is known.
    pub fn label(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Ready => "idle",
            Self::Blocked => "blocked_permission",
            Self::Failed => "error_api",
            Self::Stopped => "interrupted",
            Self::Gone => "exited_crash",
            Self::Unsure => "uncertain",
        }
    }
}

/// What a test did to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It answered, and the agent goes on.
    Answered,
    /// It declined, and that ends the turn.
    Declined,
    /// It stopped the turn.
    Interrupted,
    /// It ended the agent's process, or told it to leave.
    Ended,
    /// It did something whose effect no log tells, such as a command of the agent's own.
    Meddled,
    /// It knows from elsewhere what the agent does from then on.
    Known(Doing),
}

/// One stretch of the truth; times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// What.
    pub doing: Doing,
}

/// The truth about one agent: its own exchanges with the model and the test's deeds, in order of time, up to `end`.
pub fn spans(exchanges: &[Exchange], deeds: &[(u64, Deed)], end: u64) -> Vec<Span> {
    let main: Vec<&Exchange> = exchanges.iter().filter(|item| item.request.asker == Asker::Main).collect();
    let mut points: Vec<(u64, Doing)> = Vec::new();
    for (index, exchange) in main.iter().enumerate() {
        points.push((exchange.asked_ms, Doing::Working));
        let Some((at, how)) = exchange.end else { continue };
        // The same conversation, asked for once more; one that was begun anew has other words in it.
        let again = main.get(index + 1).is_some_and(|next| next.request.said == exchange.request.said);
        let failed = how == End::Cut
            || exchange.headers.is_some_and(|(_, status)| status >= 400)
            || exchange.steps.iter().any(|(_, step)| matches!(step, Step::Fail { .. }));
        let after = match how {
            // Whoever left was stopped or killed: the deed says which.
            End::ClientLeft => continue,
            _ if again || calls(exchange) => Doing::Working,
            _ if failed => Doing::Failed,
            _ => Doing::Ready,
        };
        points.push((at, after));
    }
    for (at, deed) in deeds {
        let asked =
            main.iter().rev().filter_map(|item| item.end.filter(|_| calls(item))).find(|(end, _)| end <= at);
        if let (Deed::Answered | Deed::Declined, Some((asked, _))) = (deed, asked) {
            points.retain(|point| *point != (asked, Doing::Working));
            points.push((asked, Doing::Blocked));
        }
        points.push((
            *at,
            match deed {
                Deed::Answered => Doing::Working,
                Deed::Declined | Deed::Interrupted => Doing::Stopped,
                Deed::Ended => Doing::Gone,
                Deed::Meddled => Doing::Unsure,
                Deed::Known(doing) => *doing,
            },
        ));
    }
    points.sort_by_key(|(at, _)| *at);
    let ends = points.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let mut spans: Vec<Span> = Vec::new();
    for ((from, doing), to) in points.iter().copied().zip(ends) {
        match spans.last_mut().filter(|last| last.doing == doing) {
            Some(last) => last.to = to,
            None => spans.push(Span { from, to, doing }),
        }
    }
    spans
}

fn calls(exchange: &Exchange) -> bool {
    exchange.steps.iter().any(|(_, step)| matches!(step, Step::Call { .. } | Step::CustomCall { .. }))
}

/// One thing that Lisa said.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When the look began.
    pub at: u64,
    /// When its answer was there.
    pub done: u64,
    /// What it said.
    pub said: Doing,
    /// The status in its own words.
    pub status: Status,
    /// The state, the rule that gave it, and the signal that decided.
    pub why: String,
}

/// A word of Lisa's that was wrong for longer than it may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lie {
    /// What was the case.
    pub truth: Doing,
    /// What Lisa said.
    pub said: Doing,
    /// How long after the truth had changed it was first said.
    pub after_ms: u64,
    /// For how long it was said.
    pub for_ms: u64,
    /// State, rule and signal.
    pub why: String,
}

/// How long Lisa took to see a change; nothing if it never did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// What the agent came to do.
    pub to: Doing,
    /// Milliseconds.
    pub ms: Option<u64>,
}

/// Compares what Lisa said with the truth.
pub fn compare(spans: &[Span], samples: &[Sample]) -> (Vec<Lie>, Vec<Delay>) {
    let (mut lies, mut delays) = (Vec::new(), Vec::new());
    let counts =
        |span: &&Span| span.doing != Doing::Unsure && span.to.saturating_sub(span.from) >= SHORTEST_MS;
    for span in spans.iter().filter(counts) {
        let within =
            samples.iter().filter(|sample| sample.done >= span.from && sample.done + LEAD_MS < span.to);
        let seen = samples.iter().find(|sample| sample.done >= span.from && sample.said == span.doing);
        let seen = seen.filter(|sample| sample.at < span.to + TOLERANCE_MS);
        // What is over before anybody could have looked is no change that could be missed.
        if seen.is_some() || span.to - span.from > TOLERANCE_MS {
            delays
                .push(Delay { to: span.doing, ms: seen.map(|sample| sample.done.saturating_sub(span.from)) });
        }
        let late = |said: Doing| match (span.doing, said) {
            (Doing::Blocked, Doing::Working) => TOLERANCE_MS + REACTION_MS,
            _ => TOLERANCE_MS,
        };
        let wrong = within
            .filter(|sample| sample.at > span.from + late(sample.said) && is_lie(span.doing, sample.said));
        for sample in wrong {
            let same =
                |lie: &&mut Lie| lie.truth == span.doing && lie.said == sample.said && lie.why == sample.why;
            let after_ms = sample.at - span.from;
            match lies.iter_mut().rev().find(same) {
                Some(lie) => lie.for_ms = after_ms.saturating_sub(lie.after_ms),
                None => lies.push(Lie {
                    truth: span.doing,
                    said: sample.said,
                    after_ms,
                    for_ms: 0,
                    why: sample.why.clone(),
                }),
            }
        }
    }
    (lies, delays)
}

/// A working agent must not be called anything else, a blocked one must not be called working or ready, and so on. A
/// look that could not tell is no lie.
fn is_lie(truth: Doing, said: Doing) -> bool {
    truth != said && said != Doing::Unsure
}

/// The truth in the form that recordings have it, in the words of `label`.
pub fn recorded(spans: &[Span], spawned_at: u64, label: impl Fn(&Span) -> &'static str) -> Vec<Truth> {
    let time = |at: u64| i64::try_from(at.saturating_sub(spawned_at)).unwrap_or(i64::MAX);
    let start = spans.first().map_or(0, |first| time(first.from));
    let mut truth =
        vec![Truth { t0: 0, t1: start, label: "uncertain".to_owned(), detail: "start".to_owned() }];
    truth.extend(spans.iter().map(|span| Truth {
        t0: time(span.from),
        t1: time(span.to),
        label: label(span).to_owned(),
        detail: String::new(),
    }));
    truth
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64, said: Doing) -> Sample {
        Sample { at, done: at + 10, said, status: Status::InProgress, why: String::new() }
    }

    #[test]
    fn an_agent_works_until_it_asks_but_is_never_ready_meanwhile() {
        let spans = [Span { from: 0, to: 5_000, doing: Doing::Blocked }];
        let said = |at, said| compare(&spans, &[sample(at, said)]).0.len();
        assert_eq!((said(1_500, Doing::Working), said(2_500, Doing::Working)), (0, 1));
        assert_eq!((said(1_500, Doing::Ready), said(2_500, Doing::Blocked)), (1, 0));
    }

    #[test]
    fn a_word_is_wrong_only_after_the_tolerance() {
        let spans = [
            Span { from: 0, to: 5_000, doing: Doing::Working },
            Span { from: 5_000, to: 9_000, doing: Doing::Ready },
        ];
        let samples =
            [(100, Doing::Working), (2_000, Doing::Ready), (2_100, Doing::Ready), (5_300, Doing::Ready)];
        let samples = samples.map(|(at, said)| sample(at, said));
        let (lies, delays) = compare(&spans, &samples);
        assert_eq!((lies.len(), lies[0].after_ms, lies[0].for_ms), (1, 2_000, 100));
        assert_eq!(
            delays,
            [Delay { to: Doing::Working, ms: Some(110) }, Delay { to: Doing::Ready, ms: Some(310) }]
        );
        let late = [sample(500, Doing::Unsure), sample(900, Doing::Ready)];
        assert_eq!(compare(&spans[..1], &late).0, []);
    }
}
