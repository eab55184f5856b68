//! Sessions on a real tmux: started whole or not at all, seen by everybody, ended without a trace.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, command, entries, until};
use lisa_engine::{
    api::{
        words::{Mode, SignalError, StateName, Status},
        *,
    },
    engine::Engine,
    error::Kind,
};
use std::{
    os::unix::fs::{PermissionsExt, symlink},
    time::Duration,
};

const SHORT: Duration = Duration::from_secs(10);

fn by_name(session: &str) -> SessionRequest {
    SessionRequest { session: session.to_owned() }
}

fn kill(engine: &Engine, session: &str) -> Vec<Action> {
    engine.kill(&KillRequest { session: session.to_owned(), force: false }).unwrap().sessions
}

fn output(engine: &Engine, session: &str) -> String {
    let request = ReadRequest {
        session: session.to_owned(),
        view: View::Output,
        max_lines: Some(2000),
        ..ReadRequest::default()
    };
    engine.read(&request).unwrap().text
}

fn status(engine: &Engine, session: &str) -> Session {
    engine.status(&by_name(session)).unwrap()
}

/// Nothing of a session that was not started: no directory, no tmux session.
fn nothing_left(lab: &Lab) {
    assert_eq!(entries(&lab.config.state_dir.join("sessions")), Vec::<String>::new());
    assert!(lab.tmux().panes(false).unwrap().is_empty());
}

