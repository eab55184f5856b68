//! Running a program to completion, with a timeout.

use rustix::event::{PollFd, PollFlags, poll};
use std::{
    io::{self, Read, Write},
    os::fd::AsFd,
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// The result of a program.
#[derive(Debug)]
pub struct Output {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// Runs a program with `input` on its standard input, collects its output, and kills it after `limit`.
///
/// `Ok(None)` means that it timed out and was killed.
pub fn run(command: &mut Command, input: &[u8], limit: Duration) -> io::Result<Option<Output>> {
    let deadline = Instant::now() + limit;
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        let input = input.to_vec();
        // If the program reads nothing, killing it also ends this thread.
        std::thread::spawn(move || pipe.write_all(&input));
    }
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while out.is_some() || err.is_some() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        let mut fds = Vec::with_capacity(2);
        fds.extend(out.iter().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        fds.extend(err.iter().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        match poll(&mut fds, Some(&left.try_into().unwrap_or_default())) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let err_index = usize::from(out.is_some());
        if out.is_some() && ready[0] {
            read_some(&mut out, &mut stdout)?;
        }
        if err.is_some() && ready[err_index] {
            read_some(&mut err, &mut stderr)?;
        }
    }
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(Output { status, stdout, stderr }));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn read_some<R: Read>(pipe: &mut Option<R>, into: &mut Vec<u8>) -> io::Result<()> {
    let mut chunk = [0; 65536];
    let Some(reader) = pipe else { return Ok(()) };
    match reader.read(&mut chunk) {
        Ok(0) => *pipe = None,
        Ok(n) => into.extend_from_slice(&chunk[..n]),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_are_collected_whole() {
        let script = "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exit 3";
        let output =
            run(Command::new("sh").args(["-c", script]), &[], Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(
            (output.stdout.len(), output.stderr.len(), output.status.code()),
            (300_000, 200_000, Some(3))
        );
    }

    #[test]
    fn more_than_a_pipe_holds_can_be_given() {
        let input = vec![b'x'; 300_000];
        let output = run(&mut Command::new("cat"), &input, Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(output.stdout, input);
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        assert!(run(Command::new("sleep").arg("60"), &[], Duration::from_millis(50)).unwrap().is_none());
    }
}
