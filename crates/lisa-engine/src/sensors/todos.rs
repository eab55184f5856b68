//! Progress that an agent shows as a list with boxes, and how long the rest may take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a list of tasks is done.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todos {
    /// Tasks that are ticked.
    pub done: u32,
    /// All tasks.
    pub total: u32,
    /// The first task that is not ticked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<String>,
}

/// The boxes that begin a line of this screen, if there are any. An agent that shows its list again and again has each
/// task once: as it stands in the last list.
pub(crate) fn read(screen: &str) -> Option<Todos> {
    let mut tasks: Vec<(&str, bool)> = Vec::new();
    for (ticked, task) in screen.lines().filter_map(task) {
        tasks.retain(|(known, _)| *known != task);
        tasks.push((task, ticked));
    }
    let count = |tasks: usize| u32::try_from(tasks).unwrap_or(u32::MAX);
    let active = tasks.iter().find(|(_, ticked)| !ticked).map(|(task, _)| (*task).to_owned());
    let done = count(tasks.iter().filter(|(_, ticked)| *ticked).count());
    (!tasks.is_empty()).then(|| Todos { done, total: count(tasks.len()), active })
}

fn task(line: &str) -> Option<(bool, &str)> {
    let start = line
        .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '*' | '•' | '⎿' | '└' | '│'));
    let boxes = [
        ("[x]", true),
        ("[X]", true),
        ("[ ]", false),
        ("☒", true),
        ("☑", true),
        ("✔", true),
        ("☐", false),
        ("◼", false),
        ("◻", false),
    ];
    let (mark, ticked) = boxes.into_iter().find(|(mark, _)| start.starts_with(mark))?;
    let task = start[mark.len()..].trim();
    (!task.is_empty()).then_some((ticked, task))
}

/// How many seconds until it may be worth looking again, from 30 to 120: long for work that is known to be slow, less
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
    use super::{Todos, read, wait_estimate};

    #[test]
    fn boxes_at_the_start_of_a_line_are_counted() {
        let todos =
            read("Plan:\n- [x] read\n  ⎿  ☒ think\n  - [ ] run the tests\n  ☐ commit\nuse [ ] for open\n");
        let active = Some("run the tests".to_owned());
        assert_eq!(todos, Some(Todos { done: 2, total: 4, active }));
        assert_eq!(read("nothing to do"), None);
    }

    #[test]
    fn a_list_that_is_shown_again_counts_once() {
        let shown = "☐ read\n☐ test\nsome work\n☒ read\n☐ test\nmore work\n☒ read\n☒ test\n";
        assert_eq!(read(shown), Some(Todos { done: 2, total: 2, active: None }));
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