#[test]
fn the_agent_is_the_panes_own_process_with_its_callers_environment() {
    let lab = Lab::with(&[("CALLERS_OWN", "yes"), ("TMUX", "/elsewhere,1,0")]);
    let engine = lab.engine();
    let mut request = command("env", &["env"]);
    request.env.insert("GIVEN".to_owned(), "s3cret; #{x} 'y'".to_owned());
    request.mode = Mode::Exec;
    engine.spawn(&request).unwrap();
    assert!(until(SHORT, || status(&engine, "env").state == StateName::Exited));
    let text = output(&engine, "env");
    for line in [
        "CALLERS_OWN=yes",
        "GIVEN=s3cret; #{x} 'y'",
        "LISA_SESSION=env",
        "LISA_AGENT=generic",
        "LISA_MODE=exec",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert!(!text.lines().any(|line| line.starts_with("TMUX")), "{text}");
    assert!(text.contains("__LISA_EXEC_DONE__:0"));
    // What may be a secret is nowhere on disk but in what the program itself printed.
    for file in entries(&lab.config.state_dir.join("sessions/env")) {
        let bytes = std::fs::read(lab.config.state_dir.join("sessions/env").join(&file)).unwrap();
        assert!(file == "output.txt" || !String::from_utf8_lossy(&bytes).contains("s3cret"), "{file}");
    }
    let session = engine.spawn(&command("direct", &["sleep", "60"])).unwrap().session;
    // It becomes the agent a moment after it has been told what to run, and stays the same process.
    let pane = || lab.pane("direct").pane;
    assert!(until(SHORT, || pane().command == "sleep"), "{:?}", pane());
    assert_eq!(Some(pane().pid), session.pid);
}

#[test]
fn arguments_of_any_bytes_reach_the_agent_unharmed() {
    let lab = Lab::new();
    let engine = lab.engine();
    let odd = [
        "-x",
        "--",
        "a b",
        "'q'",
        "\"d\"",
        "$HOME",
        "~",
        ";",
        "x;",
        "#{pane_id}",
        "%1",
        "new\nline",
        "中文🎉",
        "",
        "\\",
    ];
    let script = "for a; do printf '<%s>\\n' \"$a\"; done";
    let mut request = command("odd", &["sh", "-c", script, "sh"]);
    request.args.extend(odd.map(String::from));
    request.mode = Mode::Exec;
    engine.spawn(&request).unwrap();
    assert!(until(SHORT, || status(&engine, "odd").state == StateName::Exited));
    let want: String = odd.iter().map(|word| format!("<{word}>\n")).collect();
    assert!(output(&engine, "odd").starts_with(&want), "{}", output(&engine, "odd"));
}

#[test]
fn a_prompt_of_a_megabyte_reaches_an_exec_run_byte_for_byte() {
    let lab = Lab::new();
    let engine = lab.engine();
    let mut prompt = "-leading 'quotes' \"and\" ; #{x} $HOME 中文 🎉\n".repeat(20_000);
    prompt.truncate((1 << 20) - 3);
    while !prompt.is_char_boundary(prompt.len()) {
        prompt.pop();
    }
    let copy = lab.path().join("copy");
    let mut request = command("big", &["cp", "/dev/stdin", copy.to_str().unwrap()]);
    request.mode = Mode::Exec;
    request.prompt = Some(prompt.clone());
    engine.spawn(&request).unwrap();
    assert!(until(SHORT, || status(&engine, "big").state == StateName::Exited));
    assert_eq!(std::fs::read(&copy).unwrap(), prompt.as_bytes());
}

#[test]
fn a_printed_marker_does_not_end_an_exec_run_that_goes_on() {
    let lab = Lab::new();
    let engine = lab.engine();
    let go_on = lab.path().join("go-on");
    let script =
        format!("echo __LISA_EXEC_DONE__:0; until [ -e {} ]; do sleep 0.05; done; exit 3", go_on.display());
    let mut request = command("prints", &["sh", "-c", &script]);
    request.mode = Mode::Exec;
    engine.spawn(&request).unwrap();
    let printed = || {
        let request = ReadRequest { session: "prints".into(), view: View::Screen, ..ReadRequest::default() };
        engine.read(&request).unwrap().text.contains("__LISA_EXEC_DONE__:0")
    };
    assert!(until(SHORT, printed));
    let seen = engine.look(&SessionRequest { session: "prints".into() }).unwrap();
    assert_eq!(seen.status, Status::InProgress, "{}", seen.reason);
    std::fs::write(&go_on, "").unwrap();
    assert!(until(SHORT, || status(&engine, "prints").exit.is_some_and(|exit| exit.code == Some(3))));
}

#[test]
fn the_exit_code_of_an_exec_run_comes_from_its_process() {
    let lab = Lab::new();
    let engine = lab.engine();
    for (name, script, code, signal, want) in [
        ("good", "echo __LISA_EXEC_DONE__:9; exit 0", Some(0), None, Status::Completed),
        ("bad", "set -e; exit 7", Some(7), None, Status::Crashed),
        ("shot", "kill -9 $$", None, Some(9), Status::Crashed),
    ] {
        let mut request = command(name, &["sh", "-c", script]);
        request.mode = Mode::Exec;
        engine.spawn(&request).unwrap();
        assert!(until(SHORT, || status(&engine, name).state == StateName::Exited), "{name}");
        let session = status(&engine, name);
        let exit = session.exit.unwrap();
        assert_eq!((exit.code, exit.signal, session.status), (code, signal, want), "{name}");
    }
}

#[test]
fn a_name_that_is_a_prefix_of_another_never_hits_the_other() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("agent-10", &["sleep", "60"])).unwrap();
    assert_eq!(kill(&engine, "agent-1")[0].done, "already_gone");
    assert_eq!(engine.attach_command("agent-1").unwrap_err().kind(), Kind::SessionNotFound);
    assert!(engine.exists("agent-10").unwrap());
    assert_eq!(status(&engine, "agent-1").name, "agent-10", "a reader may be brief");
    engine.spawn(&command("agent-11", &["sleep", "60"])).unwrap();
    let error = engine.status(&by_name("agent-1")).unwrap_err();
    assert_eq!(error.kind(), Kind::AmbiguousSession);
    assert!(error.hint().contains("agent-10") && error.hint().contains("agent-11"));
}

#[test]
fn kill_ends_descendants_first_and_every_process_of_the_group() {
    let lab = Lab::new();
    let engine = lab.engine();
    // The pane's process leaves an orphan behind that ignores the hang-up.
    let pidfile = lab.path().join("orphan");
    let script = format!("(trap '' HUP; echo $BASHPID > {}; exec sleep 60) & sleep 60", pidfile.display());
    engine.spawn(&command("parent", &["bash", "-c", &script])).unwrap();
    assert!(until(SHORT, || std::fs::read_to_string(&pidfile).is_ok_and(|text| text.ends_with('\n'))));
    let mut caller = lab.caller();
    let inside =
        lab.env.iter().map(|(k, v)| (k.clone(), v.clone())).chain([("LISA_SESSION".into(), "parent".into())]);
    caller.env = lisa_engine::config::Environment::from_pairs(inside);
    let child = Engine::open(caller).unwrap().spawn(&command("child", &["sleep", "60"])).unwrap().session;
    assert_eq!((child.parent.as_deref(), child.depth), (Some("parent"), 1));
    let tree = engine.tree().unwrap();
    assert_eq!((tree.len(), tree[0].children[0].session.name.as_str()), (1, "child"));
    let done = kill(&engine, "parent");
    assert_eq!(done.iter().map(|action| action.name.as_str()).collect::<Vec<_>>(), ["child", "parent"]);
    let orphan: u32 = std::fs::read_to_string(&pidfile).unwrap().trim().parse().unwrap();
    assert_eq!(lisa_engine::process::start_time(orphan), None);
    nothing_left(&lab);
    assert_eq!(kill(&engine, "parent")[0].done, "already_gone");
}

