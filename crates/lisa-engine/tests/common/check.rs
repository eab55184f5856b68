//! One function that compares what tmux, the processes, the directories, the records and the journal say of a lab.

use super::{Lab, entries};
use lisa_engine::api::{words::StateName, *};
use std::collections::{BTreeMap, BTreeSet};

/// Every event of a journal, with the ids that are only in its files.
pub fn journal(lab: &Lab) -> Vec<(String, Event)> {
    let mut segments: Vec<_> = std::fs::read_dir(lab.config.state_dir.join("journal"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    segments.sort();
    let mut text: String = segments.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    // A torn last line is cut off by whoever writes next.
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    let line = |line: &str| {
        let id = serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        (id, serde_json::from_str(line).unwrap())
    };
    text.lines().map(line).collect()
}

fn run_of(id: &str) -> &str {
    id.rsplit_once(':').unwrap().0
}

/// What is wrong with a journal: cursors with a gap, ids that are there twice, runs and turns that end twice or go on
/// after their end.
pub fn journal_contradictions(events: &[(String, Event)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    let mut ended: BTreeMap<&str, EventKind> = BTreeMap::new();
    let mut turns: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for (at, (id, event)) in events.iter().enumerate() {
        let (run, number) = (run_of(id), id.rsplit_once(':').unwrap().1.parse::<u64>().unwrap());
        if event.cursor != at as u64 + 1 {
            wrong.push(format!("{id} has cursor {} at place {at}", event.cursor));
        }
        let before = numbers.insert(run, number).unwrap_or(0);
        if number != before + 1 {
            wrong.push(format!("{id} of {} comes after number {before}", event.session));
        }
        let is_end = matches!(event.event, EventKind::Exited | EventKind::Killed);
        match ended.get(run) {
            Some(how) if event.event != EventKind::Removed => {
                wrong.push(format!("{} of {} comes after {how}", event.event, event.session));
            }
            None if is_end => drop(ended.insert(run, event.event)),
            _ => {}
        }
        if event.event == EventKind::TurnEnded
            && let Some(before) = turns.insert((run, event.turn.as_deref().unwrap()), &event.detail)
        {
            wrong.push(format!("{:?} ended {before} and {}", event.turn, event.detail));
        }
    }
    wrong
}

/// What contradicts each other in a lab in which nobody is at work any more.
pub fn contradictions(lab: &Lab) -> Vec<String> {
    let engine = lab.engine();
    // Whoever comes next finishes what was left.
    let rows = engine.list(&ListRequest::default()).unwrap().sessions;
    let looked: BTreeMap<String, Session> = rows
        .iter()
        .filter_map(|row| engine.look(&SessionRequest { session: row.name.clone() }).ok())
        .map(|session| (session.name.clone(), session))
        .collect();
    let events = journal(lab);
    let mut wrong = journal_contradictions(&events);
    let panes = lab.tmux().panes(false).unwrap();
    let runs: BTreeMap<&str, bool> = panes
        .iter()
        .filter(|row| !row.run_id.is_empty())
        .map(|row| (row.run_id.as_str(), row.pane.dead))
        .collect();
    for session in looked.values() {
        let alive = runs.get(session.run_id.as_str()) == Some(&false);
        if session.state == StateName::Unknown {
            wrong.push(format!(
                "{} is unknown: {}, {:?}",
                session.name, session.reason, session.failed_signals
            ));
        } else if alive == (session.state == StateName::Exited) {
            wrong.push(format!("{} is {} and its pane lives: {alive}", session.name, session.state));
        }
        let last = events.iter().rev().find(|(id, _)| run_of(id) == session.run_id);
        let Some((_, last)) = last else {
            wrong.push(format!("the journal has nothing of {}", session.name));
            continue;
        };
        let over = matches!(last.event, EventKind::Exited | EventKind::Killed | EventKind::Removed);
        if over == alive {
            wrong.push(format!("{} lives: {alive}, and its last event is {}", session.name, last.event));
        }
        let told = events.iter().rev().find(|(id, event)| {
            run_of(id) == session.run_id
                && matches!(event.event, EventKind::Transition | EventKind::Exited | EventKind::Killed)
        });
        if told.is_some_and(|(_, told)| told.state != session.state) {
            wrong.push(format!("{} is {}, and the journal says {:?}", session.name, session.state, told));
        }
    }
    let directories: BTreeSet<String> = entries(&lab.config.state_dir.join("sessions")).into_iter().collect();
    for row in &panes {
        if !row.run_id.is_empty() && !looked.values().any(|session| session.run_id == row.run_id) {
            wrong.push(format!("the pane of {} has no session", row.session));
        }
    }
    for directory in directories.iter().filter(|name| !name.starts_with('.') && !looked.contains_key(*name)) {
        let meta = lab.config.state_dir.join("sessions").join(directory).join("meta.json");
        // One that was claimed and never begun is swept away by a cleanup.
        if meta.exists() {
            let why =
                engine.look(&SessionRequest { session: directory.clone() }).map(|session| session.state);
            wrong.push(format!("{directory} has a directory and is not listed: {why:?}"));
        }
    }
    wrong.extend(strays(lab, &panes.iter().map(|row| row.pane.pid).collect()));
    wrong
}

/// Agents that run without a pane.
fn strays(lab: &Lab, panes: &BTreeSet<u32>) -> Vec<String> {
    let home = format!("HOME={}", lab.path().display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_stray = |pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environ.split(|byte| *byte == 0);
        let here = variables.clone().any(|variable| variable == home.as_bytes());
        let agent = variables.any(|variable| variable.starts_with(b"LISA_RUN_ID="));
        let ancestors = std::iter::successors(Some(*pid), |pid| parent(*pid)).take(8);
        here && agent && !ancestors.into_iter().any(|pid| panes.contains(&pid))
    };
    pids.filter(is_stray).map(|pid| format!("process {pid} has no pane")).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 1)
}
