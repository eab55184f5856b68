//! One-shot calls: one `tmux` process for a whole batch of commands.
//!
//! The replies are told apart by a mark that is printed between them; it is made anew for every call, so that no
//! screen can contain it.

use super::{Cmd, Reply, Tmux, means_no_server};
use crate::error::{Error, Kind, Result};
use std::process::Command;

/// A message to the server holds 16 KiB; a batch is split well below that.
const BATCH_BYTES: usize = 12_000;

pub(super) fn call(tmux: &Tmux, commands: &[Cmd]) -> Result<Option<Vec<Reply>>> {
    let mut replies = Vec::with_capacity(commands.len());
    let mut rest = commands;
    while !rest.is_empty() {
        let batch = batch_length(rest);
        let Some(mut got) = call_batch(tmux, &rest[..batch])? else { return Ok(None) };
        // tmux drops what follows a command that failed: go on behind it.
        let done = got.len();
        replies.append(&mut got);
        rest = &rest[done..];
    }
    Ok(Some(replies))
}

pub(super) fn call_atomic(tmux: &Tmux, commands: &[Cmd]) -> Result<Option<Reply>> {
    call_list(tmux, tmux.command(), commands)
}

/// Runs commands as one list with the given `tmux`.
pub(super) fn call_list(tmux: &Tmux, mut process: Command, commands: &[Cmd]) -> Result<Option<Reply>> {
    process.args(join(commands.iter()));
    let output = tmux.run(&mut process)?;
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() && stderr.is_empty() {
        return Ok(Some(Ok(output.stdout)));
    }
    Ok(if means_no_server(&stderr) { None } else { Some(Err(stderr)) })
}

fn call_batch(tmux: &Tmux, commands: &[Cmd]) -> Result<Option<Vec<Reply>>> {
    let mark = format!("lisa-{}", uuid::Uuid::new_v4().simple());
    let separator = Cmd::new("display-message").arg("-p").arg(&mark);
    let mut process = tmux.command();
    process.args(join(commands.iter().flat_map(|command| [command, &separator])));
    let output = tmux.run(&mut process)?;
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if means_no_server(&stderr) {
        return Ok(None);
    }
    let mut replies: Vec<Reply> = split(&output.stdout, mark.as_bytes()).into_iter().map(Ok).collect();
    if replies.len() < commands.len() {
        if stderr.is_empty() {
            return Err(Error::new(
                Kind::TmuxFailed,
                format!("tmux stopped in the middle of `{}`", commands[replies.len()].name()),
                "run `lisa doctor`",
            ));
        }
        replies.push(Err(stderr));
    }
    Ok(Some(replies))
}

/// What was printed before each mark. What stands before one need not end its last line.
fn split(stdout: &[u8], mark: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut rest = stdout;
    while let Some(at) = rest.windows(mark.len()).position(|window| window == mark) {
        parts.push(rest[..at].to_vec());
        rest = rest.get(at + mark.len() + 1..).unwrap_or_default();
    }
    parts
}

fn join<'a>(commands: impl Iterator<Item = &'a Cmd>) -> Vec<String> {
    let mut argv = Vec::new();
    for command in commands {
        if !argv.is_empty() {
            argv.push(";".to_owned());
        }
        argv.extend(command.to_argv());
    }
    argv
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
    fn replies_are_cut_at_the_mark_even_where_a_line_does_not_end() {
        let parts = split(b"one\nxMARK\nMARK\ntwo\nMARK\nlate", b"MARK");
        assert_eq!(parts, [b"one\nx".to_vec(), Vec::new(), b"two\n".to_vec()]);
    }

    #[test]
    fn a_long_batch_is_split() {
        let commands = vec![Cmd::new("capture-pane").args(["-p", "-t", "%1"]); 500];
        let first = batch_length(&commands);
        assert!(first > 50 && first < 500, "{first}");
    }
}
