//! Every dialog that was ever recorded, of every agent, on a real tmux: text is refused, and nothing is typed.
//!
//! A stand-in with the agent's name shows the recorded screen and writes down each byte that it is given.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, until};
use lisa_engine::{
    api::{words::Prompt, *},
    classify::{
        Outcome,
        memory::Memory,
        observation::{Observation, Pane},
        profile::Profiles,
        recording::{Timeline, replay::Player},
        step,
    },
    engine::Engine,
};
use std::{collections::BTreeMap, os::unix::fs::PermissionsExt, path::Path, sync::Mutex, time::Duration};
use test_support::accuracy;

/// Shows a screen, and keeps what is typed. It stays the pane's process, under its own name.
const STAND_IN: &str = "#!/bin/sh\nstty raw -echo\ncat \"$STAND_IN/screen\"\ncat > \"$STAND_IN/typed\"\n";

struct Dialog {
    agent: String,
    from: String,
    pane: Pane,
    screen: String,
    prompt: Prompt,
}

/// One dialog of each kind, title, tool, number of options and size, from all recordings.
fn recorded() -> Vec<Dialog> {
    let profiles = Profiles::shipped();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    let mut found = BTreeMap::new();
    for path in accuracy::recordings(&root) {
        let timeline = Timeline::read(std::fs::File::open(&path).unwrap()).unwrap();
        let agent = timeline.header.agent.clone();
        let profile = profiles.get(&agent).unwrap();
        let mut player = Player::new(&profile, &timeline.header.args);
        let mut memory = Memory::default();
        for look in timeline.rows.iter().filter_map(|row| player.play(row)) {
            let outcome = step(&profile, memory, &look);
            if let Some(dialog) = dialog(&agent, &path, &look, &outcome) {
                let prompt = &dialog.prompt;
                let asked = (prompt.kind, prompt.title.clone(), prompt.tool.clone());
                let key = (agent.clone(), asked, prompt.options.len(), dialog.pane.size);
                found.entry(key).or_insert(dialog);
            }
            memory = outcome.memory;
        }
    }
    found.into_values().collect()
}

fn dialog(agent: &str, path: &Path, look: &Observation, outcome: &Outcome) -> Option<Dialog> {
    let prompt = outcome.verdict.state.prompt().filter(|_| outcome.signals.prompt_waiting)?.clone();
    let pane = look.pane.seen().filter(|pane| !pane.dead && !pane.in_mode)?.clone();
    let screen = look.screen_ansi.seen().or(look.screen.seen())?.to_string();
    Some(Dialog { agent: agent.to_owned(), from: path.display().to_string(), pane, screen, prompt })
}

/// The bytes that bring a terminal to show a recorded screen.
fn painted(dialog: &Dialog) -> String {
    let pane = &dialog.pane;
    format!(
        "{}\x1b[2J\x1b[H\x1b]2;{}\x07{}\x1b[0m\x1b[{};{}H{}",
        if pane.alternate { "\x1b[?1049h" } else { "" },
        pane.title,
        dialog.screen.trim_end_matches('\n').replace('\n', "\r\n"),
        pane.cursor.1 + 1,
        pane.cursor.0 + 1,
        if pane.cursor_visible { "\x1b[?25h" } else { "\x1b[?25l" },
    )
}

/// Tries every way to send text; says what went wrong.
fn try_to_send(lab: &Lab, engine: &Engine, number: usize, dialog: &Dialog) -> Result<(), String> {
    let name = format!("d-{number}");
    let directory = lab.path().join(&name);
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("screen"), painted(dialog)).unwrap();
    let spawn = SpawnRequest {
        agent: dialog.agent.clone(),
        name: Some(name.clone()),
        size: Some(Size { columns: dialog.pane.size.0, rows: dialog.pane.size.1 }),
        env: [("STAND_IN".to_owned(), directory.display().to_string())].into(),
        ..SpawnRequest::default()
    };
    engine.spawn(&spawn).map_err(|error| error.to_string())?;
    let status = || engine.status(&SessionRequest { session: name.clone() }).unwrap();
    if !until(Duration::from_secs(8), || status().prompt.is_some() && directory.join("typed").exists()) {
        let session = status();
        return Err(format!("is not seen as a dialog but as {} ({})", session.state, session.reason));
    }
    let before = status().prompt.unwrap();
    for (queue, replace_draft) in [(false, false), (true, true)] {
        let text = Some("go on 1 2 3\n1\n".to_owned());
        let session = name.clone();
        let request =
            SendRequest { session, text, queue, replace_draft, wait_s: Some(1.0), ..SendRequest::default() };
        let receipt = engine.send(&request).map_err(|error| error.to_string())?.receipt;
        if receipt.refusal != Some(Refusal::PromptOpen) {
            return Err(format!("text was not refused: {receipt:?}"));
        }
    }
    let keys = SendRequest { session: name.clone(), keys: vec!["Enter".into()], ..SendRequest::default() };
    if engine.send(&keys).map_err(|error| error.to_string())?.receipt.refusal != Some(Refusal::PromptOpen) {
        return Err("a key was not refused".to_owned());
    }
    let typed = std::fs::read(directory.join("typed")).unwrap();
    if !typed.is_empty() {
        return Err(format!("got {:?}", String::from_utf8_lossy(&typed)));
    }
    match status().prompt {
        Some(after) if after.id == before.id => {}
        after => return Err(format!("became {after:?}")),
    }
    engine.kill(&KillRequest { session: name.clone(), force: true }).map_err(|error| error.to_string())?;
    Ok(())
}

#[test]
fn no_dialog_of_any_agent_ever_gets_a_text() {
    let dialogs = recorded();
    let agents: BTreeMap<&str, usize> = dialogs.iter().fold(BTreeMap::new(), |mut agents, dialog| {
        *agents.entry(dialog.agent.as_str()).or_default() += 1;
        agents
    });
    assert!(agents.len() >= 3 && dialogs.len() >= 30, "recordings are missing: {agents:?}");
    let bin = tempfile::tempdir().unwrap();
    for agent in agents.keys() {
        let program = bin.path().join(agent);
        std::fs::write(&program, STAND_IN).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
    let lab = Lab::with(&[("PATH", &path)]);
    let engine = lab.engine();
    let (next, wrong) = (Mutex::new(dialogs.iter().enumerate()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let Some((number, dialog)) = next.lock().unwrap().next() else { break };
                    if let Err(why) = try_to_send(&lab, &engine, number, dialog) {
                        let what = format!("{} ({}): {why}", dialog.prompt.title, dialog.from);
                        wrong.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), dialogs.len(), wrong.join("\n"));
}
