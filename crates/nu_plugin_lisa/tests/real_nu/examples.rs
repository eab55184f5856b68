//! Runs the examples in the help of every command and compares the results.

use crate::sandbox::Sandbox;
use test_support::needs;

/// Commands whose examples have side effects: each example gets its own sandbox.
const CHANGES: &[&str] = &[
    "lisa cleanup",
    "lisa session answer",
    "lisa session interrupt",
    "lisa session kill",
    "lisa session kill-all",
    "lisa session resume",
    "lisa session send",
    "lisa session spawn",
];

struct Found {
    command: String,
    index: usize,
    source: String,
    has_result: bool,
}

fn examples(sandbox: &Sandbox) -> Vec<Found> {
    let found = sandbox.value(
        "scope commands | where type == plugin | each {|c|
            $c.examples | enumerate | each {|e| {
                command: $c.name, index: $e.index, source: $e.item.example, has_result: ($e.item.result != null)
            }}
        } | flatten",
    );
    let text = |json: &serde_json::Value| json.as_str().unwrap().to_owned();
    found
        .as_array()
        .unwrap()
        .iter()
        .map(|example| Found {
            command: text(&example["command"]),
            index: usize::try_from(example["index"].as_u64().unwrap()).unwrap(),
            source: text(&example["source"]),
            has_result: example["has_result"].as_bool().unwrap(),
        })
        .collect()
}

/// Runs an example and compares its result with the one in the help, in a text format that keeps types.
fn check(sandbox: &Sandbox, example: &Found) -> Result<(), String> {
    let Found { command, index, source, .. } = example;
    let ran = sandbox.run(&format!(
        "let want = (scope commands | where name == '{command}' | get 0.examples | get {index} | get result)
         let got = (do {{ {source} }})
         if ($got | to nuon) == ($want | to nuon) {{ 'same' }} else {{ $'got ($got | to nuon), want ($want | to nuon)' }}"
    ));
    if ran.ok && ran.out == "same" {
        Ok(())
    } else {
        Err(format!("{command}: {source}\n{}{}", ran.out, ran.err))
    }
}

#[test]
fn examples_return_the_documented_results() {
    let shared = needs!(Sandbox::with_sessions());
    shared.value("lisa record docs --limit 300ms --out docs.jsonl | get name");
    let all = examples(&shared);
    assert!(all.len() > 26, "every command has an example");
    let failed: Vec<String> = all
        .iter()
        .filter(|example| example.has_result)
        .filter_map(|example| {
            let own = CHANGES.contains(&example.command.as_str()).then(|| Sandbox::with_sessions().unwrap());
            check(own.as_ref().unwrap_or(&shared), example).err()
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} examples don't match their results:\n\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// An example that needs a terminal: `terminal.rs` runs it.
pub(crate) const ATTACH: &str = "lisa session attach fix-login";

#[test]
fn examples_without_a_result_run() {
    let sandbox = needs!(Sandbox::with_sessions());
    let all = examples(&sandbox);
    let left: Vec<&Found> = all.iter().filter(|example| !example.has_result).collect();
    assert!(left.iter().any(|example| example.source == ATTACH));
    for example in left.into_iter().filter(|example| example.source != ATTACH) {
        let ran = sandbox.run(&example.source);
        assert!(ran.ok, "{}: {}\n{}", example.command, example.source, ran.err);
    }
}
