//! What thousands of sessions that ended long ago cost those who list the few that matter, and whoever watches.

use super::{
    Options, PROGRAMS,
    report::{Column, Report},
    stats::Samples,
    trial::{command_session, pause},
    usage::spent_ms,
    watcher::Watcher,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    stage::Stage,
    tools::{self, Release},
};
use lisa_engine::{
    api::{ListRequest, SessionRequest, words::StateName},
    engine::Engine,
};
use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

const COLUMNS: &[Column] = &[
    Column { name: "ended", unit: "" },
    Column { name: "live", unit: "" },
    Column { name: "list p50", unit: "ms" },
    Column { name: "list p99", unit: "ms" },
    Column { name: "watching", unit: "ms/s" },
];
/// How many sessions have ended, in each measurement.
const ENDED: [usize; 2] = [0, 5_000];
const LIVE: usize = 10;
const LISTS: usize = 30;
/// How long a watcher comes to rest, and is measured then.
const REST: Duration = Duration::from_secs(6);
const MEASURED: Duration = Duration::from_secs(20);

pub(super) fn run(context: &Context, _options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let mut report = Report::new(COLUMNS);
    let progress = Progress::start(context.terminal, "  leaving sessions behind");
    let mut lists = Vec::new();
    for ended in ENDED {
        let stage = Stage::set(context, &format!("stale{ended}"), &PROGRAMS)?;
        progress.say(&format!("  making {ended} sessions that have ended"));
        let engine = Engine::open(stage.caller())?;
        for number in 0..LIVE {
            engine.spawn(&command_session(&format!("live-{number}"), &["sleep", "86400"]))?;
        }
        leave_ended(context, &stage, &engine, ended)?;
        let mut samples = Samples::default();
        for _ in 0..LISTS {
            // One who lists once has read nothing before.
            let engine = Engine::open(stage.caller())?;
            let began = Instant::now();
            let rows = engine.list(&ListRequest::default())?.sessions;
            samples.add(began.elapsed());
            let live = rows.iter().filter(|row| row.state != StateName::Exited).count();
            if live != LIVE {
                return Err(Failure::new(format!("a list shows {live} of {LIVE} live sessions")));
            }
        }
        progress.say(&format!("  watching beside {ended} that have ended"));
        let watcher = Watcher::start(&stage.caller())?;
        pause(context, REST)?;
        let before = spent_ms(&[watcher.pid()]);
        pause(context, MEASURED)?;
        let spent = spent_ms(&[watcher.pid()]).zip(before).map(|(after, before)| after - before);
        report.row(vec![
            ended.into(),
            LIVE.into(),
            samples.p50().into(),
            samples.p99().into(),
            spent.map(|spent| spent / MEASURED.as_secs_f64()).into(),
        ]);
        lists.extend(samples.p50());
    }
    if let [none, many] = lists[..] {
        report.ratio(format!("a list beside {} ended to one beside none", ENDED[1]), many, none);
    }
    Ok(report)
}

/// Copies the directory of a session that has ended, as often as it takes.
fn leave_ended(context: &Context, stage: &Stage, engine: &Engine, count: usize) -> Result<()> {
    let model = "model";
    engine.spawn(&command_session(model, &["true"]))?;
    while engine.look(&SessionRequest { session: model.to_owned() })?.state != StateName::Exited {
        context.go_on()?;
        thread::sleep(Duration::from_millis(10));
    }
    let read = |file: &str| {
        let path = stage.session_file(model, file);
        fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, &error))
    };
    let (meta, state, lock) = (read("meta.json")?, read("state.json")?, read("lock")?);
    let fields: serde_json::Value =
        serde_json::from_str(&meta).map_err(|error| Failure::new(error.to_string()))?;
    let field = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    let (run, pane) = (field("run_id"), field("pane_id"));
    for number in 0..count {
        context.go_on()?;
        let (name, own) = (format!("old-{number:05}"), format!("{number:0>width$}", width = run.len()));
        let renamed = |text: &str| {
            let text = text.replace(&format!("\"{model}\""), &format!("\"{name}\"")).replace(&run, &own);
            text.replace(&format!("\"{pane}\""), "\"%999999\"")
        };
        let write = |path: &Path, text: &str| {
            fs::write(path, text).map_err(|error| Failure::io("write", path, &error))
        };
        let directory = stage.session_file(&name, "");
        private_directory(&directory)?;
        for (file, text) in [("meta.json", &meta), ("state.json", &state), ("lock", &lock)] {
            write(&directory.join(file), &renamed(text))?;
        }
    }
    Ok(())
}

fn private_directory(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = fs::DirBuilder::new().mode(0o700).create(path);
    made.map_err(|error| Failure::io("make", path, &error))
}
