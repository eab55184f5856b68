//! A process of Lisa's that tests start, disturb and kill. The first argument is its home, the second what it does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]

use lisa_engine::{
    api::*,
    config::{Environment, Socket},
    engine::Engine,
    tmux::{Cmd, Tmux},
    watch::{Caller, Cancel},
};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::{
    env,
    fs::{self, File},
    io::Write,
    path::Path,
    process, thread,
    time::Duration,
};
use test_support::{operations::OPERATIONS, place};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [home, "operate", name] => operate(home, name),
        [home, "operate", name, descriptors] => {
            limit(descriptors.parse().unwrap());
            operate(home, name);
        }
        [home, "watch"] => watch(home),
        [home, "follow", seen] => follow(home, seen),
        [home, "spawn-and-kill"] => spawn_and_kill(&engine(home)),
        [home, "wait"] => wait(&engine(home)),
        [home, "come-and-go", worker] => come_and_go(&engine(home), worker),
        [home, "start-server"] => start_server(home),
        _ => panic!("{words:?}"),
    }
}

fn caller(home: &str) -> Caller {
    let helper = env::current_exe().unwrap().with_file_name("lisa-helper").display().to_string();
    let env = Environment::from_pairs(place::environment(home.as_ref()));
    Caller { env, cwd: home.into(), helper: vec![helper], policy: None }
}

fn engine(home: &str) -> Engine {
    Engine::open(caller(home)).unwrap()
}

/// Has at most so many files open from now on.
fn limit(descriptors: u64) {
    let limit = Some(descriptors);
    setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).unwrap();
}

/// Does one operation.
fn operate(home: &str, name: &str) {
    let (_, operation) = OPERATIONS.iter().find(|(known, _)| *known == name).unwrap();
    operation(&engine(home));
}

/// Is the observer, or a candidate.
fn watch(home: &str) {
    let engine = Engine::open_resident(caller(home)).unwrap();
    let mut watch = engine.watch(&WatchRequest::default()).unwrap();
    while watch.next(Duration::from_secs(60)).is_ok() {}
}

/// Stays, and writes down the cursor of each event that it sees, and of those that its waits are told.
fn follow(home: &str, seen: &str) {
    let engine = Engine::open_resident(caller(home)).unwrap();
    let mut events = engine.watch(&WatchRequest::default()).unwrap();
    let waiting = (engine.clone(), engine.cursor().unwrap(), format!("{seen}.waits"));
    thread::spawn(move || follow_waits(&waiting.0, waiting.1, &waiting.2));
    let mut file = File::create(seen).unwrap();
    loop {
        if let Some(event) = events.next(Duration::from_secs(1)).unwrap() {
            writeln!(file, "{}", event.cursor).unwrap();
        }
    }
}

fn follow_waits(engine: &Engine, mut since: u64, file: &str) {
    let mut file = File::create(file).unwrap();
    loop {
        let request = WaitRequest {
            sessions: vec!["one".into(), "two".into()],
            until: Some("event".into()),
            since: Some(since),
            timeout_s: Some(5.0),
            ..WaitRequest::default()
        };
        let answer = engine.wait(&request, &Cancel::default(), &mut |_| {}).unwrap();
        for event in answer.events {
            writeln!(file, "{}", event.cursor).unwrap();
        }
        since = answer.cursor;
    }
}

fn command(name: &str, argv: &[&str]) -> SpawnRequest {
    SpawnRequest {
        agent: "generic".to_owned(),
        name: Some(name.to_owned()),
        args: argv.iter().map(|word| (*word).to_owned()).collect(),
        ..SpawnRequest::default()
    }
}

fn spawn_and_kill(engine: &Engine) {
    for round in 0.. {
        let name = format!("s-{}-{round}", process::id());
        let _ = engine.spawn(&command(&name, &["sleep", "600"]));
        let _ = engine.kill(&KillRequest { session: name, force: true });
    }
}

fn wait(engine: &Engine) {
    loop {
        let request =
            WaitRequest { until: Some("event".to_owned()), timeout_s: Some(5.0), ..WaitRequest::default() };
        let _ = engine.wait(&request, &Cancel::default(), &mut |_| {});
    }
}

/// Fifty sessions come and go, and no descriptor stays open.
fn come_and_go(engine: &Engine, worker: &str) {
    let own = || fs::read_dir(Path::new("/proc/self/fd")).map_or(0, Iterator::count);
    let before = own();
    for round in 0..50 {
        let name = format!("w-{worker}-{round}");
        let script = if round % 3 == 0 { "sleep 60 & sleep 60" } else { "exec sleep 60" };
        engine.spawn(&command(&name, &["sh", "-c", script])).unwrap();
        let listed = engine.list(&ListRequest::default()).unwrap();
        assert!(listed.sessions.iter().any(|row| row.name == name), "{name} was lost");
        let killed = engine.kill(&KillRequest { session: name.clone(), force: false }).unwrap();
        assert_eq!(killed.sessions[0].done, "killed");
        assert!(!engine.exists(&name).unwrap());
    }
    assert_eq!(own(), before, "descriptors were left open");
}

/// Starts a tmux server, with the limits of this process.
fn start_server(home: &str) {
    let env = Environment::from_pairs(place::environment(home.as_ref()));
    let tmux = Tmux::new(Socket::Path(Path::new(home).join("tmux")), &env).unwrap();
    let first = Cmd::new("new-session").args(["-d", "-s", "first", "sleep", "60"]);
    tmux.call_starting(&[first]).unwrap().unwrap();
}
