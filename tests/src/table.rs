//! The page about agents: what works with which version, and how fast Lisa sees it.

use std::collections::BTreeMap;

use crate::agents::AgentKind;
use crate::hands::Through;
use crate::play::{ALONE, CONVERSATION, PAIR, Scene};
use crate::report::{Outcome, Played};
use crate::truth::Doing;

/// Where the part begins that is shown, but differs from run to run.
const FIGURES: &str = "## How fast changes are seen";

/// Every scenario, in the order of the page.
pub fn scenes() -> impl Iterator<Item = &'static Scene> {
    [CONVERSATION, ALONE, PAIR].into_iter().flatten()
}

/// How many scenarios a whole run plays: each with every agent, through every front end.
pub fn whole() -> usize {
    scenes().count() * AgentKind::ALL.len() * Through::ALL.len()
}

/// The page.
pub fn page(played: &[Played]) -> String {
    let mut page = String::from(
        "# Agents\n\n\
         Real agents play each scenario on a scripted model, through the engine, through MCP and through Nushell.\n\
         It works if it is played to its end through all three, and if what Lisa says all the while agrees with what\n\
         the model server knows: never ready while the agent works, never working while it waits for an answer.\n\
         This page is generated: `UPDATE_EXPECT=1 cargo xtask test agents`.\n\n",
    );
    let mut agents: Vec<(&str, &str)> =
        played.iter().map(|one| (one.agent.as_str(), one.version.as_str())).collect();
    agents.sort_unstable();
    agents.dedup();
    let heads: Vec<String> = agents.iter().map(|(agent, version)| format!("{agent} {version}")).collect();
    page += &format!("| scenario | what it shows | {} |\n", heads.join(" | "));
    page += &format!("|---|---|{}\n", "---|".repeat(agents.len()));
    for scene in scenes() {
        let cells: Vec<String> = agents.iter().map(|agent| cell(played, *agent, scene)).collect();
        page += &format!("| `{}` | {} | {} |\n", scene.id, scene.what, cells.join(" | "));
    }
    page += &format!(
        "\n{FIGURES}\n\n\
         From the model server's word, or from the moment at which the test's own deed was done, to Lisa's. Until an\n\
         agent asks it works, so what it takes from its model's word to its question is in `blocked`. The figures are\n\
         those of the run that wrote this page; they depend on the machine and are not compared.\n\n\
         | agent | change to | seen | p50 | max |\n|---|---|---|---|---|\n"
    );
    for (agent, version) in agents {
        let mut delays: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mine = played.iter().filter(|one| one.agent == agent && one.version == version);
        for delay in mine.flat_map(|one| &one.delays) {
            delays.entry(word(delay.to)).or_default().extend(delay.ms);
        }
        for (to, mut delays) in delays {
            delays.sort_unstable();
            let middle = delays.get(delays.len() / 2).copied().unwrap_or_default();
            let most = delays.last().copied().unwrap_or_default();
            page += &format!("| {agent} {version} | {to} | {} | {middle} ms | {most} ms |\n", delays.len());
        }
    }
    page
}

/// The part of a page that a run must find again.
pub fn compared(page: &str) -> &str {
    page.split(FIGURES).next().unwrap_or_default()
}

/// The lines in which two pages differ.
pub fn difference(published: &str, found: &str) -> String {
    let lines = |of: &str, other: &str, mark: char| -> Vec<String> {
        let known: Vec<&str> = other.lines().collect();
        of.lines().filter(|line| !known.contains(line)).map(|line| format!("{mark} {line}")).collect()
    };
    [lines(published, found, '-'), lines(found, published, '+')].concat().join("\n")
}

fn cell(played: &[Played], (agent, version): (&str, &str), scene: &Scene) -> String {
    let mine: Vec<&Played> = played
        .iter()
        .filter(|one| one.agent == agent && one.version == version && one.scene == scene.id)
        .collect();
    if mine.is_empty() {
        return "not played".to_owned();
    }
    if mine.iter().any(|one| one.outcome == Outcome::NotOffered) {
        return "not offered by the agent".to_owned();
    }
    let failed: Vec<&str> =
        mine.iter().filter(|one| one.outcome == Outcome::Fails).map(|one| one.through.as_str()).collect();
    match failed.is_empty() {
        true => "works".to_owned(),
        false => format!("does not ({})", failed.join(", ")),
    }
}

fn word(doing: Doing) -> String {
    serde_json::to_value(doing).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Delay;

    fn played(through: &str, outcome: Outcome, ms: u64) -> Played {
        Played {
            run: 1,
            agent: "claude".to_owned(),
            version: "1.0".to_owned(),
            through: through.to_owned(),
            scene: "prompt".to_owned(),
            what: String::new(),
            outcome,
            why: String::new(),
            seconds: 1.0,
            truth: Vec::new(),
            delays: vec![Delay { to: Doing::Ready, ms: Some(ms) }],
            lies: Vec::new(),
        }
    }

    #[test]
    fn a_scenario_works_only_if_it_works_through_every_front_end() {
        let good = page(&[played("engine", Outcome::Works, 10), played("nu", Outcome::Works, 30)]);
        assert!(good.contains("| started with a prompt, it works and answers | works |"), "{good}");
        let bad = page(&[played("engine", Outcome::Works, 10), played("nu", Outcome::Fails, 30)]);
        assert!(bad.contains("| does not (nu) |"), "{bad}");
        assert!(difference(compared(&good), compared(&bad)).contains("+ | `prompt`"));
    }

    #[test]
    fn figures_are_shown_but_not_compared() {
        let slow = page(&[played("engine", Outcome::Works, 900)]);
        let fast = page(&[played("engine", Outcome::Works, 10)]);
        assert!(slow.contains("| claude 1.0 | ready | 1 | 900 ms | 900 ms |"), "{slow}");
        assert_ne!(slow, fast);
        assert_eq!(compared(&slow), compared(&fast));
    }
}
