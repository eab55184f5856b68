//! The plugin protocol's encoder, which also tracks streams that the shell has dropped.
//!
//! After `lisa watch | first 2` the shell drops the stream, but nu-plugin notices only when the next row is written,
//! which may be hours later. Until then a thread would keep waiting. This encoder sees the `Drop` message at once. One
//! thread produces and writes all rows of a stream, so a thread-local holds the id of its stream.

use nu_plugin::{MsgPackSerializer, PluginEncoder};
use nu_plugin_core::Encoder;
use nu_plugin_protocol::{PluginInput, PluginOutput, StreamId};
use nu_protocol::ShellError;
use std::{
    cell::Cell,
    collections::BTreeSet,
    io::{BufRead, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

thread_local! {
    /// The stream that this thread is writing.
    static CURRENT_STREAM: Cell<Option<StreamId>> = const { Cell::new(None) };
}

/// The open streams. One process serves one shell, so one set is enough.
static OPEN_STREAMS: Mutex<BTreeSet<StreamId>> = Mutex::new(BTreeSet::new());

fn open_streams() -> MutexGuard<'static, BTreeSet<StreamId>> {
    OPEN_STREAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the shell has dropped the stream that this thread is writing.
pub(crate) fn stream_dropped() -> bool {
    CURRENT_STREAM.get().is_some_and(|own| !open_streams().contains(&own))
}

/// Nushell's MessagePack encoder, with tracking of dropped streams.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamTrackingEncoder;

impl PluginEncoder for StreamTrackingEncoder {
    fn name(&self) -> &str {
        MsgPackSerializer.name()
    }
}

impl Encoder<PluginInput> for StreamTrackingEncoder {
    fn encode(&self, data: &PluginInput, writer: &mut impl Write) -> Result<(), ShellError> {
        MsgPackSerializer.encode(data, writer)
    }

    fn decode(&self, reader: &mut impl BufRead) -> Result<Option<PluginInput>, ShellError> {
        let message = MsgPackSerializer.decode(reader)?;
        if let Some(PluginInput::Drop(id)) = &message {
            open_streams().remove(id);
        }
        Ok(message)
    }
}

impl Encoder<PluginOutput> for StreamTrackingEncoder {
    fn encode(&self, data: &PluginOutput, writer: &mut impl Write) -> Result<(), ShellError> {
        match data {
            PluginOutput::Data(id, _) if CURRENT_STREAM.get() != Some(*id) => {
                CURRENT_STREAM.set(Some(*id));
                open_streams().insert(*id);
            }
            PluginOutput::End(id) => {
                CURRENT_STREAM.set(None);
                open_streams().remove(id);
            }
            _ => {}
        }
        MsgPackSerializer.encode(data, writer)
    }

    fn decode(&self, reader: &mut impl BufRead) -> Result<Option<PluginOutput>, ShellError> {
        MsgPackSerializer.decode(reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nu_plugin_protocol::StreamData;
    use nu_protocol::Value;

    fn send(message: PluginOutput) {
        StreamTrackingEncoder.encode(&message, &mut Vec::new()).unwrap();
    }

    fn receive(message: PluginInput) {
        let mut bytes = Vec::new();
        MsgPackSerializer.encode(&message, &mut bytes).unwrap();
        let heard: Option<PluginInput> = StreamTrackingEncoder.decode(&mut bytes.as_slice()).unwrap();
        assert!(heard.is_some());
    }

    #[test]
    fn only_the_stream_that_the_shell_drops_is_dropped() {
        let row = |id| PluginOutput::Data(id, StreamData::List(Value::test_int(1)));
        assert!(!stream_dropped(), "this thread has written nothing");
        send(row(900_001));
        send(row(900_001));
        assert!(!stream_dropped());
        receive(PluginInput::Drop(900_002));
        assert!(!stream_dropped(), "another stream");
        receive(PluginInput::Drop(900_001));
        assert!(stream_dropped());
        assert!(!std::thread::spawn(stream_dropped).join().unwrap(), "another thread");
        send(PluginOutput::End(900_001));
        assert!(!stream_dropped(), "the thread may write another stream");
    }
}
