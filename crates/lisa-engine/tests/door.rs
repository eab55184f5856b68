//! The door to tmux, against a real tmux: what it guards against happens here for real.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, until};
use lisa_engine::{
    error::Kind,
    process,
    tmux::{Cmd, Guard, Shown, Tmux, Typed},
};
use std::{
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

const SHORT: Duration = Duration::from_secs(5);

fn rss_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Both ways to talk to a server: over its socket, and by a `tmux` process for each call.
fn both(lab: &Lab) -> [Tmux; 2] {
    [lab.tmux(), lab.tmux().by_forks()]
}

#[test]
fn no_server_is_an_empty_list_and_not_an_error() {
    let lab = Lab::new();
    for tmux in both(&lab) {
        assert!(tmux.panes(true).unwrap().is_empty());
        assert!(tmux.call(&[Cmd::new("kill-session").args(["-t", "=x"])]).unwrap().is_none());
    }
    assert!(!lab.socket().exists());
}

#[test]
fn both_ways_see_the_same() {
    let lab = Lab::new();
    let pane = lab.run(
        "one",
        &["sh", "-c", "printf 'h\\303\\251llo \\033[31mred\\033[0m \\\\033[1m \\\\$HOME $HOME ${x} $(y) $_ $1 \\\\\\033]2;a $HOME\\007'; exec sleep 60"],
    );
    let [socket, fork] = both(&lab);
    assert!(until(SHORT, || fork.screens(&[&pane], false).unwrap()[0]
        .as_ref()
        .unwrap()
        .starts_with("héllo".as_bytes())));
    assert_eq!(fork.panes(true).unwrap(), socket.panes(true).unwrap());
    let looked = |tmux: &Tmux| tmux.pane_snapshots(&[&pane], Shown::Screen).unwrap().remove(0).row.unwrap();
    let listed = fork.panes(!process::TELLS_FOREGROUND).unwrap().remove(0);
    assert_eq!((looked(&fork), looked(&socket)), (looked(&socket), listed));
    for ansi in [false, true] {
        assert_eq!(fork.screens(&[&pane], ansi).unwrap(), socket.screens(&[&pane], ansi).unwrap());
    }
}

#[test]
fn a_pane_and_what_it_shows_come_in_one_exchange_and_the_plain_screen_with_them() {
    let lab = Lab::new();
    let print = "printf 'h\\303\\251 \\033[1;31mred\\033[44m   \\033[0m\\n\\033(0lqk\\033(B \\343\\201\\202\\n\\033[42m  '; exec sleep 60";
    let pane = lab.run("one", &["sh", "-c", print]);
    let [socket, fork] = both(&lab);
    let screen =
        |tmux: &Tmux| String::from_utf8(tmux.screens(&[&pane], false).unwrap().remove(0).unwrap()).unwrap();
    assert!(until(SHORT, || screen(&fork).contains('あ')), "{}", screen(&fork));
    for tmux in [&fork, &socket] {
        let looks = tmux.pane_snapshots(&["%77", &pane, "%78"], Shown::Screen).unwrap();
        let look = &looks[1];
        let listed = tmux.panes(!process::TELLS_FOREGROUND).unwrap().remove(0);
        assert_eq!(look.row.clone().unwrap(), listed);
        let shown = String::from_utf8(look.screen.clone().unwrap()).unwrap();
        assert!(shown.contains("\u{1b}[1m\u{1b}[31mred"), "{shown:?}");
        assert_eq!(lisa_engine::observe::plain(&shown), screen(tmux));
        // Panes that are not there are no reason not to name the one that is.
        for gone in [&looks[0], &looks[2]] {
            assert!(gone.row.is_none() && gone.screen.is_err());
        }
    }
}

#[test]
fn the_program_in_front_is_the_same_for_tmux_and_for_the_processes_themselves() {
    if !process::TELLS_FOREGROUND {
        // Only tmux tells it here: there is nothing to compare.
        return;
    }
    let lab = Lab::new();
    let pane = lab.run("one", &["sh", "-ic", "sleep 60; true"]);
    let command = || lab.tmux().panes(true).unwrap().remove(0).pane.command;
    assert!(until(SHORT, || command() == "sleep"), "{}", command());
    let shell = lab.tmux().pane(&pane).unwrap().unwrap().pane.pid;
    let tree = process::tree(shell).unwrap();
    assert_eq!(tree.in_front(), Some("sleep"), "{tree:?}");
}

#[test]
fn one_command_that_fails_does_not_take_the_others_with_it() {
    let lab = Lab::new();
    let pane = lab.run("one", &["sleep", "60"]);
    for tmux in both(&lab) {
        let replies = tmux.screens(&["%77", &pane, "%78"], false).unwrap();
        assert!(replies[0].is_err() && replies[1].is_ok() && replies[2].is_err(), "{replies:?}");
    }
}

#[test]
fn a_name_that_is_a_prefix_of_another_never_hits_the_other() {
    let lab = Lab::new();
    lab.run("agent-10", &["sleep", "60"]);
    for tmux in both(&lab) {
        let kill = Cmd::new("kill-session").args(["-t", "=agent-1"]);
        assert!(tmux.call(&[kill]).unwrap().unwrap()[0].is_err());
        assert_eq!(tmux.panes(false).unwrap().len(), 1);
    }
}

#[test]
fn panes_that_are_gone_do_not_hide_those_that_are_there() {
    let lab = Lab::new();
    let pane = lab.run("one", &["sh", "-c", "echo here; sleep 60"]);
    assert!(until(SHORT, || String::from_utf8_lossy(
        lab.tmux().screens(&[&pane], false).unwrap()[0].as_ref().unwrap()
    )
    .contains("here")));
    for tmux in both(&lab) {
        let looks = tmux.pane_snapshots(&["%77", &pane, "%78"], Shown::Screen).unwrap();
        let there: Vec<bool> = looks.iter().map(|look| look.row.is_some()).collect();
        assert_eq!(there, [false, true, false]);
        assert_eq!(looks[1].screen.as_deref(), Ok(&b"here"[..]));
        let gone = tmux.pane_snapshots(&["%77", "%78"], Shown::Screen).unwrap();
        assert!(gone.iter().all(|look| look.row.is_none() && look.screen.is_err()), "{gone:?}");
    }
    assert_eq!(lab.tmux().panes(false).unwrap().len(), 1, "no command at all would have made a session");
}

#[test]
fn a_list_that_prints_once_is_answered_like_one_that_prints_often() {
    let lab = Lab::new();
    lab.run("one", &["sleep", "60"]);
    let say = |word: &'static str| Cmd::new("display-message").args(["-p", word]);
    for tmux in both(&lab) {
        assert_eq!(tmux.call_atomic(&[say("x")]).unwrap().unwrap().unwrap(), b"x\n");
        assert_eq!(tmux.call_atomic(&[say("x"), say("y")]).unwrap().unwrap().unwrap(), b"x\ny\n");
        let wrong = Cmd::new("kill-session").args(["-t", "=nobody"]);
        assert!(tmux.call_atomic(&[say("x"), wrong]).unwrap().unwrap().is_err());
    }
}

#[test]
fn words_reach_tmux_byte_for_byte_in_both_ways() {
    let lab = Lab::new();
    lab.run("one", &["sleep", "60"]);
    let text = "a 'b' \"c\" $HOME ~ #{pid} ; \\ %1 {x} \u{e9}\u{4e2d} ends;";
    for tmux in both(&lab) {
        let set = Cmd::new("set-environment").args(["-g", "WORDS"]).arg(text);
        let show = Cmd::new("show-environment").args(["-g", "WORDS"]);
        let replies = tmux.call(&[set, show]).unwrap().unwrap();
        assert_eq!(String::from_utf8(replies[1].clone().unwrap()).unwrap(), format!("WORDS={text}\n"));
    }
}

#[test]
fn many_callers_at_once_each_get_their_own_answer() {
    let lab = Lab::new();
    lab.run("one", &["sleep", "60"]);
    let tmux = lab.tmux();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let tmux = &tmux;
            scope.spawn(move || {
                for round in 0..50 {
                    let word = format!("answer-{worker}-{round}");
                    let replies =
                        tmux.call(&[Cmd::new("display-message").arg("-p").arg(&word)]).unwrap().unwrap();
                    assert_eq!(replies[0].as_ref().unwrap(), format!("{word}\n").as_bytes());
                }
            });
        }
    });
}

