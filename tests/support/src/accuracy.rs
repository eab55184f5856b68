//! Accuracy: verdicts against truth, by the rules that Lisa's published figures go by.
//!
//! Scored are the frames of every interval of truth but `uncertain` and `exiting`, from a tolerance after its beginning
//! up to [`LEAD_MS`] before its end. A recording's share of right frames counts the same however long it is.

use lisa_engine::api::words::{StateName, Status};
use lisa_engine::classify::profile::Profiles;
use lisa_engine::classify::recording::{ReadError, Timeline, Truth, replay::replay};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// How long after a change of truth a verdict may still be the old one.
pub const TOLERANCE_MS: i64 = 1_000;
/// How long before a change the agent may already show what truth, taken from elsewhere, says later.
pub const LEAD_MS: i64 = 400;

/// What one recording scores.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Score {
    /// Scored frames.
    pub frames: u32,
    /// Frames with the right status.
    pub status: u32,
    /// Frames with the right state.
    pub state: u32,
    /// Changes of status inside one interval of truth.
    pub flicker: u32,
    /// Frames called ready or done while the agent works: the worst lie.
    pub false_ready: u32,
    /// Frames called working while the agent waits for an answer.
    pub missed_block: u32,
    /// For each change of truth that was followed: how long that took, in milliseconds.
    pub lags: Vec<i64>,
    /// Frames, and those with the right state, by label of truth.
    pub by_label: BTreeMap<String, (u32, u32)>,
    /// What was wrong: time, label of truth, status, state, reason.
    pub wrong: Vec<(i64, String, Status, StateName, String)>,
}

/// A verdict at a time.
pub type Said = (i64, Status, StateName, String);

/// The statuses and states that are right for a label of truth; none for one that is not scored.
fn right(label: &str) -> Option<(&'static [Status], &'static [StateName])> {
    use StateName as N;
    use Status as S;
    Some(match label {
        "starting" => (&[S::JustStarted, S::InProgress], &[N::Starting, N::Working]),
        "idle" => (&[S::WaitingInput], &[N::Ready]),
        "working" => (&[S::InProgress], &[N::Working]),
        "blocked_permission" => (&[S::WaitingInput], &[N::AwaitingPermission]),
        "blocked_question" => (&[S::WaitingInput], &[N::AwaitingQuestion]),
        "blocked_plan" => (&[S::WaitingInput], &[N::AwaitingPlan]),
        "blocked_trust" => (&[S::WaitingInput], &[N::AwaitingDialog, N::AwaitingPermission]),
        "blocked_other_dialog" => (&[S::WaitingInput], &[N::AwaitingDialog]),
        "error_api" => (&[S::WaitingInput], &[N::Error]),
        "interrupted" => (&[S::WaitingInput], &[N::Interrupted, N::Ready]),
        "exited_ok" => (&[S::Completed], &[N::Exited]),
        "exited_crash" => (&[S::Crashed], &[N::Exited]),
        _ => return None,
    })
}

/// Scores the verdicts of one recording.
pub fn score(truth: &[Truth], said: &[Said]) -> Score {
    let mut score = Score::default();
    for interval in merged(truth) {
        let Some((statuses, states)) = right(&interval.label) else { continue };
        let inside: Vec<&Said> =
            said.iter().filter(|(t, ..)| interval.t0 <= *t && *t < interval.t1).collect();
        score.lags.extend(lag(&interval, &inside, statuses));
        let scored =
            inside.iter().filter(|(t, ..)| interval.t0 + TOLERANCE_MS <= *t && *t < interval.t1 - LEAD_MS);
        let mut before = None;
        for (t, status, state, reason) in scored.copied() {
            let (good, fine) = (statuses.contains(status), states.contains(state));
            score.frames += 1;
            score.status += u32::from(good);
            score.state += u32::from(fine);
            score.flicker += u32::from(before.is_some_and(|before| before != *status));
            before = Some(*status);
            let lie =
                interval.label == "working" && matches!(status, Status::WaitingInput | Status::Completed);
            score.false_ready += u32::from(lie);
            score.missed_block +=
                u32::from(interval.label.starts_with("blocked") && *status == Status::InProgress);
            let by_label = score.by_label.entry(interval.label.clone()).or_default();
            by_label.0 += 1;
            by_label.1 += u32::from(fine);
            if !good || !fine {
                score.wrong.push((*t, interval.label.clone(), *status, *state, reason.clone()));
            }
        }
    }
    score
}

/// Neighbouring intervals with one label are one interval.
fn merged(truth: &[Truth]) -> Vec<Truth> {
    let mut merged: Vec<Truth> = Vec::new();
    for interval in truth {
        match merged.last_mut() {
            Some(last) if last.label == interval.label && last.t1 >= interval.t0 - 1 => last.t1 = interval.t1,
            _ => merged.push(interval.clone()),
        }
    }
    merged
}

