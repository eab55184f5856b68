//! Dialogs as data: where one is on the screen, what it asks, and what can be chosen.
//!
//! A dialog is recognized by its place and shape: it is where the input box would be, and has options of which one is
//! selected, or hints in its last lines. Its question then tells which dialog it is. An unknown one is still a dialog,
//! so that nothing is ever typed into it blindly.

mod fingerprint;
mod occurrence;
mod options;

pub use fingerprint::fingerprint;
pub use occurrence::{Occurrence, Seen, identify};

use crate::api::words::{DialogKind, Effect, Prompt, PromptKind, PromptOption, PromptStep};
use crate::classify::memory::Ask;
use crate::classify::observation::Pane;
use crate::classify::profile::{DialogRule, Names, Profile, Rx};
use crate::classify::screen::Layout;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

/// How many lines at the end of a dialog may contain hints.
const HINT_LINES: usize = 3;
/// How many blank rows separate a dialog from the conversation, if no line does.
const GAP_ROWS: usize = 4;
/// Maximum characters to keep of a dialog's text.
const BODY_LIMIT: usize = 4_000;

/// How long an announced prompt may take to be drawn. Until then nobody can read its options.
pub const DRAWN: Duration = Duration::from_millis(1_500);

/// The key of the option that closes a dialog without an answer, which no dialog lists itself.
pub const ESCAPE: &str = "esc";

/// Whether a prompt of this age has only been announced so far, and its agent is about to draw it.
pub fn is_being_drawn(prompt: &Prompt, age_ms: i64) -> bool {
    shows_no_option(prompt) && i128::from(age_ms) < DRAWN.as_millis().cast_signed()
}

/// Whether no option of its own is known.
fn shows_no_option(prompt: &Prompt) -> bool {
    prompt.options.iter().all(|option| option.key == ESCAPE)
}

/// Adds the option that closes a dialog of the program itself.
fn with_escape(mut prompt: Prompt) -> Prompt {
    if prompt.kind == PromptKind::Dialog {
        prompt.options.push(PromptOption {
            key: ESCAPE.to_owned(),
            label: "Escape".to_owned(),
            selected: false,
            checked: None,
            effect: Effect::Other,
        });
    }
    prompt
}

/// The open dialog on this screen, if there is one.
pub fn read(profile: &Profile, layout: &Layout<'_>, pane: Option<&Pane>) -> Option<Prompt> {
    let grammar = &profile.dialog;
    if layout.input().is_some() || (grammar.option.is_none() && grammar.hint.is_empty()) {
        return None;
    }
    if grammar.cursor_hidden && pane.is_some_and(|pane| pane.cursor_visible) {
        return None;
    }
    let region = region(profile, layout);
    let lines: Vec<Cow<'_, str>> =
        layout.rows().get(region.clone())?.iter().map(|row| unframe(profile, row)).collect();
    let hinted = hint_lines(profile, &lines);
    let asked = grammar.on.iter().find_map(|rule| {
        let row = lines.iter().rposition(|line| rule.pattern.is_match(line))?;
        Some((rule, row))
    });
    let from = asked.map_or(0, |(rule, row)| first_option_row(profile, rule, row, &lines));
    let width = pane.map_or(0, |pane| usize::from(pane.size.0));
    let listed = options::read(profile, asked.map(|(rule, _)| rule), &lines, from, width);
    let chosen = listed.options.iter().any(|option| option.selected)
        || grammar.marked.as_ref().is_some_and(|marked| lines.iter().any(|line| marked.is_match(line)));
    if hinted.is_empty() && !chosen {
        return None;
    }

    let text_from = |start: usize| (start..lines.len()).find(|row| is_text(profile, &lines[*row]));
    let title_row = match asked {
        Some((rule, row)) if rule.heading => {
            text_from(row + 1).filter(|next| !listed.rows.contains(next)).unwrap_or(row)
        }
        Some((_, row)) if !listed.rows.contains(&row) => row,
        _ => text_from(0).unwrap_or(0),
    };
    let (kind, dialog) = match asked {
        Some((rule, _)) => (rule.kind, rule.dialog),
        None => (PromptKind::Dialog, Some(DialogKind::Menu)),
    };
    let body: Vec<&str> = lines
        .iter()
        .enumerate()
        .filter(|(row, line)| {
            let apart = *row == title_row || listed.rows.contains(row) || hinted.contains(row);
            let typed = grammar.typed.as_ref().is_some_and(|typed| typed.is_match(line));
            !apart && !typed && is_text(profile, line)
        })
        .map(|(_, line)| line.trim())
        .collect();
    let body = crate::classify::evidence::shorten(&body.join("\n"), BODY_LIMIT);
    let subject = match asked {
        Some((rule, row)) if rule.kind == PromptKind::Permission => {
            Subject::read(profile, &lines, &listed.rows, row)
        }
        _ => Subject::default(),
    };
    let cut = options::cut_off(profile, &lines, &hinted, &listed.options);
    let takes_text = asked.is_some_and(|(rule, _)| rule.free_text);
    // A dialog of the program itself may be a list without numbers; a question may have no list at all.
    let unlisted = listed.options.is_empty() && (kind == PromptKind::Dialog || takes_text);
    let starts_above = starts_above(profile, layout, region.start);
    // A dialog of the program itself may fill the screen; a prompt of a turn is below the conversation.
    let cut_above = starts_above && (asked.is_none() || kind != PromptKind::Dialog);
    let mut prompt = Prompt {
        id: String::new(),
        kind,
        dialog,
        title: lines.get(title_row).map(|line| line.trim().to_owned()).unwrap_or_default(),
        body,
        tool: subject.tool,
        command: subject.command,
        file: subject.file,
        multi: listed.options.iter().any(|option| option.checked.is_some()),
        free_text: listed.free_text || takes_text,
        truncated: listed.truncated || cut.below || (cut.unmarked && !unlisted) || cut_above,
        step: step(profile, &lines),
        options: listed.options,
        disagrees: false,
    };
    options::name_effects(profile, &mut prompt);
    if asked.is_none() || prompt.options.is_empty() {
        prompt = with_escape(prompt);
    }
    prompt.id = name(profile, &prompt);
    Some(prompt)
}

