//! What tmux sends.

use super::input::SEPARATOR;
use crate::{
    observe::Screens,
    tmux::{
        MINIMUM, Shown, Version, exchange, looks,
        pane::{self, PaneRow},
        wire::{Heard, Listener, message},
    },
};

/// The panes that a look asks for.
const IDS: [&str; 2] = ["%1", "%2"];

/// The first byte is the size of the pieces in which the rest arrives.
pub(super) fn messages(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let input = b"typed\n";
    let mut listener = Listener::new(input);
    for piece in rest.chunks(usize::from(*first).max(1)) {
        match listener.hear(piece) {
            Err(_) => return,
            Ok(Heard::Ended(_)) => return,
            Ok(Heard::Answers(answers)) => whole_messages(&answers),
        }
    }
}

/// A server aborts on an incomplete message.
fn whole_messages(mut answers: &[u8]) {
    while !answers.is_empty() {
        let Ok(Some((_, _, length))) = message(answers) else {
            assert!(answers.is_empty(), "an answer that is no message");
            return;
        };
        answers = &answers[length..];
    }
}

/// Rows of panes with and without the foreground program; and the other small parsers.
pub(super) fn panes(bytes: &[u8]) {
    for with_command in [false, true] {
        for row in pane::parse(bytes, with_command).unwrap_or_default() {
            check_row(&row, with_command);
        }
    }
    if let Some(version) = Version::parse(bytes) {
        let again = Version::parse(format!("tmux {version}").as_bytes());
        assert!(again == Some(version), "{version} is read as {again:?}");
        let _ = version >= MINIMUM;
    }
    let parts = exchange::split(bytes, b"mark");
    let length: usize = parts.iter().map(Vec::len).sum();
    assert!(length <= bytes.len(), "more came out than went in");
}

/// Parses a row again from its own fields.
fn check_row(row: &PaneRow, with_command: bool) {
    let line = print_row(row, with_command);
    let again = pane::parse(line.as_bytes(), with_command).unwrap_or_default();
    assert!(again.first() == Some(row), "{row:?} is read as {again:?}");
}

fn print_row(row: &PaneRow, with_command: bool) -> String {
    let pane = &row.pane;
    let flag = |on: bool| if on { "1" } else { "0" }.to_owned();
    let number = |value: Option<i32>| value.map(|value| value.to_string()).unwrap_or_default();
    let mut fields = vec![
        row.session.clone(),
        row.session_id.clone(),
        row.window_id.clone(),
        row.pane_id.clone(),
        row.run_id.clone(),
        row.server_pid.to_string(),
        flag(pane.dead),
        number(pane.exit_status),
        number(pane.exit_signal),
        pane.pid.to_string(),
        pane.cursor.0.to_string(),
        pane.cursor.1.to_string(),
        flag(pane.cursor_visible),
        flag(pane.alternate),
        flag(pane.in_mode),
        pane.history.to_string(),
        (pane.activity.0 / 1000).to_string(),
        pane.size.0.to_string(),
        pane.size.1.to_string(),
        pane.inputs.to_string(),
    ];
    fields.extend(with_command.then(|| pane.command.clone()));
    fields.push(pane.title.clone());
    fields.join("\t")
}

/// One reply with the fields of panes and then their screens, with or without markers.
pub(super) fn captures(bytes: &[u8]) {
    let marked = bytes.first() == Some(&SEPARATOR);
    let output = bytes.get(usize::from(marked)..).unwrap_or_default();
    for shown in [Shown::Screen, Shown::Nothing] {
        for ids in [&IDS[..1], &IDS[..]] {
            let Some((found, listed)) = looks::take(output, ids, marked.then_some("mark"), shown) else {
                continue;
            };
            assert!(found.len() == ids.len() && listed >= ids.len(), "{} of {listed} looks", found.len());
            for look in found {
                let screens = Screens::from_reply(Some(look.screen));
                let (plain, ansi) = (screens.plain.seen(), screens.ansi.seen());
                let rows = |text: Option<&std::sync::Arc<str>>| text.map_or(0, |text| text.lines().count());
                assert!(rows(plain) <= rows(ansi).max(1), "a screen with more rows than it has");
            }
        }
    }
}
