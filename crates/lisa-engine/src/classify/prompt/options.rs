//! The options of a dialog.

use crate::api::words::{DialogKind, Effect, Prompt, PromptKind, PromptOption};
use crate::classify::profile::{DialogRule, Pattern, Profile};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The options of a dialog's list.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// In order.
    pub(super) options: Vec<PromptOption>,
    /// The lines they occupy.
    pub(super) rows: BTreeSet<usize>,
    /// Whether one of them takes free text.
    pub(super) free_text: bool,
    /// Whether the list continues beyond the screen.
    pub(super) truncated: bool,
}

/// Reads the last list of options: one below the other with numbers, one below the other without numbers (in dialogs
/// known for it), in one row, or in the rows around the selected one.
///
/// Only lines in `from..` count: a list above the question is part of the text.
pub(super) fn read(
    profile: &Profile,
    rule: Option<&DialogRule>,
    lines: &[Cow<'_, str>],
    from: usize,
    width: usize,
) -> Listed {
    let mut listed = numbered(profile, lines, from, width);
    if let Some(pattern) = rule.and_then(|rule| rule.option.as_ref()).filter(|_| listed.options.is_empty()) {
        listed = lettered(pattern, lines, from);
    }
    if listed.options.is_empty() {
        listed = in_a_row(profile, lines, from);
    }
    if listed.options.is_empty() && rule.is_none_or(|rule| !rule.opens) {
        // The entries of a picker have lines of their own below them, which look like entries.
        let whole = rule.is_none_or(|rule| rule.dialog != Some(DialogKind::Picker));
        listed = around_mark(profile, lines, from, whole);
    }
    let grammar = &profile.dialog;
    listed.free_text = grammar
        .free_text
        .as_ref()
        .is_some_and(|words| listed.options.iter().any(|option| words.is_match(&option.label)));
    let more = grammar.more.as_ref().is_some_and(|more| lines.iter().any(|line| more.is_match(line)));
    let keys: Vec<u32> = listed.options.iter().filter_map(|option| option.key.parse().ok()).collect();
    let gaps =
        keys.first().is_some_and(|first| *first != 1) || keys.windows(2).any(|pair| pair[1] != pair[0] + 1);
    listed.truncated |= more || gaps;
    listed
}

fn numbered(profile: &Profile, lines: &[Cow<'_, str>], from: usize, width: usize) -> Listed {
    let Some(pattern) = &profile.dialog.option else { return Listed::default() };
    let mut listed = Listed::default();
    let mut last_key = 0;
    let mut indent = 0;
    for (row, line) in lines.iter().enumerate().skip(from) {
        let Some(found) = pattern.captures(line) else {
            join_wrapped(&mut listed, line, row, indent, lines, width);
            continue;
        };
        let group = |name: &str| found.name(name).map(|group| group.as_str().trim().to_owned());
        let key = group("key").unwrap_or_default();
        let number: u32 = key.parse().unwrap_or(0);
        if number <= last_key {
            // A list that starts over: what came before was text.
            listed = Listed::default();
        }
        last_key = number;
        indent = found.name("label").map_or(0, |label| line[..label.start()].chars().count());
        let label = group("label").unwrap_or_default();
        let label = label.split("  ").next().unwrap_or_default().trim().to_owned();
        let unticked =
            |tick: String| profile.dialog.unticked.as_ref().is_some_and(|box_| box_.is_match(&tick));
        let checked = group("box").map(|tick| !unticked(tick));
        let selected = group("mark").is_some_and(|mark| !mark.is_empty());
        listed.options.push(PromptOption { key, label, selected, checked, effect: Effect::Choose });
        listed.rows.insert(row);
    }
    listed
}

/// Joins a wrapped label: a line below an option is part of its label only if the option's own line filled the
/// screen's width.
fn join_wrapped(
    listed: &mut Listed,
    line: &str,
    row: usize,
    indent: usize,
    lines: &[Cow<'_, str>],
    width: usize,
) {
    let Some(before) = row.checked_sub(1).filter(|before| listed.rows.contains(before)) else { return };
    let text = line.trim();
    let deeper = line.chars().take_while(|c| c.is_whitespace()).count() >= indent.min(4);
    if text.is_empty() || !deeper || width == 0 {
        return;
    }
    let first_word = text.split_whitespace().next().map_or(0, |word| word.chars().count());
    let filled = lines[before].chars().count() + 1 + first_word >= width.saturating_sub(2);
    // A label that is followed by a description in a column of its own is complete.
    let described = lines[before].trim().contains("  ");
    if let Some(option) = listed.options.last_mut().filter(|_| filled && !described) {
        option.label = format!("{} {text}", option.label);
        listed.rows.insert(row);
    }
}

/// Options without numbers get letters, in order: no digit is ever pressed for them.
fn lettered(pattern: &Pattern, lines: &[Cow<'_, str>], from: usize) -> Listed {
    let mut listed = Listed::default();
    let found =
        lines.iter().enumerate().skip(from).filter_map(|(row, line)| Some((row, pattern.captures(line)?)));
    for (row, found) in found {
        let label = found.name("label").map_or("", |label| label.as_str());
        listed.add_lettered(row, label, found.name("mark").is_some_and(|mark| !mark.is_empty()));
    }
    listed
}

/// The list that the selected row is in: all rows up to the next blank one that start in the same column. Rows that are
/// indented deeper describe the one above them.
fn around_mark(profile: &Profile, lines: &[Cow<'_, str>], from: usize, whole: bool) -> Listed {
    let mut listed = Listed::default();
    let Some(marked) = &profile.dialog.marked else { return listed };
    let found = lines.iter().enumerate().skip(from).rev();
    let Some((row, found)) = found.filter_map(|(row, line)| Some((row, marked.find(line)?))).next() else {
        return listed;
    };
    let column = found.as_str().chars().count().saturating_sub(1);
    let indent = |line: &str| line.chars().take_while(|c| c.is_whitespace()).count();
    let inside = |at: &usize| {
        let line = lines.get(*at).map(AsRef::as_ref).unwrap_or_default();
        *at == row || (!line.trim().is_empty() && indent(line) >= column)
    };
    let first = (from..row).rev().take_while(inside).last().unwrap_or(row);
    for at in (first..lines.len()).take_while(inside) {
        let line = lines.get(at).map(AsRef::as_ref).unwrap_or_default();
        if at == row || (whole && indent(line) == column) {
            let label: String = line.chars().skip(column).collect();
            listed.add_lettered(at, &label, at == row);
        }
    }
    listed
}

impl Listed {
    /// Adds an option without a number, as long as there are letters.
    fn add_lettered(&mut self, row: usize, label: &str, selected: bool) {
        let Some(key) = ('a'..='z').nth(self.options.len()) else {
            self.truncated = true;
            return;
        };
        let label = label.trim().split("  ").next().unwrap_or_default().trim().to_owned();
        self.options.push(PromptOption {
            key: key.to_string(),
            label,
            selected,
            checked: None,
            effect: Effect::Choose,
        });
        self.rows.insert(row);
    }
}

fn in_a_row(profile: &Profile, lines: &[Cow<'_, str>], from: usize) -> Listed {
    let Some(pattern) = &profile.dialog.option_row else { return Listed::default() };
    let found = lines
        .iter()
        .enumerate()
        .skip(from)
        .rev()
        .find_map(|(row, line)| Some((row, pattern.captures(line)?)));
    let Some((row, found)) = found else { return Listed::default() };
    let text = found.get(1).map_or("", |group| group.as_str());
    let labels = text.split("  ").map(str::trim).filter(|label| !label.is_empty());
    let options = labels.enumerate().map(|(at, label)| PromptOption {
        key: (at + 1).to_string(),
        label: label.to_owned(),
        selected: false,
        checked: None,
        effect: Effect::Choose,
    });
    Listed { options: options.collect(), rows: BTreeSet::from([row]), ..Listed::default() }
}

/// Whether rows of the dialog are outside the screen: fewer options than its hint says, no selected option although
/// there always is one, or no space left above the hint.
pub(super) fn cut_off(
    profile: &Profile,
    lines: &[Cow<'_, str>],
    hinted: &[usize],
    options: &[PromptOption],
) -> Cut {
    let grammar = &profile.dialog;
    let hints = hinted.iter().filter_map(|row| lines.get(*row));
    let counted: Option<usize> = hints
        .flat_map(|line| grammar.hint.iter().filter_map(move |hint| hint.pattern.captures(line)))
        .find_map(|found| found.get(1)?.as_str().parse().ok());
    let first = hinted.iter().min().and_then(|row| row.checked_sub(1)).and_then(|row| lines.get(row));
    let close = grammar.hint_apart && first.is_some_and(|line| !line.trim().is_empty());
    let to_tick = options.iter().any(|option| option.checked.is_some());
    let marked = options.iter().any(|option| option.selected);
    Cut {
        below: counted.map_or(close, |count| options.len() < count),
        unmarked: grammar.always_marked
            && !to_tick
            && !marked
            && counted.is_none_or(|count| options.len() < count),
    }
}

/// What shows that a dialog is cut off.
pub(super) struct Cut {
    /// Options are missing at its end.
    pub(super) below: bool,
    /// No option is selected, although one must be.
    pub(super) unmarked: bool,
}

/// The option that takes free text: identified by its label, or, if typed text replaces the label, as the selected
/// one.
pub(super) fn typed_option<'p>(profile: &Profile, prompt: &'p Prompt) -> Option<&'p PromptOption> {
    let grammar = &profile.dialog;
    if prompt.kind != PromptKind::Question || !prompt.free_text {
        return None;
    }
    let words = grammar.free_text.as_ref()?;
    let labelled = prompt.options.iter().find(|option| words.is_match(&option.label));
    let in_place = grammar.typed_in_place && !prompt.truncated;
    labelled.or_else(|| prompt.options.iter().find(|option| in_place && option.selected))
}

/// Sets the effect of each option.
pub(super) fn name_effects(profile: &Profile, prompt: &mut Prompt) {
    let kind = prompt.kind;
    let list = matches!(prompt.dialog, Some(DialogKind::Menu | DialogKind::Picker));
    for option in &mut prompt.options {
        let rules = profile.dialog.effect.iter();
        let mut fitting = rules.filter(|rule| rule.kind.is_none_or(|of| of == kind));
        let named = fitting.find(|rule| rule.pattern.is_match(&option.label)).map(|rule| rule.effect);
        let usual = if kind == PromptKind::Question { Effect::Choose } else { Effect::Other };
        option.effect = if list { Effect::Choose } else { named.unwrap_or(usual) };
    }
}