/// A fingerprint of the text above the dialog on this screen.
pub fn above(profile: &Profile, layout: &Layout<'_>) -> Option<u64> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    layout.rows().get(..region(profile, layout).start)?.hash(&mut hasher);
    Some(hasher.finish())
}

/// Whether the dialog may start above the visible screen: nothing on the screen precedes it.
fn starts_above(profile: &Profile, layout: &Layout<'_>, start: usize) -> bool {
    let opens = [profile.screen.rule.as_ref(), profile.dialog.top.as_ref()];
    let opens = |row: &str| opens.into_iter().flatten().any(|pattern| pattern.is_match(row));
    start == 0 && layout.rows().first().is_some_and(|row| !row.is_empty() && !opens(row))
}

fn name(profile: &Profile, prompt: &Prompt) -> String {
    let typed = options::typed_option(profile, prompt).map(|option| option.key.as_str());
    fingerprint(prompt, typed, profile.dialog.changing.as_ref())
}

/// The first row that may be an option. A permission or a plan may itself contain a numbered list, so its options are
/// below the line with the question.
fn first_option_row(profile: &Profile, rule: &DialogRule, row: usize, lines: &[Cow<'_, str>]) -> usize {
    if rule.opens {
        return lines.len();
    }
    let is_option = profile.dialog.option.as_ref().is_some_and(|option| option.is_match(&lines[row]));
    let below = matches!(rule.kind, PromptKind::Permission | PromptKind::Plan) && !is_option;
    if below { row + 1 } else { 0 }
}

/// What a permission is for.
#[derive(Debug, Default)]
struct Subject {
    tool: Option<String>,
    command: Option<String>,
    file: Option<String>,
}

impl Subject {
    /// Reads it from the dialog's own lines: those below the last line that names a tool, or below the question
    /// (`asked`). The lines above may be the end of a conversation that quotes another dialog.
    fn read(profile: &Profile, lines: &[Cow<'_, str>], options: &BTreeSet<usize>, asked: usize) -> Self {
        let grammar = &profile.dialog;
        let capture = |pattern: Option<&Rx>, row: usize| {
            let found = pattern.filter(|_| !options.contains(&row))?.captures(lines.get(row)?)?;
            found.iter().skip(1).flatten().next().map(|group| group.as_str().trim().to_owned())
        };
        let named = (0..lines.len()).rev().find_map(|row| Some((row, capture(grammar.tool.as_ref(), row)?)));
        let first = named.as_ref().map_or(asked, |(row, _)| asked.min(*row));
        let find = |pattern: Option<&Rx>| (first..lines.len()).find_map(|row| capture(pattern, row));
        let names = named.as_ref().and_then(|(_, tool)| grammar.names.get(tool));
        let told = |names_it: Names| grammar.names.is_empty() || names == Some(&names_it);
        let file = match named {
            // The line with the question may name it.
            None => capture(grammar.file.as_ref(), asked),
            Some(_) => find(grammar.file.as_ref()).filter(|_| told(Names::File)),
        };
        let file = file.or_else(|| find(grammar.file.as_ref()).filter(|_| grammar.names.is_empty()));
        let command = framed(grammar.framed.as_ref(), lines.get(first..).unwrap_or_default());
        let command = command.or_else(|| find(grammar.command.as_ref())).filter(|_| told(Names::Command));
        Self { tool: named.map(|(_, tool)| tool), command, file }
    }
}

/// The lines between two lines of a frame.
fn framed(frame: Option<&Rx>, lines: &[Cow<'_, str>]) -> Option<String> {
    let frame = frame?;
    let above = lines.iter().position(|line| frame.is_match(line))?;
    let rest = lines.get(above + 1..)?;
    let below = rest.iter().position(|line| frame.is_match(line))?;
    let text: Vec<&str> = rest.get(..below)?.iter().map(|line| line.trim()).collect();
    Some(text.join("\n")).filter(|text| !text.is_empty())
}

/// Adds what the agent announced and the screen doesn't show. The announcement often comes a moment after the dialog,
/// so the prompt only gets a new id if the announcement adds something: whoever read it before then still means it.
///
/// If what is shown contradicts everything that the agent has announced and nobody has answered yet, the agent asks what
/// it announced, whatever its screen shows.
pub fn complete<'a>(
    profile: &Profile,
    prompt: Prompt,
    asks: impl Iterator<Item = &'a Ask> + Clone,
) -> Prompt {
    let mut asks = asks.filter(|ask| ask.kind == prompt.kind);
    match asks.clone().find(|ask| is_about(ask, &prompt)) {
        Some(ask) => adopt(profile, prompt, ask),
        None => match asks.next() {
            Some(ask) => Prompt { disagrees: true, ..adopt(profile, prompt, ask) },
            None => prompt,
        },
    }
}

/// The prompt with the tool, command and file that the agent announced.
fn adopt(profile: &Profile, mut prompt: Prompt, ask: &Ask) -> Prompt {
    let on_screen = [Some(&prompt.title), Some(&prompt.body), prompt.command.as_ref(), prompt.file.as_ref()];
    let on_screen: Vec<String> = on_screen.into_iter().flatten().map(|text| squeezed(text)).collect();
    let shown = |text: &Option<String>| {
        text.as_deref().map(squeezed).is_none_or(|text| on_screen.iter().any(|part| part.contains(&text)))
    };
    // The screen may show a path relative to the working directory; a bare name could be in any directory.
    let same_file = |shown: &String| {
        shown.contains('/') && ask.file.as_ref().is_some_and(|file| file.ends_with(&format!("/{shown}")))
    };
    let news = !shown(&ask.command) || !(shown(&ask.file) || prompt.file.as_ref().is_some_and(same_file));
    prompt.tool = ask.tool.clone().or(prompt.tool);
    prompt.command = ask.command.clone().or(prompt.command);
    prompt.file = ask.file.clone().or(prompt.file);
    if news {
        prompt.id = name(profile, &prompt);
    }
    prompt
}

/// Whether the announcement can be about the prompt that is shown. A dialog wraps commands and shows paths relative to
/// the working directory, but what it shows is part of what it asks.
fn is_about(ask: &Ask, prompt: &Prompt) -> bool {
    let part_of = |shown: &str, told: &str| {
        let told = squeezed(told);
        shown.split(['…', '⋯']).all(|part| told.contains(&squeezed(part)))
    };
    let agree = |shown: &Option<String>, told: &Option<String>| match (shown, told) {
        (Some(shown), Some(told)) => part_of(shown, told) || part_of(told, shown),
        _ => true,
    };
    agree(&prompt.command, &ask.command) && agree(&prompt.file, &ask.file)
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The prompt that an agent announced, if no screen shows it.
pub fn from_ask(profile: &Profile, ask: &Ask) -> Prompt {
    let title = ask.text.clone().or_else(|| ask.command.clone()).or_else(|| ask.file.clone());
    let mut prompt = Prompt {
        id: String::new(),
        kind: ask.kind,
        dialog: ask.dialog,
        title: title.or_else(|| ask.tool.clone()).unwrap_or_default(),
        body: String::new(),
        tool: ask.tool.clone(),
        command: ask.command.clone(),
        file: ask.file.clone(),
        options: Vec::new(),
        multi: false,
        free_text: false,
        truncated: true,
        step: None,
        disagrees: false,
    };
    prompt = with_escape(prompt);
    prompt.id = name(profile, &prompt);
    prompt
}

/// Whether nothing on the screen identifies this dialog.
pub fn is_nameless(prompt: &Prompt) -> bool {
    prompt.dialog == Some(DialogKind::Menu)
}

/// Names a dialog that the screen doesn't identify, from the agent's announcement.
pub fn rename(profile: &Profile, mut prompt: Prompt, ask: &Ask) -> Prompt {
    (prompt.kind, prompt.dialog) = (ask.kind, ask.dialog);
    prompt.options.retain(|option| option.key != ESCAPE || ask.kind == PromptKind::Dialog);
    options::name_effects(profile, &mut prompt);
    complete(profile, prompt, std::iter::once(ask))
}

/// A prompt for something unknown in the place of the input box.
pub fn unknown(profile: &Profile, layout: &Layout<'_>) -> Prompt {
    let mut lines =
        layout.rows().iter().map(|row| row.trim()).filter(|row| row.chars().any(char::is_alphanumeric));
    let title = lines.next().unwrap_or_default().to_owned();
    let body = crate::classify::evidence::shorten(&lines.collect::<Vec<_>>().join("\n"), BODY_LIMIT);
    let mut prompt = Prompt {
        id: String::new(),
        kind: PromptKind::Dialog,
        dialog: Some(DialogKind::Menu),
        title,
        body,
        tool: None,
        command: None,
        file: None,
        options: Vec::new(),
        multi: false,
        free_text: false,
        truncated: true,
        step: None,
        disagrees: false,
    };
    prompt = with_escape(prompt);
    prompt.id = name(profile, &prompt);
    prompt
}

/// The rows of the dialog: below the last block of the conversation, from the topmost separator line.
fn region(profile: &Profile, layout: &Layout<'_>) -> Range<usize> {
    let rows = layout.rows();
    let option = profile.dialog.option.as_ref();
    let mut start = rows.len();
    let mut ruled = None;
    let mut below_conversation = false;
    for (row, line) in rows.iter().enumerate().rev() {
        let own = |pattern: Option<&Rx>| pattern.is_some_and(|pattern| pattern.is_match(line));
        let is_option = own(option) || own(profile.dialog.own_row.as_ref());
        if !is_option && profile.screen.head.as_ref().is_some_and(|head| head.is_match(line)) {
            below_conversation = true;
            break;
        }
        if profile.screen.rule.as_ref().is_some_and(|rule| rule.is_match(line)) {
            ruled = Some(row);
        }
        let above = row.checked_sub(GAP_ROWS).and_then(|from| rows.get(from..=row));
        let gap = above.is_some_and(|rows| rows.iter().all(|row| row.is_empty()));
        if gap && profile.screen.rule.is_none() && start < rows.len() {
            below_conversation = true;
            break;
        }
        start = row;
    }
    // If nothing of the conversation is visible, the dialog and its first line may start above the screen.
    let cut_off = !below_conversation && rows.first().is_some_and(|row| !row.is_empty());
    let top = profile.dialog.top.as_ref();
    let topmost = || rows.iter().rposition(|line| top.is_some_and(|top| top.is_match(line)));
    let start = ruled.filter(|_| !cut_off).or_else(|| topmost().filter(|row| *row >= start)).unwrap_or(start);
    start..rows.len()
}

fn unframe<'a>(profile: &Profile, row: &'a str) -> Cow<'a, str> {
    match &profile.dialog.frame {
        Some(frame) => frame.replace(row, ""),
        None => Cow::Borrowed(row),
    }
}

fn hint_lines(profile: &Profile, lines: &[Cow<'_, str>]) -> Vec<usize> {
    let written = lines.iter().enumerate().rev().filter(|(_, line)| !line.trim().is_empty());
    let near = written.take(HINT_LINES);
    near.filter(|(_, line)| profile.dialog.hint.iter().any(|hint| hint.pattern.is_match(line)))
        .map(|(row, _)| row)
        .collect()
}

/// Whether a line has words and isn't just a separator.
fn is_text(profile: &Profile, line: &str) -> bool {
    let ruled = profile.screen.rule.as_ref().is_some_and(|rule| rule.is_match(line));
    !ruled && line.chars().any(char::is_alphanumeric)
}

/// Which of several questions is shown, according to the dialog or its tabs.
fn step(profile: &Profile, lines: &[Cow<'_, str>]) -> Option<PromptStep> {
    let grammar = &profile.dialog;
    let told = grammar.step.as_ref().and_then(|pattern| lines.iter().find_map(|line| pattern.captures(line)));
    if let Some(found) = told {
        let number = |group: usize| found.get(group)?.as_str().parse().ok();
        return Some(PromptStep { number: number(1)?, of: number(2)? });
    }
    let tab = grammar.tab.as_ref()?;
    let tabs =
        lines.iter().map(|line| tab.captures_iter(line).collect::<Vec<_>>()).find(|tabs| tabs.len() > 1)?;
    let answered = tabs.iter().filter(|found| found.get(1).is_some()).count();
    let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Some(PromptStep { number: count((answered + 1).min(tabs.len())), of: count(tabs.len()) })
}