#[test]
fn the_limits_say_which_they_are_and_how_to_raise_them() {
    let lab = Lab::with(&[("LISA_MAX_SESSIONS", "2"), ("LISA_MAX_DEPTH", "0"), ("LISA_SESSION", "outer")]);
    let engine = lab.engine();
    let error = engine.spawn(&command("deep", &["sleep", "60"])).unwrap_err();
    assert_eq!(error.kind(), Kind::DepthLimit);
    assert!(error.hint().contains("LISA_MAX_DEPTH"));
    let lab = Lab::with(&[("LISA_MAX_SESSIONS", "2")]);
    let engine = lab.engine();
    engine.spawn(&command("one", &["sleep", "60"])).unwrap();
    engine.spawn(&command("two", &["sleep", "60"])).unwrap();
    let error = engine.spawn(&command("three", &["sleep", "60"])).unwrap_err();
    assert_eq!(error.kind(), Kind::SessionLimit);
    assert!(error.message().contains("limit is 2") && error.hint().contains("LISA_MAX_SESSIONS"));
    assert!(!engine.exists("three").unwrap());
    kill(&engine, "one");
    engine.spawn(&command("three", &["sleep", "60"])).unwrap();
}

#[test]
fn bad_input_is_a_typed_error_and_leaves_nothing_behind() {
    let lab = Lab::new();
    let engine = lab.engine();
    std::fs::write(lab.path().join("file"), "").unwrap();
    let base = command("x", &["sleep", "60"]);
    let long = "x".repeat(300);
    let cases: Vec<(Kind, SpawnRequest)> = vec![
        (Kind::UnknownAgent, SpawnRequest { agent: "cluade".into(), ..base.clone() }),
        (Kind::AgentMissing, command("x", &["no-such-program"])),
        (Kind::InvalidArgument, command("x", &[])),
        (Kind::InvalidCwd, SpawnRequest { cwd: Some("nowhere".into()), ..base.clone() }),
        (Kind::InvalidCwd, SpawnRequest { cwd: Some("file".into()), ..base.clone() }),
        (Kind::InvalidArgument, SpawnRequest { size: Some(Size { columns: 3, rows: 3 }), ..base.clone() }),
        (Kind::InvalidArgument, SpawnRequest { prompt: Some("x".repeat(2 << 20)), ..base.clone() }),
        (Kind::InvalidArgument, SpawnRequest { wait_ready_s: Some(-1.0), ..base.clone() }),
        (Kind::InvalidArgument, command("x", &["sleep", "6\u{0}0"])),
        (
            Kind::InvalidArgument,
            SpawnRequest { env: [("A".to_owned(), "\0".to_owned())].into(), ..base.clone() },
        ),
    ];
    for (kind, request) in cases {
        let error = engine.spawn(&request).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!error.hint().is_empty(), "{error}");
    }
    for name in ["", "a:b", "a.b", "a/b", "..", "*", "a\u{7}b", &long] {
        let error = engine.spawn(&SpawnRequest { name: Some(name.into()), ..base.clone() }).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidName, "{error}");
    }
    let error = engine.spawn(&SpawnRequest { agent: "cluade".into(), ..base.clone() }).unwrap_err();
    assert!(error.hint().contains("did you mean claude?") && error.hint().contains("generic"), "{error}");
    nothing_left(&lab);
    engine.spawn(&base).unwrap();
    assert_eq!(engine.spawn(&base).unwrap_err().kind(), Kind::NameTaken);
    assert!(status(&engine, "x").pid.is_some(), "the first is unharmed");
}

#[test]
fn a_missing_agent_says_how_to_install_it() {
    let lab = Lab::with(&[("PATH", "/usr/bin:/bin")]);
    let request = SpawnRequest { agent: "claude".into(), ..SpawnRequest::default() };
    let error = lab.engine().spawn(&request).unwrap_err();
    assert_eq!(error.kind(), Kind::AgentMissing);
    assert!(error.hint().contains("npm install"), "{error}");
    nothing_left(&lab);
}

