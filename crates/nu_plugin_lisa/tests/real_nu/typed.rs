//! Values have native types, and every row has every column.

use crate::sandbox::Sandbox;
use serde_json::json;
use test_support::needs;

#[test]
fn a_list_can_be_assigned_to_a_typed_variable() {
    let sandbox = needs!(Sandbox::with_sessions());
    let names = sandbox
        .value("let x: table<name: string, status: string> = (lisa session list); $x | get name | sort");
    assert_eq!(names, json!(["docs", "fix-login"]));
}

#[test]
fn output_has_the_declared_type() {
    let sandbox = needs!(Sandbox::with_sessions());
    let types = sandbox.value(
        "let row = (lisa session list | where name == fix-login | first)
         [name status idle started prompt pid tag] | each {|column| $row | get $column | describe | split row '<' | first }",
    );
    assert_eq!(types, json!(["string", "string", "duration", "datetime", "record", "int", "nothing"]));
}

#[test]
fn every_row_has_every_column_in_the_declared_order() {
    let sandbox = needs!(Sandbox::with_sessions());
    let columns = sandbox.value("lisa session list | each { columns } | uniq");
    assert_eq!(columns.as_array().unwrap().len(), 1, "{columns}");
    let first: Vec<_> = columns[0].as_array().unwrap().iter().take(5).cloned().collect();
    assert_eq!(json!(first), json!(["name", "agent", "status", "idle", "started"]));
}

#[test]
fn the_first_five_columns_fit_a_small_terminal() {
    let sandbox = needs!(Sandbox::with_sessions());
    let drawn = |sandbox: &Sandbox| {
        sandbox.value("lisa session list | table --width 80 | ansi strip").as_str().unwrap().to_owned()
    };
    let shown =
        |drawn: &str| ["name", "agent", "status", "idle", "started"].map(|column| drawn.contains(column));
    assert_eq!(shown(&drawn(&sandbox)), [true; 5]);
    // Generated names are three times as long.
    let made = sandbox.value("lisa session spawn demo | get name").as_str().unwrap().to_owned();
    let table = drawn(&sandbox);
    assert_eq!(shown(&table), [true; 5], "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80));
    let exact = sandbox.value("lisa session list | get name");
    assert!(exact.as_array().unwrap().iter().any(|name| name == made.as_str()), "the name stays exact");
}

#[test]
fn a_list_survives_json() {
    let sandbox = needs!(Sandbox::with_sessions());
    let same = sandbox.value(
        "let list = (lisa session list); let back = ($list | to json | from json)
         [(($back | get name) == ($list | get name)) (($back | columns) == ($list | columns))
          (($back | get prompt) == ($list | get prompt))]",
    );
    assert_eq!(same, json!([true, true, true]));
}

#[test]
fn a_prompt_and_its_signals_are_nested_data() {
    let sandbox = needs!(Sandbox::with_sessions());
    let prompt =
        sandbox.value("lisa session status fix-login | first | get prompt | select kind tool command");
    assert_eq!(prompt, json!({"kind": "permission", "tool": "Bash", "command": "rm -rf build"}));
    let effects = sandbox.value("lisa session status fix-login | first | get prompt.options.effect");
    assert!(effects.as_array().unwrap().contains(&json!("allow_once")), "{effects}");
    let signals = sandbox
        .value("lisa session status fix-login | first | get signals | describe | split row '<' | first");
    assert_eq!(signals, json!("record"));
}

/// One call of every command with output, ordered so that each one finds the sessions it needs.
const CALLS: &[(&str, &str)] = &[
    ("lisa", ""),
    ("lisa agent", ""),
    ("lisa session", ""),
    ("lisa doctor", ""),
    ("lisa agent list", ""),
    ("lisa agent build-cmd", "demo --prompt hello"),
    ("lisa session name", "demo"),
    ("lisa session list", ""),
    ("lisa session tree", ""),
    ("lisa session exists", "docs"),
    ("lisa session status", "docs fix-login"),
    ("lisa session explain", "fix-login"),
    ("lisa session capture", "docs"),
    ("lisa session monitor", "fix-login docs"),
    ("lisa session monitor", "fix-login docs --stream --timeout 200ms"),
    ("lisa watch", "--since 0 | first 3"),
    ("lisa record", "docs --limit 200ms --out docs.jsonl"),
    ("lisa replay", "docs.jsonl"),
    ("lisa session spawn", "demo --name more --prompt '!say Hello.' --wait 20sec"),
    ("lisa session send", "fix-login hello"),
    ("lisa session send", "docs '!say Hello.'"),
    ("lisa session interrupt", "docs"),
    ("lisa session answer", "docs fix-login --choice deny"),
    ("lisa session resume", "docs"),
    ("lisa session kill", "docs"),
    ("lisa session kill-all", ""),
    ("lisa cleanup", ""),
];

#[test]
fn every_command_returns_what_it_declares() {
    let sandbox = needs!(Sandbox::with_sessions());
    let declared = sandbox.value(
        "scope commands | where type == plugin | each {|c| {
            name: $c.name
            types: ($c.signatures | values | flatten | where parameter_type == output | get syntax_shape | uniq)
        }}",
    );
    let mut left = Vec::new();
    for command in declared.as_array().unwrap() {
        let name = command["name"].as_str().unwrap();
        let types = command["types"].as_array().unwrap();
        assert_eq!(types.len(), 1, "{name}: one output type for all input types");
        left.push((name.to_owned(), types[0].as_str().unwrap().to_owned()));
    }
    for (name, args) in CALLS {
        let declared = left.iter().find(|(command, _)| command == name).map(|(_, ty)| ty).unwrap();
        // Assigning to a typed variable checks the value recursively against the declared type.
        let ran = sandbox.run(&format!(
            "def takes []: {declared} -> string {{ 'fits' }}
             let got: any = ({name} {args})
             $got | takes"
        ));
        assert_eq!((ran.out.as_str(), ran.ok), ("fits", true), "{name} {args}: {}", ran.err);
    }
    left.retain(|(command, _)| CALLS.iter().all(|(name, _)| name != command));
    assert_eq!(left, [("lisa session attach".to_owned(), "nothing".to_owned())], "every command is called");
}
