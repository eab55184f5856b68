//! Sessions in pipelines, and errors.

use crate::sandbox::Sandbox;
use serde_json::json;
use test_support::{needs, programs::demo_agent};

#[test]
fn names_are_accepted_in_every_form() {
    let sandbox = needs!(Sandbox::with_sessions());
    let both = json!(["docs", "fix-login"]);
    for script in [
        "lisa session status docs fix-login",
        "lisa session status ...[docs fix-login]",
        "[docs fix-login] | lisa session status",
        "lisa session list | lisa session status",
        "lisa session list | select name | lisa session status",
        "lisa session list | each {|row| lisa session status $row.name } | flatten",
    ] {
        assert_eq!(sandbox.value(&format!("{script} | get name | sort")), both, "{script}");
    }
    for script in ["'docs' | lisa session status", "{name: docs} | lisa session status"] {
        assert_eq!(sandbox.value(&format!("{script} | get name")), json!(["docs"]), "{script}");
    }
}

#[test]
fn commands_work_inside_each_with_any_row() {
    let sandbox = needs!(Sandbox::with_sessions());
    let named = sandbox.value("1..2 | each {|i| lisa session spawn demo --name $'worker-($i)' | get name }");
    assert_eq!(named, json!(["worker-1", "worker-2"]));
    let there = sandbox.value("[{file: a} {file: b}] | each { lisa session exists docs }");
    assert_eq!(there, json!([true, true]));
    assert_eq!(sandbox.code("5.5 | lisa session kill"), "lisa::invalid_argument");
}

#[test]
fn waiting_sessions_are_listed_and_answered() {
    let sandbox = needs!(Sandbox::with_sessions());
    let answered = sandbox.value(
        "lisa session list | where status == waiting_input and prompt != null and idle >= 0sec
         | lisa session answer --choice allow_once | select name effect error",
    );
    assert_eq!(answered, json!([{"name": "fix-login", "effect": "allow_once", "error": null}]));
    sandbox.value("lisa session monitor fix-login --until ready --timeout 30sec | get name");
    assert_eq!(sandbox.value("lisa session list | where prompt != null"), json!([]));
}

#[test]
fn an_answer_applies_only_to_the_prompt_that_was_read() {
    let sandbox = needs!(Sandbox::with_sessions());
    let code = sandbox.code("lisa session answer fix-login --choice deny --prompt-id another");
    assert_eq!(code, "lisa::prompt_changed");
    let code = sandbox.code(
        "lisa session list | where prompt != null | update prompt.id another | lisa session answer --choice deny",
    );
    assert_eq!(code, "lisa::prompt_changed", "a row contains its prompt id");
    assert_eq!(sandbox.value("lisa session status fix-login | get 0.state"), json!("awaiting_permission"));
}

#[test]
fn one_failed_answer_is_a_row_and_all_failed_answers_are_an_error() {
    let sandbox = needs!(Sandbox::with_sessions());
    assert_eq!(sandbox.code("lisa session answer docs --choice deny"), "lisa::no_prompt");
    let rows = sandbox.value(
        "lisa session answer docs fix-login --choice deny | each {|row| [$row.name $row.effect $row.detail $row.error?.code?] }",
    );
    let refused = json!(["docs", null, "`docs` has no open prompt; it is ready", "lisa::no_prompt"]);
    assert_eq!(rows, json!([refused, ["fix-login", "deny", "Deny", null]]));
}

#[test]
fn unknown_names_fail_before_anything_is_done() {
    let sandbox = needs!(Sandbox::with_sessions());
    let error = sandbox.value(
        "try { lisa session kill docs fix-logn } catch {|e| {code: $e.details.code, help: $e.details.help} }",
    );
    assert_eq!(error["code"], "lisa::session_not_found");
    assert!(error["help"].as_str().is_some_and(|help| help.contains("fix-login")), "{error}");
    assert_eq!(sandbox.value("lisa session list | length"), json!(2));
}

#[test]
fn actions_run_even_if_the_result_is_not_read() {
    let sandbox = needs!(Sandbox::with_sessions());
    sandbox.value("lisa session list | lisa session kill | first | get name");
    assert_eq!(sandbox.value("lisa session list | length"), json!(0));
}

#[test]
fn sessions_group_by_project() {
    let sandbox = needs!(Sandbox::with_sessions());
    let groups =
        sandbox.value("lisa session list | group-by project --to-table | each {|g| $g.items | length }");
    assert_eq!(groups, json!([2]));
}

#[test]
fn error_codes_are_stable() {
    let sandbox = needs!(Sandbox::with_sessions());
    for (script, code) in [
        ("lisa session status nobody", "lisa::session_not_found"),
        ("lisa session kill", "lisa::invalid_argument"),
        ("lisa session spawn nobody", "lisa::unknown_agent"),
        ("lisa session spawn demo --name docs", "lisa::name_taken"),
        ("lisa session answer fix-login --choice 9", "lisa::unknown_choice"),
        ("lisa session monitor docs --until crashed --timeout 50ms", "lisa::timeout"),
        ("lisa session list --status nothing", "lisa::invalid_argument"),
    ] {
        assert_eq!(sandbox.code(script), code, "{script}");
    }
}

#[test]
fn a_receipt_can_be_piped_into_monitor() {
    let sandbox = needs!(Sandbox::with_sessions());
    let done = sandbox.value(
        "lisa session send docs \"!think 1s\\n!say Again.\" | lisa session monitor --until turn --timeout 30sec | get state",
    );
    assert_eq!(done, json!(["ready"]));
}

