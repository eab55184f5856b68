//! Starts the agent from the command line.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::agent::{Agent, Config};
use crate::app::{self, Terminal};
use crate::args::Args;
use crate::effect::fnv1a64;
use crate::exec;
use crate::hooks::HookCommand;
use crate::log::{JsonLines, StateFile, Transcript, wall_clock};
use crate::script::parse_script;
use crate::side_effects::{OutputFiles, SideEffects, Waker};
use crate::step::Step;

/// Runs the agent. Returns its exit code.
///
/// # Errors
/// A message for the user, for example if a file cannot be read, the prompt is missing, or there is no terminal.
pub fn run(args: Args) -> Result<i32, String> {
    let session = args.resume.clone().or(args.session_id.clone()).unwrap_or_else(random_id);
    let transcript = args.transcript.clone().map(|template| Transcript::new(template, &session));
    let cwd = std::env::current_dir().map_err(|e| format!("no working directory: {e}"))?;
    let cwd = cwd.to_string_lossy().into_owned();
    let hooks = hook_commands(&args)?;
    let config = Config {
        cwd: cwd.clone(),
        argv: std::env::args().collect(),
        model: args.model.clone(),
        session: session.clone(),
        resumed: args.resume.as_ref().map(|_| transcript.as_ref().map_or(0, Transcript::turns)),
        ask_trust: args.ask_trust,
        ask_login: args.ask_login,
        deaf: args.deaf,
        dangerous: args.dangerous,
        headless: args.exec,
        hooks: !hooks.is_empty(),
        hook_decides: args.hook_decides && !hooks.is_empty(),
        burst: !args.no_burst,
        stream_cps: args.stream_cps,
        spinner_hz: args.spinner_hz,
        script: script(&args)?,
        prompt: first_prompt(&args)?,
    };
    let log = args.log.as_deref().map(|path| JsonLines::open(path).map_err(|e| at(path, &e))).transpose()?;
    let outlets = OutputFiles { log, transcript, state: args.state_file.clone().map(StateFile::new), hooks };
    let (sender, events) = channel();
    let start = || -> io::Result<i32> {
        let (listen, ring) = UnixStream::pair()?;
        // A full socket must not block a signal handler or a thread. Dropped bytes don't matter: one wakes the loop.
        listen.set_nonblocking(true)?;
        ring.set_nonblocking(true)?;
        let side_effects = SideEffects::new(outlets, Waker::new(sender, ring.try_clone()?), &session, &cwd)?;
        let agent = Agent::new(config);
        if args.exec {
            return exec::run(agent, side_effects, &events);
        }
        let terminal = Terminal {
            alt_screen: args.alt_screen,
            title: !args.no_title,
            boot: Duration::from_millis(args.boot_ms),
        };
        app::run(agent, side_effects, events, (listen, ring), terminal)
    };
    start().map_err(|e| e.to_string())
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| at(path, &e))
}

fn script(args: &Args) -> Result<VecDeque<Vec<Step>>, String> {
    let Some(path) = &args.script else { return Ok(VecDeque::new()) };
    let is_toml = path.extension().is_some_and(|ext| ext == "toml");
    parse_script(&read(path)?, is_toml).map_err(|e| at(path, &e))
}

fn hook_commands(args: &Args) -> Result<Vec<HookCommand>, String> {
    if args.no_hooks {
        return Ok(Vec::new());
    }
    let mut commands: Vec<_> = args.hook_command.iter().map(|text| HookCommand::parse(text)).collect();
    if let Some(settings) = &args.settings {
        let text = if settings.starts_with('{') { settings.clone() } else { read(Path::new(settings))? };
        commands.extend(HookCommand::from_settings(&text)?);
    }
    Ok(commands)
}

fn first_prompt(args: &Args) -> Result<Option<String>, String> {
    if let Some(path) = &args.prompt_file {
        return read(path).map(Some);
    }
    if !args.prompt.is_empty() {
        return Ok(Some(args.prompt.join(" ")));
    }
    if !args.exec {
        return Ok(None);
    }
    let mut text = String::new();
    if !io::stdin().is_terminal() {
        io::stdin().read_to_string(&mut text).map_err(|e| format!("standard input: {e}"))?;
    }
    if text.trim().is_empty() {
        return Err("--exec needs a prompt, as arguments or on standard input".to_owned());
    }
    Ok(Some(text))
}

/// A random id from /dev/urandom, or from the clock and the pid if that fails.
fn random_id() -> String {
    let mut bytes = [0; 16];
    let filled = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if filled.is_err() {
        let seed = fnv1a64(format!("{} {}", wall_clock(), std::process::id()).as_bytes());
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