#[test]
fn dangerous_flags_come_in_only_by_name() {
    let lab = Lab::new();
    let bin = lab.path().join("claude");
    std::fs::write(&bin, "#!/bin/sh\nsleep 60\n").unwrap();
    std::fs::set_permissions(&bin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", lab.path().display());
    let lab = Lab::with(&[("PATH", &path)]);
    let engine = lab.engine();
    for flag in ["--dangerously-skip-permissions", "--dangerously-skip-permissions=true"] {
        let request =
            SpawnRequest { agent: "claude".into(), args: vec![flag.into()], ..SpawnRequest::default() };
        assert_eq!(engine.spawn(&request).unwrap_err().kind(), Kind::DangerousFlag);
    }
    let mut caller = lab.caller();
    caller.policy = Some(lisa_engine::config::Policy { allow_dangerous: false, ..Default::default() });
    let request = SpawnRequest { agent: "claude".into(), dangerous: true, ..SpawnRequest::default() };
    assert_eq!(Engine::open(caller).unwrap().spawn(&request).unwrap_err().kind(), Kind::NotAllowed);
}

#[test]
fn a_state_directory_that_is_not_ours_alone_is_refused() {
    let lab = Lab::new();
    let real = lab.path().join("real");
    std::fs::create_dir(&real).unwrap();
    symlink(&real, &lab.config.state_dir).unwrap();
    let error = lab.engine().spawn(&command("x", &["sleep", "60"])).unwrap_err();
    assert_eq!(error.kind(), Kind::UnsafeStateDir);
    std::fs::remove_file(&lab.config.state_dir).unwrap();
    std::fs::create_dir(&lab.config.state_dir).unwrap();
    std::fs::set_permissions(&lab.config.state_dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(lab.engine().list(&ListRequest::default()).unwrap_err().kind(), Kind::UnsafeStateDir);
    assert!(lab.tmux().panes(false).unwrap().is_empty());
}

#[test]
fn a_full_disk_is_a_clear_error_and_leaves_nothing_half_made() {
    let lab = Lab::new();
    // A file system of a few pages, filled to the brim.
    let disk = lab.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs"])
        .arg(&disk)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        test_support::skip::skip(&"a small file system cannot be mounted here");
        return;
    }
    let state = disk.join("state");
    let lab2 = Lab::with(&[("LISA_STATE_DIR", state.to_str().unwrap())]);
    let engine = lab2.engine();
    engine.list(&ListRequest::default()).unwrap();
    let _ = std::fs::write(disk.join("filler"), vec![0; 60 << 10]);
    let _ = std::fs::write(disk.join("filler2"), vec![0; 4 << 10]);
    let outcome = engine.spawn(&command("x", &["sleep", "60"]));
    let left = entries(&state.join("sessions"));
    let panes = lab2.tmux().panes(false).unwrap().len();
    drop(lab2);
    std::process::Command::new("umount").arg(&disk).status().unwrap();
    assert_eq!(outcome.unwrap_err().kind(), Kind::DiskFull);
    assert_eq!((left, panes), (Vec::new(), 0));
}

#[test]
fn a_session_that_nobody_can_be_told_of_is_taken_back() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.cursor().unwrap();
    // A journal in which nothing can be written.
    std::fs::create_dir(lab.config.state_dir.join(format!("journal/{:020}.jsonl", 1))).unwrap();
    assert!(engine.spawn(&command("x", &["sleep", "60"])).is_err());
    assert_eq!(entries(&lab.config.state_dir.join("sessions")), Vec::<String>::new());
    assert_eq!(lab.tmux().panes(false).unwrap().len(), 0);
}

#[test]
fn a_session_whose_server_died_is_told_and_not_lost() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("lost", &["sleep", "60"])).unwrap();
    let pid = lab.server_pid().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    assert!(until(SHORT, || lisa_engine::process::start_time(pid).is_none()));
    // Its process hears of it a moment later; until then Lisa can only say that it cannot look.
    assert!(until(SHORT, || status(&engine, "lost").status != Status::Degraded));
    let session = status(&engine, "lost");
    assert_eq!((session.status, session.state), (Status::Crashed, StateName::Exited), "{}", session.reason);
    let removed = engine.cleanup().unwrap().removed;
    assert!(removed.iter().any(|removed| removed.name == "lost"), "{removed:?}");
    assert!(removed.iter().any(|removed| removed.kind == "socket"), "{removed:?}");
    assert!(!engine.exists("lost").unwrap());
}

