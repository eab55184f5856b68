//! Runs the binary without a terminal.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn run(args: &[&str], stdin: &str, cwd: &Path) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lisa-demo-agent"))
        .args(args)
        .current_dir(cwd)
        .env("DEMO_TEST_VARIABLE", "value")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn exec(args: &[&str]) -> (i32, String, String) {
    let output = run(args, "", &std::env::temp_dir());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn prints_the_answer_of_arguments_or_standard_input() {
    assert_eq!(exec(&["--exec", "hello", "there"]), (0, "You said: hello there\n".into(), String::new()));
    let output = run(&["-p"], "!say from\\nstdin", &std::env::temp_dir());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "from\nstdin\n");
}

#[test]
fn exit_codes_say_how_it_went() {
    let (code, out, err) = exec(&["-p", "!say a ; !fail overloaded too busy"]);
    assert_eq!((code, out.as_str(), err.as_str()), (1, "a\n", "API error: overloaded: too busy\n"));
    assert_eq!(exec(&["-p", "!exit 3"]).0, 3);
    assert_eq!(exec(&["-p", "!permission Bash rm ; !say went on"]), (0, "went on\n".into(), String::new()));
    assert_eq!(exec(&["-p"]).0, 1);
    assert_eq!(exec(&["--no-such-flag"]).0, 2);
    assert_eq!(exec(&["hello"]).2, "lisa-demo-agent: not on a terminal (use --exec to run without one)\n");
}

#[cfg(unix)]
#[test]
fn a_crash_is_a_signal() {
    use std::os::unix::process::ExitStatusExt;
    let output = run(&["-p", "!crash"], "", &std::env::temp_dir());
    assert_eq!(output.status.signal(), Some(6));
}

#[test]
fn says_what_it_was_started_with() {
    let directory = tempfile::tempdir().unwrap();
    let prompt = "!env DEMO_TEST_VARIABLE ; !cwd ; !argv ; !hash";
    let output = run(&["-p", prompt], "", directory.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all: Vec<&str> = text.lines().collect();
    assert_eq!(all[0], "DEMO_TEST_VARIABLE=value");
    assert_eq!(Path::new(all[1]), directory.path().canonicalize().unwrap());
    let argv: Vec<String> = serde_json::from_str(all[2]).unwrap();
    assert_eq!(argv[1..], ["-p", prompt]);
    assert!(all[3].starts_with("46 bytes, fnv1a64 "), "{}", all[3]);
}

#[test]
fn leaves_log_transcript_and_hook_events() {
    let directory = tempfile::tempdir().unwrap();
    let hooks = directory.path().join("hooks.jsonl");
    let hook = format!("cat >> {}", hooks.display());
    let args = [
        "-p",
        "--session-id",
        "abc",
        "--log",
        "log.jsonl",
        "--transcript",
        "t/{session}.jsonl",
        "--hook-command",
        &hook,
        "!tool Bash \"cargo test\" 10ms ok ; !say fine",
    ];
    assert!(run(&args, "", directory.path()).status.success());
    let events: Vec<Value> = lines(&hooks);
    let names: Vec<_> = events.iter().map(|e| e["hook_event_name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]
    );
    assert_eq!(events[2]["tool_input"]["command"], "cargo test");
    assert_eq!(events[4]["last_assistant_message"], "fine");
    assert!(events.iter().all(|e| e["session_id"] == "abc"));
    assert!(events.windows(2).all(|pair| pair[0]["seq"].as_u64() < pair[1]["seq"].as_u64()));
    let transcript = lines(&directory.path().join("t/abc.jsonl"));
    assert_eq!(transcript.last().unwrap()["outcome"], "end_turn");
    assert_eq!(lines(&directory.path().join("log.jsonl"))[0]["bytes"], 43);
}

#[test]
fn really_runs_commands() {
    let directory = tempfile::tempdir().unwrap();
    assert!(run(&["-p", "!run echo hi > made ; !say ok"], "", directory.path()).status.success());
    assert_eq!(std::fs::read_to_string(directory.path().join("made")).unwrap(), "hi\n");
}

#[test]
fn a_command_that_fails_is_recorded_as_failed() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["-p", "--transcript", "t.jsonl", "!run exit 7 ; !say went on"];
    assert!(run(&args, "", directory.path()).status.success());
    let lines = lines(&directory.path().join("t.jsonl"));
    let end = lines.iter().find(|line| line["phase"] == "end").unwrap();
    assert_eq!((end["outcome"].as_str(), end["output"].as_str()), (Some("failed"), Some("(exit code 7)")));
}

#[test]
fn a_broken_script_is_reported_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("s.txt"), "!say a\n!sya b\n").unwrap();
    let output = run(&["-p", "--script", "s.txt", "go"], "", directory.path());
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(error, "lisa-demo-agent: s.txt: line 2: unknown step !sya\n");
}

#[test]
fn help_explains_the_steps() {
    let (code, out, _) = exec(&["--help"]);
    assert_eq!(code, 0);
    for word in ["!permission", "!hang", "--hook-decides", "--stream-cps"] {
        assert!(out.contains(word), "{word}");
    }
}
