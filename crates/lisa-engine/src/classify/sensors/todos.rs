//! An agent's task list on the screen, and an estimate of how long the rest may take.

use super::{Look, Sensor, no_evidence};
use crate::api::words::{Signals, Todos};
use crate::classify::profile::{Pattern, TodoShape};

pub(super) const SENSOR: Sensor = Sensor { sense: no_evidence, show };

fn show(look: &Look<'_>, signals: &mut Signals) {
    let shape = look.profile.screen.todos.as_ref();
    signals.todos = shape.zip(look.obs.screen.seen()).and_then(|(shape, screen)| read(shape, screen));
}

/// The task list on this screen, if there is one. If an agent shows its list repeatedly, each task counts once, as in
/// the last list.
fn read(shape: &TodoShape, screen: &str) -> Option<Todos> {
    let mut tasks: Vec<(&str, bool)> = Vec::new();
    for (task, done) in screen.lines().filter_map(|line| task(shape, line)) {
        tasks.retain(|(known, _)| *known != task);
        tasks.push((task, done));
    }
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

    fn read(screen: &str) -> Option<Todos> {
        let profile = Profiles::shipped().get("claude").expect("it ships");
        super::read(profile.screen.todos.as_ref().expect("it shows tasks"), screen)
    }

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
