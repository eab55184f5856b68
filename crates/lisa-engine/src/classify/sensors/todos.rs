//! An agent's task list on the screen, and an estimate of how long the rest may take.

use super::{Look, Sensor, no_evidence};
use crate::api::words::{Signals, Todos};
use crate::classify::profile::{Pattern, TodoShape};
use crate::classify::screen::Layout;
use std::ops::Range;

pub(super) const SENSOR: Sensor = Sensor { sense: no_evidence, show };

fn show(look: &Look<'_>, signals: &mut Signals) {
    let shape = look.profile.screen.todos.as_ref();
    signals.todos = shape.zip(look.layout.as_ref()).and_then(|(shape, layout)| read(shape, layout));
}

/// The agent's task list, if the screen shows one: in the last block of the conversation that can have one. The same
/// rows in a message or in the output of a tool are somebody else's list.
fn read(shape: &TodoShape, layout: &Layout<'_>) -> Option<Todos> {
    let rows = layout.rows();
    let own = |block: &&Range<usize>| rows.get(block.start).is_some_and(|head| shape.below.is_match(head));
    let block = layout.blocks().iter().rev().find(own)?;
    let tasks: Vec<(&str, bool)> =
        rows.get(block.start + 1..block.end)?.iter().filter_map(|row| task(shape, row)).collect();
    let count = |tasks: usize| u32::try_from(tasks).unwrap_or(u32::MAX);
    let active = tasks.iter().find(|(_, done)| !done).map(|(task, _)| (*task).to_owned());
    let done = count(tasks.iter().filter(|(_, done)| *done).count());
    (!tasks.is_empty()).then(|| Todos { done, total: count(tasks.len()), active })
}

fn task<'a>(shape: &TodoShape, line: &'a str) -> Option<(&'a str, bool)> {
    let named = |pattern: &Pattern| Some(pattern.captures(line)?.get(1)?.as_str().trim());
    named(&shape.done).map(|task| (task, true)).or_else(|| named(&shape.open).map(|task| (task, false)))
}

/// Estimated seconds until it is worth looking again, from 30 to 120: long for work that is known to be slow, shorter
/// the more of the list is done.
pub(crate) fn wait_estimate(task: Option<&str>, todos: Option<&Todos>) -> u32 {
    let words = task.unwrap_or_default().to_lowercase();
    let has = |list: &[&str]| list.iter().any(|word| words.contains(word));
    let whole: u32 = if has(&["test", "build", "compile", "install", "deploy", "benchmark", "migrat"]) {
        120
    } else if has(&["implement", "refactor", "write", "fix", "debug", "review"]) {
        90
    } else if has(&["read", "search", "list", "check", "find", "plan"]) {
        45
    } else {
        60
    };
    let Some(todos) = todos.filter(|todos| todos.total > 0) else { return whole };
    let left = todos.total.saturating_sub(todos.done);
    let share = whole * left / todos.total;
    share.clamp(30, 120)
}

#[cfg(test)]
mod tests {
    use super::{Todos, wait_estimate};
    use crate::classify::profile::Profiles;
    use crate::classify::screen::Layout;

    const RULE: &str = "────────────────────";

    fn read(conversation: &str) -> Option<Todos> {
        let profile = Profiles::shipped().get("claude").expect("it ships");
        let screen = format!("{conversation}\n\n{RULE}\n❯\u{a0}\n{RULE}\n  ? for shortcuts\n");
        let layout = Layout::read(&profile.screen, &screen, None, None);
        super::read(profile.screen.todos.as_ref().expect("it shows tasks"), &layout)
    }

    #[test]
    fn the_list_below_the_spinner_is_counted() {
        let todos =
            read("❯ go\n\n✻ Reading code… (8s)\n  ⎿  ✔ Read code\n     ◼ Fix bug\n     ◻ Write tests");
        let active = Some("Fix bug".to_owned());
        assert_eq!(todos, Some(Todos { done: 1, total: 3, active }));
    }

    #[test]
    fn a_list_that_a_tool_printed_or_the_agent_wrote_is_not_its_task_list() {
        assert_eq!(read("● Bash(cat TODO.md)\n  ⎿  ☒ think\n     ☐ commit"), None);
        assert_eq!(read("● The plan:\n  ☒ think\n  ☐ commit\n\n✻ Baked for 2s"), None);
        assert_eq!(read("❯ ☐ commit"), None);
        assert_eq!(read("nothing to do"), None);
    }

    #[test]
    fn the_estimate_follows_the_task_and_the_progress_and_keeps_its_bounds() {
        let at = |done: u32| Todos { done, total: 4, active: None };
        assert_eq!(wait_estimate(Some("Run the tests"), None), 120);
        assert_eq!(wait_estimate(Some("Run the tests"), Some(&at(2))), 60);
        assert_eq!(wait_estimate(Some("Run the tests"), Some(&at(4))), 30);
        assert_eq!(wait_estimate(None, Some(&at(0))), 60);
    }
}
