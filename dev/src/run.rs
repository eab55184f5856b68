//! Running other programs: in a process group of their own, so that none of them outlives a Ctrl-C, with their output
//! as lines in the order they were written.

use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io::{self, BufRead, BufReader, PipeReader},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

const TICK: Duration = Duration::from_millis(100);
/// How long a build may take, from nothing on a slow machine.
pub const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
/// How long a program may take to end once asked to.
const GRACE: Duration = Duration::from_secs(3);
/// How long output may trickle in after the program's end, from children that still hold its output.
const DRAIN: Duration = Duration::from_millis(300);

/// What happens while a program runs.
pub enum Event<'a> {
    /// It wrote a line, to standard output or standard error.
    Line(&'a str),
    /// A tenth of a second passed.
    Tick,
}

/// Runs a program to its end, unless it takes longer than `limit` or somebody asks to stop; both end the whole group.
pub fn watch(
    context: &Context,
    mut command: Command,
    limit: Duration,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<ExitStatus> {
    context.go_on()?;
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| start_failure(&name, &error);
    let (reader, writer) = io::pipe().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    // The command owns the writing ends; as long as it lives, the pipe has no end.
    drop(command);
    let lines = read_lines(reader);
    let started = Instant::now();
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => on_event(Event::Line(&line)),
            Err(RecvTimeoutError::Timeout) => on_event(Event::Tick),
            Err(RecvTimeoutError::Disconnected) if ended.is_none() => thread::sleep(TICK),
            Err(RecvTimeoutError::Disconnected) => {}
        }
        if let Some((status, at)) = ended {
            if at.elapsed() >= DRAIN || lines_are_over(&lines, on_event) {
                return Ok(status);
            }
            continue;
        }
        if let Some(status) = child.try_wait().map_err(failed)? {
            ended = Some((status, Instant::now()));
        } else if let Err(stop) = context.go_on() {
            end_group(&mut child);
            return Err(stop);
        } else if started.elapsed() > limit {
            end_group(&mut child);
            return Err(Failure::new(format!(
                "`{name}` took longer than {} s and was ended",
                limit.as_secs()
            )));
        }
    }
}

/// Runs a program to its end, shows what it is at, and gives back what it wrote; its failure is one here.
pub fn through(context: &Context, command: Command, limit: Duration, doing: &str) -> Result<Vec<String>> {
    let mut progress = Progress::start(context.terminal, doing);
    let mut said = Vec::new();
    let status = watch(context, command, limit, &mut |event| match event {
        Event::Line(line) => {
            progress.doing(line.trim());
            said.push(line.to_owned());
        }
        Event::Tick => progress.tick(),
    })?;
    drop(progress);
    if status.success() {
        return Ok(said);
    }
    Err(Failure::new(format!("{}: {status}\n{}", doing.trim(), said.join("\n"))))
}

/// Runs a program that takes moments, and gives back what it wrote. A failure of the program is an answer, too.
pub fn output(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).output().map_err(|error| start_failure(&name, &error))
}

fn start_failure(name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(format!("`{name}` is not installed")),
        _ => Failure::new(format!("could not run `{name}`: {error}")),
    }
}

fn read_lines(reader: PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    // Not joined: a stray grandchild may hold the pipe open for good.
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            let line = String::from_utf8_lossy(&bytes);
            if sender.send(line.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                return;
            }
            bytes.clear();
        }
    });
    receiver
}

fn lines_are_over(lines: &Receiver<String>, on_event: &mut dyn FnMut(Event<'_>)) -> bool {
    loop {
        match lines.try_recv() {
            Ok(line) => on_event(Event::Line(&line)),
            Err(mpsc::TryRecvError::Empty) => return false,
            Err(mpsc::TryRecvError::Disconnected) => return true,
        }
    }
}

fn end_group(child: &mut Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    // An error here means that the group is gone already, which is what is wanted.
    let _ = kill_process_group(group, Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE {
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    // Also for those of the group that ignored the first request.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_outputs_come_as_lines_in_the_order_written() {
        let mut lines = Vec::new();
        let context = Context::new().unwrap();
        let script = sh("echo a; echo b >&2; echo c; exit 3");
        let status = watch(&context, script, Duration::from_secs(20), &mut |event| {
            if let Event::Line(line) = event {
                lines.push(line.to_owned());
            }
        });
        assert_eq!(lines, ["a", "b", "c"]);
        assert_eq!(status.unwrap().code(), Some(3));
    }

    #[test]
    fn a_child_that_keeps_the_output_open_does_not_hold_up_the_end() {
        let started = Instant::now();
        let context = Context::new().unwrap();
        let status = watch(&context, sh("sleep 5 & echo on"), Duration::from_secs(20), &mut |_| {}).unwrap();
        assert!(status.success());
        assert!(started.elapsed() < Duration::from_secs(4));
    }

    #[test]
    fn a_program_over_its_limit_is_ended_with_its_children() {
        let context = Context::new().unwrap();
        let mut child = None;
        let script = sh("sleep 60 & echo $!; wait");
        let result = watch(&context, script, Duration::from_millis(400), &mut |event| {
            if let Event::Line(line) = event {
                child = line.parse::<i32>().ok().and_then(Pid::from_raw);
            }
        });
        assert!(result.unwrap_err().line().contains("took longer"));
        // Its parent is gone, so whoever adopted it may still have to collect it: running is what it must not be.
        // A signal takes its time to arrive on a busy machine.
        let path = format!("/proc/{}/stat", child.unwrap().as_raw_nonzero());
        let ended = || std::fs::read_to_string(&path).map_or(true, |stat| stat.contains(") Z "));
        let deadline = Instant::now() + Duration::from_secs(5);
        while !ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(ended());
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = output(&mut Command::new("no-such-program-here")).unwrap_err();
        assert_eq!(failure.line(), "`no-such-program-here` is not installed");
    }
}
