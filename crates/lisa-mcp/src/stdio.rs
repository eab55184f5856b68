//! The protocol over standard input and output: one message per line.
//!
//! This replaces the library's own transport, which gives no reply to what it cannot read. All writing is done by one
//! task, so a reply is never torn by a read that is given up half-way, and whoever closes standard output ends the
//! server.

use crate::rpc::{self, Fault};
use rmcp::{
    RoleServer,
    model::JsonRpcMessage,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::io;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::mpsc,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// What a pipe holds on Linux.
const BUFFER: usize = 64 << 10;

/// Lines that may wait for a client that does not read.
const WAITING: usize = 64;

/// The two pipes to a client.
pub(crate) struct Pipes<R> {
    lines: Lines<R>,
    /// `None` once closed.
    out: Option<mpsc::Sender<Vec<u8>>>,
    /// An error reply that is not yet on its way: `receive` may be given up at any time.
    reply: Option<Vec<u8>>,
    /// Whether there was a request. Before the first one the library takes anything else for a broken client.
    asked: bool,
    gone: CancellationToken,
}

impl<R: AsyncRead + Unpin> Pipes<R> {
    /// The transport, and the task that writes: it ends when everything is written and nobody can say more. `gone` is
    /// raised when the client has closed either pipe.
    pub(crate) fn new<W>(reader: R, writer: W, gone: CancellationToken) -> (Self, JoinHandle<()>)
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (out, lines) = mpsc::channel(WAITING);
        let written = tokio::spawn(write(writer, lines));
        let lines = Lines::new(reader, rpc::MAX_MESSAGE);
        (Self { lines, out: Some(out), reply: None, asked: false, gone }, written)
    }

    /// The next message, `None` at the end. May be given up and called again without losing anything.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let out = self.out.clone()?;
        loop {
            if self.reply.is_some() {
                let place = out.reserve().await.ok()?;
                if let Some(reply) = self.reply.take() {
                    place.send(reply);
                }
            }
            let line = tokio::select! {
                line = self.lines.next() => line?,
                () = out.closed() => return None,
            };
            let read = match line {
                Line::Whole(bytes) if bytes.trim_ascii().is_empty() => continue,
                Line::Whole(bytes) => rpc::read(&bytes),
                Line::TooLong => Err(Box::new(Fault::too_long(self.lines.most))),
            };
            match read {
                Ok(message) => {
                    self.asked |= matches!(message, JsonRpcMessage::Request(_));
                    if self.asked {
                        return Some(message);
                    }
                    tracing::debug!("ignored what came before the first request");
                }
                Err(fault) if fault.wants_reply => self.reply = line_of(&fault.reply()).ok(),
                Err(fault) => tracing::debug!(why = fault.why(), "ignored a message"),
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Pipes<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let out = self.out.clone();
        async move {
            let out = out.ok_or(io::ErrorKind::NotConnected)?;
            out.send(line_of(&message)?).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.next().await;
        if message.is_none() {
            self.gone.cancel();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out = None;
        Ok(())
    }
}

fn line_of(message: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            writer.write_all(&line).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            tracing::info!(%error, "the client reads no more");
            return;
        }
    }
}

/// What was read.
#[derive(Debug, PartialEq)]
enum Line {
    /// Without its end.
    Whole(Vec<u8>),
    /// The rest of it is skipped.
    TooLong,
}

/// Lines of a stream, of which none takes more memory than it may.
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    most: usize,
    /// Whether what comes up to the next end of a line belongs to one that was too long.
    skips: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(reader: R, most: usize) -> Self {
        Self { reader: BufReader::with_capacity(BUFFER, reader), line: Vec::new(), most, skips: false }
    }

    /// The next line, `None` at the end. May be given up and called again: what was read is kept here.
    async fn next(&mut self) -> Option<Line> {
        loop {
            let read = match self.reader.fill_buf().await {
                Ok(read) => read,
                Err(error) => {
                    tracing::warn!(%error, "standard input cannot be read");
                    return None;
                }
            };
            if read.is_empty() {
                let last = std::mem::take(&mut self.line);
                return (!last.is_empty()).then_some(Line::Whole(last));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            let fits = !self.skips && self.line.len() + part.len() <= self.most;
            if fits {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            let was_told = std::mem::replace(&mut self.skips, !fits && end.is_none());
            if !fits {
                self.line = Vec::new();
                if !was_told {
                    return Some(Line::TooLong);
                }
            } else if end.is_some() {
                return Some(Line::Whole(std::mem::take(&mut self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], most: usize) -> Vec<Line> {
        let mut lines = Lines::new(input, most);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await {
            found.push(line);
        }
        found
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_end_with_a_newline_or_with_the_stream() {
        assert_eq!(lines(b"one\n\ntwo", 10).await, [whole("one"), whole(""), whole("two")]);
        assert_eq!(lines(b"", 10).await, []);
    }

    #[tokio::test]
    async fn a_long_line_is_told_once_and_the_next_one_is_whole() {
        assert_eq!(lines(b"12345\n123456\n1\n", 5).await, [whole("12345"), Line::TooLong, whole("1")]);
        let mut input = vec![b'x'; 5 * BUFFER];
        input.extend_from_slice(b"\nnext\n");
        assert_eq!(lines(&input, 10).await, [Line::TooLong, whole("next")]);
        input.truncate(5 * BUFFER);
        assert_eq!(lines(&input, 2 * BUFFER).await, [Line::TooLong], "one that never ends");
    }

    #[tokio::test]
    async fn a_read_that_was_given_up_goes_on_where_it_was() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut lines = Lines::new(server, 100);
        client.write_all(b"half a ").await.unwrap();
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), lines.next()).await.is_err());
        client.write_all(b"line\n").await.unwrap();
        assert_eq!(lines.next().await, Some(whole("half a line")));
    }

    #[tokio::test]
    async fn a_client_that_reads_no_more_is_gone() {
        let (_input, reader) = tokio::io::duplex(64);
        let (output, writer) = tokio::io::duplex(64);
        let gone = CancellationToken::new();
        let (mut pipes, written) = Pipes::new(reader, writer, gone.clone());
        drop(output);
        let reply = JsonRpcMessage::error(rmcp::ErrorData::internal_error("x", None), None);
        let _ = pipes.send(reply).await;
        written.await.unwrap();
        assert!(pipes.receive().await.is_none());
        assert!(gone.is_cancelled());
    }
}