#[test]
fn a_server_that_died_and_came_back_is_talked_to_as_before() {
    let lab = Lab::new();
    lab.run("one", &["sleep", "60"]);
    let tmux = lab.tmux();
    assert_eq!(tmux.panes(false).unwrap().len(), 1);
    let pid = lab.server_pid().unwrap();
    lab.tmux().call(&[Cmd::new("kill-server")]).unwrap();
    assert!(until(SHORT, || process::start_time(pid).is_none()));
    assert!(tmux.panes(false).unwrap().is_empty());
    lab.run("two", &["sleep", "60"]);
    assert_eq!(tmux.panes(false).unwrap()[0].session, "two");
}

#[test]
fn a_server_that_does_not_answer_is_a_clear_error() {
    let lab = Lab::new();
    lab.run("one", &["sleep", "60"]);
    let pid = lab.server_pid().unwrap();
    for mut tmux in both(&lab) {
        tmux.panes(false).unwrap();
        tmux.set_timeout(Duration::from_millis(300));
        signal(pid, rustix::process::Signal::STOP);
        let began = Instant::now();
        let error = tmux.panes(false).unwrap_err();
        signal(pid, rustix::process::Signal::CONT);
        assert_eq!(error.kind(), Kind::TmuxTimeout);
        assert!(began.elapsed() < Duration::from_secs(3));
        tmux.set_timeout(SHORT);
        assert_eq!(tmux.panes(false).unwrap().len(), 1, "it goes on when the server does");
    }
}