#[test]
fn a_session_of_another_server_is_not_called_crashed_and_is_not_cleaned_up() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("there", &["sleep", "600"])).unwrap();
    let mut caller = lab.caller();
    let socket = lab.path().join("another").into();
    let pairs = lab.env.iter().map(|(k, v)| (k.clone(), v.clone()));
    caller.env =
        lisa_engine::config::Environment::from_pairs(pairs.chain([("LISA_TMUX_SOCKET".into(), socket)]));
    let stranger = Engine::open(caller).unwrap();
    let seen = status(&stranger, "there");
    assert_eq!((seen.status, seen.reason.as_str()), (Status::Degraded, "pane_unreadable"));
    let why = seen.signals.unwrap()["tmux_read_error"].as_str().unwrap().to_owned();
    assert!(why.contains("LISA_TMUX_SOCKET"), "{why}");
    assert_eq!(stranger.cleanup().unwrap().removed, []);
    assert_ne!(status(&engine, "there").state, StateName::Exited, "it was left alone");
}

#[test]
fn cleanup_takes_the_dead_and_leaves_the_living() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("lives", &["sleep", "60"])).unwrap();
    engine.spawn(&command("dead", &["true", "x"])).unwrap();
    let torn = lab.config.state_dir.join("sessions/torn");
    std::fs::create_dir(&torn).unwrap();
    std::fs::set_permissions(&torn, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(torn.join("meta.json"), "{\"schema\":").unwrap();
    // What somebody left who was killed while it removed a session.
    std::fs::create_dir(lab.config.state_dir.join("sessions/.gone-1")).unwrap();
    assert!(until(SHORT, || status(&engine, "dead").state == StateName::Exited));
    let mut removed: Vec<String> = engine.cleanup().unwrap().removed.into_iter().map(|r| r.name).collect();
    removed.sort();
    assert_eq!(removed, ["1", "dead", "torn"]);
    assert_eq!(entries(&lab.config.state_dir.join("sessions")), ["lives"]);
    assert_eq!(engine.names().unwrap(), ["lives"]);
}

#[test]
fn a_read_can_ask_for_colours_and_history() {
    let lab = Lab::new();
    let engine = lab.engine();
    let script = "i=0; while [ $i -lt 200 ]; do echo row $i; i=$((i+1)); done; printf '\\033[31mred\\033[0m'; exec sleep 60";
    engine
        .spawn(&SpawnRequest {
            size: Some(Size { columns: 80, rows: 24 }),
            ..command("rows", &["sh", "-c", script])
        })
        .unwrap();
    let read = |view, ansi, max_lines| {
        let request =
            ReadRequest { session: "rows".into(), view, ansi, max_lines: Some(max_lines), since: None };
        engine.read(&request).unwrap()
    };
    assert!(until(SHORT, || read(View::Screen, false, 100).text.contains("red")));
    let screen = read(View::Screen, false, 100).text;
    assert!(!screen.contains("row 100") && screen.ends_with("red"));
    assert!(read(View::Screen, true, 100).text.contains("\u{1b}[31mred"));
    let all = read(View::Output, false, 2000);
    assert!(all.text.starts_with("row 0\n") && all.text.contains("row 199"));
    assert_eq!((all.cursor, all.more), (201, false));
}

/// Two hundred sessions come and go in four processes at once, and nothing stays.
#[test]
fn sessions_that_come_and_go_in_parallel_leave_nothing() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("bystander", &["sleep", "600"])).unwrap();
    let server = lab.server_pid().unwrap();
    let descriptors = || entries(std::path::Path::new(&format!("/proc/{server}/fd"))).len();
    let before = descriptors();
    let workers: Vec<_> = (0..4)
        .map(|worker: u32| {
            let mut process = lab.process(&["come-and-go", &worker.to_string()]);
            process.stderr(std::process::Stdio::inherit()).spawn().unwrap()
        })
        .collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    assert_eq!(engine.names().unwrap(), ["bystander"]);
    assert_eq!(lab.tmux().panes(false).unwrap().len(), 1);
    assert!(until(SHORT, || descriptors() <= before), "{} descriptors, {before} before", descriptors());
    let sleeping = entries(std::path::Path::new("/proc")).into_iter().filter(|pid| {
        std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            let mark = format!("HOME={}\0", lab.path().display());
            environ.windows(mark.len()).any(|window| window == mark.as_bytes())
                && environ.windows(17).any(|window| window == b"LISA_SESSION=w-0-")
        })
    });
    assert_eq!(sleeping.count(), 0);
}

