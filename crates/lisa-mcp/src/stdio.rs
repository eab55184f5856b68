//! The stdio transport: one message per line.
//!
//! It replaces rmcp's own transport, which doesn't reply to malformed messages (see `rpc`). One task does all the
//! writing, so cancelling a read never truncates a reply, and closing standard output ends the server.

use crate::rpc::{self, RpcError};
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

/// The capacity of a pipe on Linux.
const READ_BUFFER: usize = 64 << 10;

/// Maximum number of lines queued for a client that doesn't read.
const QUEUED_LINES: usize = 64;

/// The transport to a client over two pipes.
pub(crate) struct StdioTransport<R> {
    lines: LineReader<R>,
    /// `None` once closed.
    out: Option<mpsc::Sender<Vec<u8>>>,
    /// An error reply that has not been sent yet. Kept here because `receive` may be cancelled at any time.
    reply: Option<Vec<u8>>,
    /// Whether a request has arrived. Before the first request, rmcp treats any other message as a protocol error.
    seen_request: bool,
    disconnected: CancellationToken,
}

impl<R: AsyncRead + Unpin> StdioTransport<R> {
    /// Creates the transport and the writer task, which ends when all replies are written. `disconnected` is cancelled when the
    /// client closes either pipe.
    pub(crate) fn new<W>(reader: R, writer: W, disconnected: CancellationToken) -> (Self, JoinHandle<()>)
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (out, lines) = mpsc::channel(QUEUED_LINES);
        let written = tokio::spawn(write_lines(writer, lines));
        let lines = LineReader::new(reader, rpc::MAX_MESSAGE);
        (Self { lines, out: Some(out), reply: None, seen_request: false, disconnected }, written)
    }

    /// The next message, or `None` at the end. Cancel-safe.
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
                Line::TooLong => Err(Box::new(RpcError::too_long(self.lines.max_len))),
            };
            match read {
                Ok(message) => {
                    self.seen_request |= matches!(message, JsonRpcMessage::Request(_));
                    if self.seen_request {
                        return Some(message);
                    }
                    tracing::debug!("ignored a message before the first request");
                }
                Err(error) if error.wants_reply => self.reply = to_line(&error.reply()).ok(),
                Err(error) => tracing::debug!(why = error.message(), "ignored a message"),
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for StdioTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let out = self.out.clone();
        async move {
            let out = out.ok_or(io::ErrorKind::NotConnected)?;
            out.send(to_line(&message)?).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.next().await;
        if message.is_none() {
            self.disconnected.cancel();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out = None;
        Ok(())
    }
}

fn to_line(message: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

async fn write_lines(mut writer: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            writer.write_all(&line).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            tracing::info!(%error, "the client closed its end");
            return;
        }
    }
}

/// A line of input.
#[derive(Debug, PartialEq)]
enum Line {
    /// A complete line, without the newline.
    Whole(Vec<u8>),
    /// A line above the limit; the rest of it is skipped.
    TooLong,
}

/// Reads lines with a limit on their length.
struct LineReader<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    max_len: usize,
    /// Whether bytes up to the next newline belong to a line that was too long.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(reader: R, max_len: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(READ_BUFFER, reader),
            line: Vec::new(),
            max_len,
            skipping: false,
        }
    }

    /// The next line, or `None` at the end. Cancel-safe: a partial line is kept in `self`.
    async fn next(&mut self) -> Option<Line> {
        loop {
            let read = match self.reader.fill_buf().await {
                Ok(read) => read,
                Err(error) => {
                    tracing::warn!(%error, "cannot read standard input");
                    return None;
                }
            };
            if read.is_empty() {
                let last = std::mem::take(&mut self.line);
                return (!last.is_empty()).then_some(Line::Whole(last));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            let fits = !self.skipping && self.line.len() + part.len() <= self.max_len;
            if fits {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            let was_reported = std::mem::replace(&mut self.skipping, !fits && end.is_none());
            if !fits {
                self.line = Vec::new();
                if !was_reported {
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

    async fn lines(input: &[u8], max_len: usize) -> Vec<Line> {
        let mut lines = LineReader::new(input, max_len);
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
    async fn a_long_line_is_reported_once_and_the_next_one_is_read() {
        assert_eq!(lines(b"12345\n123456\n1\n", 5).await, [whole("12345"), Line::TooLong, whole("1")]);
        let mut input = vec![b'x'; 5 * READ_BUFFER];
        input.extend_from_slice(b"\nnext\n");
        assert_eq!(lines(&input, 10).await, [Line::TooLong, whole("next")]);
        input.truncate(5 * READ_BUFFER);
        assert_eq!(lines(&input, 2 * READ_BUFFER).await, [Line::TooLong], "without a newline");
    }

    #[tokio::test]
    async fn a_cancelled_read_keeps_the_partial_line() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut lines = LineReader::new(server, 100);
        client.write_all(b"half a ").await.unwrap();
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), lines.next()).await.is_err());
        client.write_all(b"line\n").await.unwrap();
        assert_eq!(lines.next().await, Some(whole("half a line")));
    }

    #[tokio::test]
    async fn a_client_that_closes_its_end_counts_as_disconnected() {
        let (_input, reader) = tokio::io::duplex(64);
        let (output, writer) = tokio::io::duplex(64);
        let disconnected = CancellationToken::new();
        let (mut transport, written) = StdioTransport::new(reader, writer, disconnected.clone());
        drop(output);
        let reply = JsonRpcMessage::error(rmcp::ErrorData::internal_error("x", None), None);
        let _ = transport.send(reply).await;
        written.await.unwrap();
        assert!(transport.receive().await.is_none());
        assert!(disconnected.is_cancelled());
    }
}