/// A socket holds a few hundred KiB; what is asked about hundreds of sessions may be more.
#[test]
fn a_long_request_to_a_server_that_does_not_read_ends_in_time() {
    let lab = Lab::new();
    lab.run("one", &["sleep", "60"]);
    let pid = lab.server_pid().unwrap();
    let mut tmux = lab.tmux();
    tmux.panes(false).unwrap();
    tmux.set_timeout(Duration::from_millis(300));
    let long = vec![Cmd::new("display-message").arg("-p").arg("x".repeat(400)); 1000];
    signal(pid, rustix::process::Signal::STOP);
    let (done, outcome) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let answer = tmux.call(&long).map_err(|error| error.kind());
        done.send((answer, tmux, long)).unwrap();
    });
    let answered = outcome.recv_timeout(SHORT);
    signal(pid, rustix::process::Signal::CONT);
    let (answer, mut tmux, long) = answered.unwrap();
    assert_eq!(answer.unwrap_err(), Kind::TmuxTimeout);
    tmux.set_timeout(SHORT);
    assert_eq!(tmux.call(&long).unwrap().unwrap().len(), 1000, "it goes on when the server does");
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

#[test]
fn a_missing_tmux_says_how_to_install_it() {
    let lab = Lab::with(&[("PATH", "/nonexistent")]);
    let errors =
        [lab.tmux().call_starting(&[]).unwrap_err(), lab.tmux().by_forks().panes(false).unwrap_err()];
    for error in errors {
        assert_eq!(error.kind(), Kind::TmuxMissing);
        assert!(error.hint().contains("apt-get install tmux"));
    }
}

