//! The normal case on a busy machine: several processes of Lisa's on one tmux server, and a person who looks in now and
//! then. No server dies, and everybody sees everything once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]

use lisa_engine::{
    api::{EventKind, KillAllRequest, WatchRequest},
    config::Environment,
    engine::Engine,
    watch::Caller,
};
use lisa_tests::{hands::Mcp, person::Person};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use test_support::{needs, place::Place, programs, tools};

/// How long the crowd goes on.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(30);

/// The engine of a process that stays, in a private place.
fn engine(home: &Place) -> Engine {
    let helper = vec![programs::built("lisa-mcp").unwrap().display().to_string(), "helper".into()];
    let env = Environment::from_pairs(home.env());
    Engine::open_resident(Caller { env, cwd: home.path().to_owned(), helper, policy: None }).unwrap()
}

/// `lisa watch` in a real nu, which writes down the cursor of each event.
struct Watching {
    nu: Child,
    seen: PathBuf,
}

impl Watching {
    fn start(home: &Place, since: u64) -> Self {
        let seen = home.path().join("seen");
        let plugins = format!("[{}]", programs::built("nu_plugin_lisa").unwrap().display());
        let script = format!(
            "lisa watch --since {since} | each {{|event| $\"($event.cursor)\\n\" | save --append --raw {} }} | ignore",
            seen.display()
        );
        let nu = Command::new(tools::program("nu").unwrap())
            .args(["-n", "--plugins", &plugins, "-c", &script])
            .env_clear()
            .envs(home.env())
            .current_dir(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { nu, seen }
    }

    fn cursors(&self) -> Vec<u64> {
        let text = std::fs::read_to_string(&self.seen).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.nu.kill();
        let _ = self.nu.wait();
    }
}

/// What a parent got done.
#[derive(Debug, Default)]
struct Work {
    spawned: u32,
    sent: u32,
    answered: u32,
    killed: u32,
}

/// A parent that starts agents, gives them work, answers what they ask and ends them.
fn drive(mcp: &Mcp, parent: usize, over: &AtomicBool) -> Work {
    let mut work = Work::default();
    while !over.load(Ordering::SeqCst) {
        let name = format!("p{parent}-{}", work.spawned);
        let call = |tool: &str, arguments: Value| {
            let result = mcp.call(tool, arguments).unwrap_or_else(|error| panic!("{tool}: {error}"));
            result["structuredContent"].clone()
        };
        call("spawn_session", json!({"agent": "demo", "name": name, "wait_ready_s": 20}));
        work.spawned += 1;
        let text = "!permission Bash make ; !think 50ms ; !say done";
        let sent = call("send_input", json!({"session": name, "text": text}));
        assert_eq!(sent["delivered"], "submitted", "{sent}");
        work.sent += 1;
        let asks = call("wait_sessions", json!({"sessions": [name], "timeout_s": 20}));
        let prompt = &asks["sessions"][0]["prompt"]["id"];
        assert!(prompt.is_string(), "{asks}");
        call("answer_prompt", json!({"session": name, "choice": "allow_once", "prompt_id": prompt}));
        work.answered += 1;
        let turn = &sent["turn"];
        let ended = call(
            "wait_sessions",
            json!({"sessions": [name], "until": "turn", "turn": turn, "timeout_s": 20}),
        );
        assert_eq!(ended["timed_out"], false, "{ended}");
        // Every other one is ended in the middle of something.
        if work.spawned % 2 == 0 {
            call("send_input", json!({"session": name, "text": "!think 60s"}));
            work.sent += 1;
        }
        call("kill_session", json!({"session": name, "force": true}));
        work.killed += 1;
    }
    work
}

#[test]
fn four_processes_and_a_person_on_one_server_for_a_minute_and_nothing_dies_or_is_seen_twice() {
    needs!(tools::program("nu"));
    let home = Place::new();
    programs::demo_agent();
    let engine = engine(&home);
    let parents = [
        Mcp::start_in(home.env().into_iter(), home.path()),
        Mcp::start_in(home.env().into_iter(), home.path()),
    ];
    // One that stays for the whole time, so that the person always finds somebody.
    parents[0].call("spawn_session", json!({"agent": "demo", "name": "stays", "wait_ready_s": 20})).unwrap();
    let since = engine.cursor().unwrap();
    let server = home.server_pid().unwrap();
    let watching = Watching::start(&home, since);
    let mut stream = engine.watch(&WatchRequest { since: Some(since), ..WatchRequest::default() }).unwrap();
    let over = AtomicBool::new(false);
    let mut streamed: Vec<u64> = Vec::new();
    let (work, visits) = std::thread::scope(|scope| {
        let [first, second] = parents;
        let drivers = [first, second].into_iter().enumerate().map(|(number, mcp)| {
            let over = &over;
            scope.spawn(move || drive(&mcp, number, over))
        });
        let drivers: Vec<_> = drivers.collect();
        let person = scope.spawn(|| {
            let mut person = Person::new(home.path(), &home.socket());
            let mut turn = 0;
            while !over.load(Ordering::SeqCst) {
                let names = engine.names().unwrap();
                person.visit(names.get(turn % names.len().max(1)).map_or("stays", String::as_str));
                turn += 1;
            }
            person.visits()
        });
        let began = Instant::now();
        while began.elapsed() < LONG && drivers.iter().all(|driver| !driver.is_finished()) {
            let next = stream.next(Duration::from_millis(200)).unwrap();
            streamed.extend(next.map(|event| event.cursor));
            assert_eq!(home.server_pid(), Some(server), "the tmux server died, with every agent in it");
        }
        over.store(true, Ordering::SeqCst);
        let work: Vec<Work> = drivers.into_iter().map(|driver| driver.join().unwrap()).collect();
        (work, person.join().unwrap())
    });
    println!("{work:?}, {visits} visits");
    assert_eq!(home.server_pid(), Some(server), "the tmux server died, with every agent in it");
    assert!(work.iter().all(|work| work.killed > 3) && visits > 5, "{work:?}, {visits} visits");
    engine.kill_all(&KillAllRequest { force: true, ..KillAllRequest::default() }).unwrap();
    let mut all = engine.watch(&WatchRequest { since: Some(since), ..WatchRequest::default() }).unwrap();
    let written: Vec<_> = std::iter::from_fn(|| all.next(Duration::from_secs(1)).unwrap()).collect();
    let cursors: Vec<u64> = written.iter().map(|event| event.cursor).collect();
    assert_eq!(cursors, (since + 1..=since + written.len() as u64).collect::<Vec<_>>());
    while let Some(event) = stream.next(Duration::from_millis(500)).unwrap() {
        streamed.push(event.cursor);
    }
    assert_eq!(streamed, cursors, "a stream in another process");
    let began = Instant::now();
    while watching.cursors().last() != cursors.last() && began.elapsed() < SHORT {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(watching.cursors(), cursors, "`lisa watch` in nu");
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for event in written.iter().filter(|event| event.event == EventKind::Killed) {
        *ends.entry(&event.session).or_default() += 1;
    }
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
}