#[test]
fn crashed_sessions_are_resumed() {
    let sandbox = needs!(Sandbox::with_sessions());
    sandbox.value(
        "lisa session send docs '!exit 3' | lisa session monitor --until exited --timeout 30sec | get name",
    );
    let ended = sandbox.value("lisa session list --status crashed | select name state");
    assert_eq!(ended, json!([{"name": "docs", "state": "exited"}]));
    let exit = sandbox.value("lisa session status docs | get 0.exit | select code signal kind");
    assert_eq!(exit, json!({"code": 3, "signal": null, "kind": "crash"}));
    let resumed = sandbox.value(
        "lisa session list --status crashed | lisa session resume --prompt '!say Back again.' --wait 20sec | select name was done",
    );
    assert_eq!(resumed, json!([{"name": "docs", "was": "crashed", "done": "resumed"}]));
    sandbox.value("lisa session monitor docs --until ready --timeout 30sec | get name");
    assert_eq!(sandbox.value("lisa session capture docs --view last_message"), json!("Back again."));
}

#[test]
fn all_sessions_of_a_tmux_server_that_died_are_resumed_by_one_pipeline() {
    let sandbox = needs!(Sandbox::with_sessions());
    sandbox.value("lisa session answer fix-login --choice allow_once | get 0.effect");
    sandbox.value("lisa session monitor fix-login docs --until ready --all --timeout 30sec | get name");
    sandbox.kill_server();
    let lost = sandbox.value("lisa session list | where reason == server_died | get name | sort");
    assert_eq!(lost, json!(["docs", "fix-login"]));
    let resumed = sandbox.value(
        "lisa session list | where reason == server_died | lisa session resume --wait 20sec | select name done | sort-by name",
    );
    assert_eq!(
        resumed,
        json!([{"name": "docs", "done": "resumed"}, {"name": "fix-login", "done": "resumed"}])
    );
    assert_eq!(sandbox.value("lisa session list --status crashed"), json!([]));
}

#[test]
fn a_prompt_is_piped_in() {
    demo_agent();
    let sandbox = needs!(Sandbox::new());
    let said = sandbox.value(
        "'!say Hello from the pipe.' | lisa session spawn demo --name piped | ignore
         lisa session monitor piped --until ready --timeout 30sec | ignore
         lisa session capture piped | str contains 'Hello from the pipe.'",
    );
    assert_eq!(said, json!(true));
}

#[test]
fn settings_are_defaults_that_flags_override() {
    let sandbox = needs!(Sandbox::with_sessions());
    let settings = "$env.config.plugins.lisa = {agent: demo, timeout: 50ms}";
    let made = sandbox.value(&format!("{settings}; lisa session name"));
    assert!(made.as_str().is_some_and(|name| name.contains("-demo-")), "{made}");
    let code = sandbox.code(&format!("{settings}; lisa session monitor docs --until crashed"));
    assert_eq!(code, "lisa::timeout");
    let made = sandbox.value(&format!("{settings}; lisa session name generic"));
    assert!(made.as_str().is_some_and(|name| name.contains("-generic-")), "{made}");
}

#[test]
fn a_session_runs_in_the_callers_directory() {
    demo_agent();
    let sandbox = needs!(Sandbox::new());
    let cwd = sandbox.value("mkdir sub; cd sub; lisa session spawn demo --name here | get cwd");
    let want = sandbox.work().canonicalize().unwrap().join("sub");
    assert_eq!(cwd, json!(want.to_str().unwrap()));
}

#[test]
fn first_ends_the_journal_stream() {
    let sandbox = needs!(Sandbox::with_sessions());
    let first = sandbox.value("lisa watch --since 0 | first 2 | get session");
    assert_eq!(first.as_array().unwrap().len(), 2);
    let kinds = sandbox.value("lisa watch fix-login --since 0 --event prompt | first | get event");
    assert_eq!(kinds, json!("prompt"));
}

#[test]
fn a_stream_yields_rows_as_they_arrive() {
    let sandbox = needs!(Sandbox::with_sessions());
    let rows = sandbox.value(
        "lisa session monitor fix-login --until ready --stream --timeout 20sec
         | prepend (job spawn { sleep 300ms; lisa session answer fix-login --choice allow_once } | ignore)
         | first | get state",
    );
    assert_eq!(rows, json!("ready"));
}

#[test]
fn the_autoload_directory_adds_only_the_three_commands() {
    let sandbox = needs!(Sandbox::with_sessions());
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/lisa.nu");
    let commands = |before: &str| {
        let found = sandbox.value(&format!("{before}scope commands | get name | sort"));
        found.as_array().unwrap().clone()
    };
    let (before, mut after) = (commands(""), commands(&format!("source {module}; ")));
    after.retain(|name| !before.contains(name));
    assert_eq!(json!(after), json!(["lisa dashboard", "lisa prompt-segment", "lisa waiting"]));
}

#[test]
fn the_module_counts_and_lists_waiting_sessions() {
    let sandbox = needs!(Sandbox::with_sessions());
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/lisa.nu");
    let segment = sandbox.value(&format!("use {module} *; lisa prompt-segment | ansi strip"));
    assert_eq!(segment, json!("1 waiting, 1 done"));
    let waiting = sandbox.value(&format!("use {module} *; lisa waiting | select name asks options"));
    let options = "1 Allow once, 2 Always allow Bash(rm:*), 3 Deny";
    assert_eq!(waiting, json!([{"name": "fix-login", "asks": "Bash: rm -rf build", "options": options}]));
    let drawn = sandbox.value(&format!("use {module} *; lisa dashboard --once | ansi strip"));
    assert!(drawn.as_str().is_some_and(|table| table.contains("fix-login")), "{drawn}");
}