#[test]
fn an_old_tmux_is_refused_with_both_versions() {
    let lab = Lab::new();
    let fake = lab.path().join("bin");
    std::fs::create_dir(&fake).unwrap();
    std::fs::write(fake.join("tmux"), "#!/bin/sh\necho tmux 2.9a\n").unwrap();
    std::fs::set_permissions(fake.join("tmux"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let lab = Lab::with(&[("PATH", fake.to_str().unwrap())]);
    let error = lab.tmux().call_starting(&[]).unwrap_err();
    assert_eq!(error.kind(), Kind::TmuxTooOld);
    assert!(error.message().contains("2.9a") && error.message().contains("3.2"), "{error}");
}

/// The first of the ways in which tmux itself kills or freezes: captures printed over control mode leak up to 3.5a.
#[test]
fn captures_do_not_leak_in_the_server() {
    let lab = Lab::new();
    let fill = "i=0; while [ $i -lt 24 ]; do printf '%079d\\n' $i; i=$((i+1)); done; exec sleep 60";
    let pane = lab.run("one", &["sh", "-c", fill]);
    let tmux = lab.tmux();
    let panes = vec![pane.as_str(); 100];
    tmux.screens(&panes, false).unwrap();
    let server = lab.server_pid().unwrap();
    let before = rss_kb(server);
    for _ in 0..30 {
        tmux.screens(&panes, true).unwrap();
    }
    let grown = rss_kb(server).saturating_sub(before);
    // 3,000 captures of 2 KB and more: with the leak the server grows by 6 MB at the very least.
    assert!(grown < 3_000, "the server grew by {grown} KB");
}

/// The second: a paste into a dead pane kills the server up to 3.3a.
#[test]
fn a_paste_into_a_dying_pane_leaves_the_server_alive() {
    let lab = Lab::new();
    lab.run("bystander", &["sleep", "60"]);
    let server = lab.server_pid().unwrap();
    for round in 0..60 {
        let pane = lab.run(&format!("dying-{round}"), &["sleep", "0.02"]);
        let tmux = lab.tmux();
        for _ in 0..4 {
            let _ = tmux.paste(&pane, b"hello", &Guard::alive());
        }
    }
    assert_eq!(lab.server_pid(), Some(server));
    let dead = lab.tmux().panes(false).unwrap().into_iter().find(|row| row.pane.dead).unwrap();
    assert_eq!(lab.tmux().paste(&dead.pane_id, b"hello", &Guard::alive()).unwrap(), Typed::Moved);
}

#[test]
fn what_was_typed_and_not_read_is_known() {
    let lab = Lab::new();
    for (name, program, read) in [("reads", "cat", true), ("does-not", "sleep 60", false)] {
        let pane = lab.run(name, &["sh", "-c", &format!("echo up; exec {program}")]);
        let screen = || lab.tmux().screens(&[&pane], false).unwrap().remove(0).unwrap();
        assert!(until(SHORT, || screen().starts_with(b"up")));
        let ask = Cmd::new("display-message").args(["-p", "-t", &pane, "#{pane_tty}"]);
        let printed = lab.tmux().call(&[ask]).unwrap().unwrap().remove(0).unwrap();
        let terminal = String::from_utf8(printed).unwrap();
        let unread = || lisa_engine::process::unread(std::path::Path::new(terminal.trim())).unwrap();
        assert_eq!(unread(), 0);
        lab.tmux().press(&pane, &["a", "Enter"], &Guard::alive()).unwrap();
        assert!(until(SHORT, || (unread() == 0) == read), "{name}: {}", unread());
        assert_eq!(unread() == 0, read, "{name}");
    }
}

/// What is typed stands in one command list with a condition on what the pane shows.
#[test]
fn nothing_is_typed_into_a_pane_that_shows_something_else_by_now() {
    let lab = Lab::new();
    let script = "printf 'Do you want 1 of (these)?\\n❯ 1. Yes, it'\\''s #{x}, 50%% ok}\\n  2. Nein, 中文\\n'; exec cat";
    let pane = lab.run("shown", &["sh", "-c", script]);
    for tmux in both(&lab) {
        let look = || {
            let row = tmux.pane(&pane).unwrap().unwrap();
            let screen = tmux.screens(&[&pane], false).unwrap().remove(0).unwrap();
            (row.pane, String::from_utf8(screen).unwrap())
        };
        assert!(until(SHORT, || look().1.contains("Nein")));
        let (row, screen) = look();
        let press = |guard: &Guard, key: &str| tmux.press(&pane, &[key], guard).unwrap();
        let same = Guard::of(&row, &screen, 20);
        tmux.call(&[Cmd::new("copy-mode").args(["-t", &pane])]).unwrap();
        assert!(matches!(press(&same, "a"), Typed::Done(_)), "{same:?}");
        assert!(until(SHORT, || look().1.ends_with('a')), "{}", look().1);
        // The cursor has moved with the letter.
        assert_eq!(press(&same, "b"), Typed::Moved);
        assert_eq!(tmux.type_text(&pane, "b", &same).unwrap(), Typed::Moved);
        assert_eq!(tmux.paste(&pane, b"b", &same).unwrap(), Typed::Moved);
        // The cursor is where it was, but another row is shown.
        let (row, screen) = look();
        let other = screen.replace("Nein", "Neun");
        assert_eq!(press(&Guard::of(&row, &other, 20), "b"), Typed::Moved);
        let last_row = press(&Guard::of(&row, &other, 1), "C-u");
        assert!(matches!(last_row, Typed::Done(_)), "only the last row was asked for");
        assert!(until(SHORT, || !look().1.ends_with('a')));
        assert!(!look().1.contains('b'));
    }
    assert_eq!(lab.tmux().press("%99", &["a"], &Guard::alive()).unwrap(), Typed::Moved, "no such pane");
}

/// The third: a lost SIGCHLD leaves a pane dead without a status, for good.
#[test]
fn the_exit_status_is_known_within_a_second_of_the_end() {
    let lab = Lab::new();
    lab.run("bystander", &["sleep", "60"]);
    let tmux = lab.tmux();
    for round in 0..40 {
        let name = format!("ends-{round}");
        lab.run(&name, &["sh", "-c", "exit 7"]);
        let began = Instant::now();
        let found = until(SHORT, || {
            tmux.panes(false)
                .unwrap()
                .iter()
                .any(|row| row.session == name && row.pane.dead && row.pane.reaped())
        });
        assert!(found, "{name} has no status");
        assert!(began.elapsed() < Duration::from_secs(1), "{name} took {:?}", began.elapsed());
        let row = tmux.panes(false).unwrap().into_iter().find(|row| row.session == name).unwrap();
        assert_eq!(row.pane.exit_status, Some(7));
    }
}

/// The fourth: a server out of file descriptors spins and every client hangs.
#[test]
fn a_server_started_with_few_descriptors_still_takes_many_sessions() {
    let lab = Lab::new();
    let mut few = std::process::Command::new("sh");
    let starter = lab.process(&["start-server"]);
    few.args(["-c", "ulimit -Sn 32 && exec \"$0\" \"$@\""])
        .arg(starter.get_program())
        .args(starter.get_args());
    let status = few.status().unwrap();
    assert!(status.success());
    for n in 0..60 {
        lab.run(&format!("many-{n}"), &["sleep", "60"]);
    }
    assert_eq!(lab.tmux().panes(false).unwrap().len(), 61);
}

/// The fifth: a control client that is attaching when anything is told to it takes a server before 3.7 down. The sixth: one
/// that gets output and stops reading freezes the panes. Lisa has none, so neither can happen.
#[test]
fn callers_that_come_and_go_while_sessions_begin_and_end_are_no_clients_of_the_server() {
    let lab = Lab::new();
    let first = lab.run("first", &["sleep", "100"]);
    let server = lab.server_pid();
    let attached = || lab.tmux().call(&[Cmd::new("list-clients").args(["-F", "x"])]).unwrap().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert!(lab.tmux().pane(&first).unwrap().is_some(), "the server went down");
                    assert_eq!(attached()[0].as_ref().unwrap(), b"");
                }
            });
        }
        for n in 0..25 {
            let name = format!("other-{n}");
            lab.run(&name, &["sleep", "100"]);
            lab.tmux().call(&[Cmd::new("kill-session").arg("-t").arg(format!("={name}"))]).unwrap();
        }
    });
    assert_eq!(lab.server_pid(), server);
}