/// How long it took until the status was right and stayed so.
fn lag(interval: &Truth, inside: &[&Said], statuses: &[Status]) -> Option<i64> {
    inside.last().filter(|(_, status, ..)| statuses.contains(status))?;
    let wrong = inside.iter().rposition(|(_, status, ..)| !statuses.contains(status));
    let first = inside.get(wrong.map_or(0, |at| at + 1))?;
    Some(first.0 - interval.t0)
}

/// Replays one recording and scores it.
///
/// # Errors
/// When it cannot be read, or no profile fits it.
pub fn score_file(profiles: &Profiles, path: &Path) -> Result<(Timeline, Score), ReadError> {
    let file = std::fs::File::open(path).map_err(ReadError::Io)?;
    let timeline = Timeline::read(file)?;
    let missing = || ReadError::Header(format!("there is no profile for {:?}", timeline.header.agent));
    let profile = profiles.get(&timeline.header.agent).ok_or_else(missing)?;
    let said: Vec<Said> = replay(&profile, &timeline)
        .map(|(t, outcome)| {
            (t, outcome.verdict.status(), outcome.verdict.state.name(), outcome.verdict.reason.to_string())
        })
        .collect();
    let score = score(&timeline.header.truth, &said);
    Ok((timeline, score))
}

/// Every recording below a directory, in order.
pub fn recordings(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.to_string_lossy().ends_with(".jsonl.gz") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The figures of several recordings together.
#[derive(Debug, Default, Clone)]
pub struct Totals {
    scores: Vec<Score>,
}

impl Totals {
    /// Adds a recording.
    pub fn add(&mut self, score: Score) {
        self.scores.push(score);
    }

    /// How many recordings there are.
    pub fn recordings(&self) -> usize {
        self.scores.len()
    }

    /// A sum over all recordings.
    pub fn sum(&self, pick: impl Fn(&Score) -> u32) -> u32 {
        self.scores.iter().map(pick).sum()
    }

    /// The mean over recordings of a share of their frames, in percent.
    pub fn mean(&self, pick: impl Fn(&Score) -> u32) -> f64 {
        let scored: Vec<&Score> = self.scores.iter().filter(|score| score.frames > 0).collect();
        let shares = scored.iter().map(|score| f64::from(pick(score)) / f64::from(score.frames));
        let count = u32::try_from(scored.len().max(1)).unwrap_or(u32::MAX);
        100.0 * shares.sum::<f64>() / f64::from(count)
    }

    /// A percentile of the lags, in milliseconds.
    pub fn lag(&self, percent: usize) -> Option<i64> {
        let mut lags: Vec<i64> = self.scores.iter().flat_map(|score| score.lags.iter().copied()).collect();
        lags.sort_unstable();
        lags.get((lags.len() * percent / 100).min(lags.len().checked_sub(1)?)).copied()
    }

    /// Frames, and those with the right state, by label of truth.
    fn by_label(&self) -> BTreeMap<&str, (u32, u32)> {
        let mut sums: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for (label, (frames, fine)) in self.scores.iter().flat_map(|score| &score.by_label) {
            let sum = sums.entry(label).or_default();
            sum.0 += frames;
            sum.1 += fine;
        }
        sums
    }
}

/// The page with the published figures: for each agent and version, and for each state.
pub fn page(by_version: &BTreeMap<String, Totals>) -> String {
    let mut page = String::from(
        "# Accuracy\n\nMeasured on recordings of real agents whose every moment is known from a scripted model server\n\
         (`tests/recordings`). A frame counts as right only if its word is; frames within a second after a change, or\n\
         0.4 s before one, are left out. This page is generated: `UPDATE_EXPECT=1 cargo test -p lisa-engine --test recordings`.\n\n\
         | agent | recordings | frames | status | state | flicker | false ready | missed block | lag p50 | lag p95 |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    let ms = |lag: Option<i64>| lag.map_or_else(|| "-".to_owned(), |lag| format!("{lag} ms"));
    for (version, totals) in by_version {
        let _ = writeln!(
            page,
            "| {version} | {} | {} | {:.2} % | {:.2} % | {} | {} | {} | {} | {} |",
            totals.recordings(),
            totals.sum(|score| score.frames),
            totals.mean(|score| score.status),
            totals.mean(|score| score.state),
            totals.sum(|score| score.flicker),
            totals.sum(|score| score.false_ready),
            totals.sum(|score| score.missed_block),
            ms(totals.lag(50)),
            ms(totals.lag(95)),
        );
    }
    page.push_str(
        "\n## By what the agent was doing\n\n| agent | truth | frames | right state |\n|---|---|---|---|\n",
    );
    for (version, totals) in by_version {
        for (label, (frames, fine)) in totals.by_label() {
            let share = 100.0 * f64::from(fine) / f64::from(frames.max(1));
            let _ = writeln!(page, "| {version} | {label} | {frames} | {share:.2} % |");
        }
    }
    page
}
