//! Runs command lists in one exchange with the server and splits their replies.
//!
//! Batched replies are separated by a marker that `display-message` prints between them. It is random per batch, so no
//! screen can contain it.

use super::{
    Cmd, Reply, Tmux, timeout_error,
    wire::{self, Ended, Printed, WORDS_MAX},
};
use crate::error::{Error, Kind, Result};
use std::{process::Command, sync::atomic::Ordering};

/// A message to the server holds 16 KiB; batches are split well below that.
const BATCH_BYTES: usize = 12_000;

/// Runs commands one after the other; a failed command doesn't stop the rest.
pub(super) fn call(tmux: &Tmux, commands: &[Cmd]) -> Result<Option<Vec<Reply>>> {
    let mut replies = Vec::with_capacity(commands.len());
    let mut rest = commands;
    while !rest.is_empty() {
        let batch = batch_length(rest);
        let Some(mut got) = call_batch(tmux, &rest[..batch])? else { return Ok(None) };
        // tmux drops the commands after a failed one: continue after it.
        let done = got.len();
        replies.append(&mut got);
        rest = &rest[done..];
    }
    Ok(Some(replies))
}

/// Runs commands as one atomic list; the first failure ends it. `input` is what a command reads from `-`.
pub(super) fn call_atomic(tmux: &Tmux, commands: &[Cmd], input: &[u8]) -> Result<Option<Reply>> {
    Ok(run(tmux, &join(commands.iter()), input)?.map(reply))
}

/// Runs commands as one list with a `tmux` process, which starts the server if necessary.
pub(super) fn call_starting(tmux: &Tmux, commands: &[Cmd]) -> Result<Option<Reply>> {
    let words = join(commands.iter());
    Ok(fork(tmux, tmux.command_starting(), &words, &[])?.map(reply))
}

fn reply(printed: Printed) -> Reply {
    let complaint = String::from_utf8_lossy(&printed.stderr).trim().to_owned();
    if printed.success && complaint.is_empty() { Ok(printed.stdout) } else { Err(complaint) }
}

fn call_batch(tmux: &Tmux, commands: &[Cmd]) -> Result<Option<Vec<Reply>>> {
    let mark = format!("lisa-{}", uuid::Uuid::new_v4().simple());
    let separator = Cmd::new("display-message").arg("-p").arg(&mark);
    let words = join(commands.iter().flat_map(|command| [command, &separator]));
    let Some(printed) = run(tmux, &words, &[])? else { return Ok(None) };
    let mut replies: Vec<Reply> = split(&printed.stdout, mark.as_bytes()).into_iter().map(Ok).collect();
    if let Some(failed) = commands.get(replies.len()) {
        let complaint = String::from_utf8_lossy(&printed.stderr).trim().to_owned();
        if complaint.is_empty() {
            return Err(Error::new(
                Kind::TmuxFailed,
                format!("tmux stopped while running `{}`", failed.name()),
                "run `lisa doctor`",
            ));
        }
        replies.push(Err(complaint));
    }
    Ok(Some(replies))
}

/// One exchange; `None` if no server is running.
fn run(tmux: &Tmux, words: &[String], input: &[u8]) -> Result<Option<Printed>> {
    if words.iter().map(|word| word.len() + 1).sum::<usize>() > WORDS_MAX {
        return Ok(Some(Printed { stderr: b"command too long".to_vec(), ..Printed::default() }));
    }
    if !tmux.forks.load(Ordering::Relaxed) {
        let path = tmux.socket_path();
        match wire::exchange(&path, words, input, tmux.timeout) {
            Ok(Ended::Done(printed)) => return Ok(Some(printed)),
            Ok(Ended::NoServer) => return Ok(None),
            Ok(Ended::TimedOut) => return Err(timeout_error(tmux.timeout)),
            Ok(Ended::OtherProtocol) => tmux.forks.store(true, Ordering::Relaxed),
            Err(error) => return Err(Error::io("talk to the tmux server at", &path, &error)),
        }
    }
    fork(tmux, tmux.command(), words, input)
}

fn fork(tmux: &Tmux, mut process: Command, words: &[String], input: &[u8]) -> Result<Option<Printed>> {
    process.args(words);
    let output = tmux.run(&mut process, input)?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    if means_no_server(&complaint) {
        return Ok(None);
    }
    Ok(Some(Printed { success: output.status.success(), stdout: output.stdout, stderr: output.stderr }))
}

/// Whether tmux's error means that no server is running. Other problems with the socket don't count.
fn means_no_server(stderr: &str) -> bool {
    let absent = ["(No such file or directory)", "(Connection refused)"];
    let unconnected = stderr.contains("error connecting to") && absent.iter().any(|why| stderr.contains(why));
    unconnected
        || ["no server running", "server exited", "lost server"].iter().any(|phrase| stderr.contains(phrase))
}

/// Splits output at each marker. The text before a marker may lack its final newline.
pub(crate) fn split(stdout: &[u8], mark: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut rest = stdout;
    while let Some(at) = memchr::memmem::find(rest, mark) {
        parts.push(rest[..at].to_vec());
        rest = rest.get(at + mark.len() + 1..).unwrap_or_default();
    }
    parts
}

fn join<'a>(commands: impl Iterator<Item = &'a Cmd>) -> Vec<String> {
    let mut words = Vec::new();
    for command in commands {
        if !words.is_empty() {
            words.push(";".to_owned());
        }
        words.extend(command.to_argv());
    }
    words
}

fn batch_length(commands: &[Cmd]) -> usize {
    let mut bytes = 0;
    let fits = commands.iter().take_while(|command| {
        bytes += command.to_argv().iter().map(|word| word.len() + 1).sum::<usize>() + 64;
        bytes <= BATCH_BYTES
    });
    fits.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_can_not_be_reached_is_not_one_that_is_gone() {
        assert!(means_no_server("no server running on /tmp/tmux-0/lisa"));
        assert!(means_no_server("error connecting to /x/lisa (No such file or directory)"));
        assert!(!means_no_server("error connecting to /x/lisa (Permission denied)"));
        assert!(!means_no_server("error connecting to /x/lisa (Too many open files)"));
    }

    #[test]
    fn replies_are_cut_at_the_mark_even_where_a_line_does_not_end() {
        let parts = split(b"one\nxMARK\nMARK\ntwo\nMARK\nlate", b"MARK");
        assert_eq!(parts, [b"one\nx".to_vec(), Vec::new(), b"two\n".to_vec()]);
        assert_eq!(split(b"MMMARMARK\n", b"MARK"), [b"MMMAR".to_vec()]);
    }

    #[test]
    fn a_long_batch_is_split() {
        let commands = vec![Cmd::new("capture-pane").args(["-p", "-t", "%1"]); 500];
        let first = batch_length(&commands);
        assert!(first > 50 && first < 500, "{first}");
    }
}