/// A client of somebody's whose reader was killed with a reply under way never ends by itself, nor does the server before
/// it: it listens on and answers nobody.
fn client_that_keeps_the_server(lab: &Lab) -> std::process::Child {
    use std::io::Write;
    let mut client = std::process::Command::new("tmux")
        .arg("-S")
        .arg(lab.path().join("tmux"))
        .args(["-C", "attach-session", "-f", "no-output"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // More than a pipe holds, and nobody reads it.
    let mut stdin = client.stdin.take().unwrap();
    for _ in 0..50 {
        stdin.write_all(b"list-commands\n").unwrap();
    }
    stdin.write_all(b"set-buffer -b all done\n").unwrap();
    let buffers = || lab.tmux().call(&[Cmd::new("list-buffers").args(["-F", "#{buffer_name}"])]).unwrap();
    assert!(until(SHORT, || buffers().unwrap()[0].as_ref().unwrap() == b"all\n"), "{:?}", buffers());
    drop((stdin, client.stdout.take()));
    client
}

#[test]
fn a_server_can_be_ended_although_one_of_its_clients_has_lost_its_reader() {
    let lab = Lab::new();
    lab.run("bystander", &["sleep", "60"]);
    let mut client = client_that_keeps_the_server(&lab);
    let ended = lab.tmux().end_server(Duration::from_secs(5));
    let _ = client.kill();
    client.wait().unwrap();
    assert!(ended.unwrap(), "the server lives on");
}

#[test]
fn a_server_that_somebody_told_to_end_and_that_a_client_keeps_does_not_keep_another_from_starting() {
    let lab = Lab::new();
    lab.run("bystander", &["sleep", "60"]);
    let before = lab.server_pid().unwrap();
    let mut client = client_that_keeps_the_server(&lab);
    assert!(lab.tmux().lingering().is_none(), "it answers");
    std::process::Command::new("tmux")
        .arg("-S")
        .arg(lab.path().join("tmux"))
        .arg("kill-server")
        .status()
        .unwrap();
    assert!(until(SHORT, || lab.tmux().lingering().is_some()), "this tmux lets the client go");
    assert!(process::start_time(before).is_some());
    let began = Instant::now();
    lab.run("next", &["sleep", "60"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(lab.tmux().panes(false).unwrap().len(), 1);
    assert_ne!(lab.server_pid(), Some(before));
    client.wait().unwrap();
}

#[test]
fn doctor_names_a_server_that_only_a_client_keeps_and_cleanup_ends_it() {
    let lab = Lab::new();
    lab.run("bystander", &["sleep", "60"]);
    let server = lab.server_pid().unwrap();
    let mut client = client_that_keeps_the_server(&lab);
    let kill = ["-S", lab.socket().to_str().unwrap(), "kill-server"].map(str::to_owned);
    std::process::Command::new("tmux").args(kill).status().unwrap();
    assert!(until(SHORT, || lab.tmux().lingering().is_some()), "this tmux lets the client go");
    let check = lab.engine().doctor().checks.into_iter().find(|check| check.name == "tmux server").unwrap();
    assert!(!check.ok && check.detail.contains(&server.to_string()), "{check:?}");
    assert!(check.fix.unwrap().contains("cleanup"));
    let removed = lab.engine().cleanup().unwrap().removed;
    assert!(
        removed.iter().any(|thing| thing.kind == "server" && thing.name == server.to_string()),
        "{removed:?}"
    );
    assert!(until(SHORT, || process::start_time(server).is_none()));
    assert!(lab.engine().doctor().checks.iter().all(|check| check.name != "tmux server" || check.ok));
    client.wait().unwrap();
}

/// tmux up to 3.3a tells a program that has ended that nobody looks at it any more, and dies of it.
#[test]
fn ending_a_session_that_somebody_looks_at_leaves_the_server_alive_even_if_its_program_was_killed() {
    let lab = Lab::new();
    lab.run("bystander", &["sleep", "60"]);
    let server = lab.server_pid().unwrap();
    let pane = lab.run("watched", &["sh", "-c", "printf '\\033[?1004h'; exec sleep 60"]);
    let mut client = std::process::Command::new("tmux")
        .arg("-S")
        .arg(lab.path().join("tmux"))
        .args(["-C", "attach-session", "-t", "=watched"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let row = || lab.tmux().panes(false).unwrap().into_iter().find(|row| row.pane_id == pane);
    let clients = || lab.tmux().call(&[Cmd::new("list-clients").args(["-F", "x"])]).unwrap().unwrap();
    assert!(until(SHORT, || clients()[0].as_ref().unwrap() == b"x\n"), "{:?}", clients());
    let watched = row().unwrap();
    signal(watched.pane.pid, rustix::process::Signal::KILL);
    assert!(until(SHORT, || row().is_some_and(|row| row.pane.dead)));
    lab.tmux().end_pane(&watched, &watched.session).unwrap();
    assert_eq!(lab.server_pid(), Some(server), "the server has died, and every session with it");
    assert!(row().is_none());
    client.wait().unwrap();
}
