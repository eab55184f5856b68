//! The benches: a table for people, and as the last line one JSON object with the same figures.

mod client;
mod herd;
mod mcp;
mod nu;
mod react;
mod report;
mod resident;
mod send;
mod soak;
mod spawn;
mod stale;
mod stats;
mod sweep;
mod takeover;
mod trial;
mod typing;
mod usage;
mod watcher;

use crate::{context::Context, failure::Result, scratch, stage::Programs};
use lisa_dev::arguments::{Bench, BenchArguments};
use report::Report;
pub(crate) use watcher::watch;

/// The programs that sessions run, as they would ship.
const PROGRAMS: Programs =
    Programs { packages: &["lisa-engine", "demo-agent"], helper: &["lisa-helper"], release: true };

/// What the command line may change.
struct Options {
    /// How many sessions to look at, one measurement for each.
    sessions: Vec<usize>,
    /// How long a soak lasts.
    minutes: f64,
}

/// Runs benches one after the other; the first that fails ends the run.
pub(crate) fn command(context: &Context, arguments: &BenchArguments) -> Result<()> {
    if let Ok(wanted) = std::env::var("LISA_LOG") {
        // What the engine does meanwhile; the figures are then those of an engine that writes it down.
        lisa_engine::log::start(&wanted, "warn");
    }
    scratch::sweep(context);
    let options = Options { sessions: arguments.sessions.clone(), minutes: arguments.minutes };
    for bench in arguments.chosen() {
        println!("{}: {}", bench.name(), bench.what());
        let report = measure(bench)(context, &options)?;
        print!("{}", report.table());
        println!("{}", report.json(&bench.name()));
    }
    Ok(())
}

/// How the question of a bench is answered.
fn measure(bench: Bench) -> fn(&Context, &Options) -> Result<Report> {
    match bench {
        Bench::Sweep => sweep::run,
        Bench::React => react::run,
        Bench::Takeover => takeover::run,
        Bench::Resident => resident::run,
        Bench::Spawn => spawn::run,
        Bench::Stale => stale::run,
        Bench::Send => send::run,
        Bench::Typing => typing::run,
        Bench::Mcp => mcp::run,
        Bench::Nu => nu::run,
        Bench::Soak => soak::run,
    }
}