/// Everything that Lisa keeps is this user's alone, and holds no secret that came as environment.
#[test]
fn what_is_kept_is_private_and_holds_no_secret() {
    use std::os::unix::fs::MetadataExt;
    let lab = Lab::with(&[("CALLERS_TOKEN", "sk-from-the-caller-1234567890")]);
    let engine = lab.engine();
    let secret = "sk-of-the-session-0987654321";
    let env = || [("API_KEY".to_owned(), secret.to_owned())].into();
    let mut kept = common::demo(&lab, "kept", Some("!permission Bash git status ; !say done"));
    kept.env = env();
    kept.policy = Some(PermissionPolicy { allow: vec!["Bash(git *)".into()], deny: Vec::new() });
    engine.spawn(&kept).unwrap();
    let mut run =
        command("run", &["sh", "-c", "test -n \"$API_KEY\" && test -n \"$CALLERS_TOKEN\"; sleep 3"]);
    run.mode = Mode::Exec;
    run.env = env();
    engine.spawn(&run).unwrap();
    assert!(until(SHORT, || status(&engine, "kept").state == StateName::Ready));
    assert!(until(SHORT, || status(&engine, "run").state == StateName::Exited));
    assert_eq!(status(&engine, "run").exit.unwrap().code, Some(0), "it had both");
    let mut directories = vec![lab.config.state_dir.clone()];
    let mut files = Vec::new();
    while let Some(directory) = directories.pop() {
        assert_eq!(std::fs::metadata(&directory).unwrap().mode() & 0o777, 0o700, "{}", directory.display());
        for entry in std::fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            // The agent's own files are as it makes them; the directory keeps them private.
            if !["native.json", "transcript.jsonl"].contains(&entry.file_name().to_str().unwrap()) {
                assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{}", path.display());
            }
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(secret) && !text.contains("sk-from-the-caller"), "{}", path.display());
            files.push(entry.file_name().into_string().unwrap());
        }
    }
    for name in [
        "meta.json",
        "state.json",
        "hooks.jsonl",
        "events.jsonl",
        "policy.json",
        "done",
        "heartbeat",
        "output.txt",
    ] {
        assert!(files.iter().any(|file| file == name), "{name} is not among {files:?}");
    }
}

#[test]
fn a_state_that_somebody_else_holds_is_degraded_and_not_an_error() {
    let lab = Lab::with(&[("LISA_STATE_LOCK_TIMEOUT_MS", "100")]);
    let engine = lab.engine();
    engine.spawn(&command("held", &["sleep", "60"])).unwrap();
    let before = status(&engine, "held");
    let path = lab.config.state_dir.join("sessions/held/lock");
    let held = lisa_engine::disk::Lock::take(&path, Duration::from_secs(1)).unwrap();
    let session = status(&engine, "held");
    assert_eq!((session.status, session.reason.as_str()), (Status::Degraded, "state_lock_timeout"));
    assert_eq!(session.failed_signals, [SignalError::StateLock]);
    drop(held);
    assert_eq!(status(&engine, "held").status, before.status, "nothing was written meanwhile");
}

#[test]
fn events_stay_within_their_limits_and_an_old_cursor_says_so() {
    let lab = Lab::with(&[("LISA_EVENTS_MAX_LINES", "100")]);
    let engine = lab.engine();
    for round in 0..90 {
        let name = format!("e-{round}");
        engine.spawn(&command(&name, &["sleep", "60"])).unwrap();
        engine.kill(&KillRequest { session: name, force: true }).unwrap();
    }
    let error = engine.watch(&WatchRequest { since: Some(1), ..WatchRequest::default() }).unwrap_err();
    assert_eq!(error.kind(), Kind::CursorExpired);
    assert!(error.hint().contains("cursor"), "{error}");
    let lines: usize = entries(&lab.config.state_dir.join("journal"))
        .iter()
        .filter_map(|name| std::fs::read_to_string(lab.config.state_dir.join("journal").join(name)).ok())
        .map(|text| text.lines().count())
        .sum();
    assert!(lines <= 130, "{lines} events are kept");
}
