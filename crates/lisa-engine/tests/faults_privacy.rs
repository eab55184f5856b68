//! Command lines can be read by every user of a machine: which prompts are in one, and who says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, demo, driving::*, until};
use lisa_engine::api::words::Mode;

const SECRET: &str = "wintermute-4711";
/// Of the other test, which may run at the same time.
const OPEN_SECRET: &str = "neuromancer-4711";

/// The processes that have the text in their command line.
fn readers(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(text)).collect()
}

/// What `doctor` says about an agent.
fn said_of(lab: &Lab, agent: &str) -> String {
    let name = format!("agent {agent}");
    let found = lab.engine().doctor().checks.into_iter().find(|check| check.name == name);
    found.unwrap().detail
}

#[test]
fn a_prompt_that_an_agent_reads_or_is_pasted_into_it_is_in_no_command_line() {
    let lab = Lab::new();
    let mut reads = demo(&lab, "reads", Some(&format!("!think 400ms ; !say {SECRET}")));
    reads.mode = Mode::Exec;
    reads.wait_ready_s = None;
    // Too long for an argument.
    let long = format!("{SECRET} {}", "and so on ".repeat(20_000));
    let starts = std::thread::spawn({
        let (engine, pasted) = (lab.engine(), demo(&lab, "pasted", Some(&long)));
        move || [reads, pasted].map(|request| engine.spawn(&request).unwrap())
    });
    let mut looks = 0;
    let both_have_it = until(SHORT, || {
        assert_eq!(readers(SECRET), Vec::<String>::new());
        looks += 1;
        ["reads", "pasted"].iter().all(|name| prompts(&lab, name).iter().any(|text| text.contains(SECRET)))
    });
    assert!(both_have_it && looks > 10, "{looks} looks");
    starts.join().unwrap();
}

#[test]
fn doctor_names_the_agents_whose_first_prompt_is_in_a_command_line() {
    let lab = Lab::new();
    lab.engine().spawn(&demo(&lab, "open", Some(&format!("!say {OPEN_SECRET}")))).unwrap();
    // A process that the agent is just starting has the agent's command line for a moment.
    let one = until(SHORT, || readers(OPEN_SECRET).len() == 1);
    assert!(one, "the agent, and no helper of Lisa's: {:?}", readers(OPEN_SECRET));
    let said = said_of(&lab, "demo");
    assert!(said.contains("every user of this machine can read a prompt given at the start"), "{said}");
    for agent in lab.engine().agents().unwrap() {
        assert_eq!(agent.prompt_in_arguments, agent.id != "generic", "{}", agent.id);
    }
}

#[test]
fn a_trace_for_a_bug_report_tells_what_a_look_found_and_took_and_no_secret() {
    let lab = Lab::with(&[("LISA_MCP_TOKEN", SECRET), ("LISA_MAX_DEPTH", "7")]);
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "traced", None)).unwrap();
    let trace = engine.trace();
    for part in [
        "LISA_MAX_DEPTH=7\n",
        "tmux: ok",
        "traced (demo, interactive): ready",
        "exchange us=",
        "judged tmux_us=",
    ] {
        assert!(trace.contains(part), "no `{part}`:\n{trace}");
    }
    assert!(!trace.contains(SECRET), "{trace}");
    let home = lab.env.text("HOME").unwrap();
    assert!(!trace.contains(home), "{home}:\n{trace}");
}
