//! The protocol with the shell, with an ear for what nu-plugin keeps to itself: that nobody reads a stream any more.
//!
//! After `lisa watch | first 2` the shell drops the stream. nu-plugin notices when the next row is written, which may be
//! tomorrow: until then a thread and a tmux client would wait for it. The rows of a stream are made and written by one
//! thread, so that thread knows which stream is its own.

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
    /// The stream that this thread writes.
    static OWN: Cell<Option<StreamId>> = const { Cell::new(None) };
}

/// The streams that are written and read. One process serves one shell, so there is one such set.
static READ: Mutex<BTreeSet<StreamId>> = Mutex::new(BTreeSet::new());

fn read() -> MutexGuard<'static, BTreeSet<StreamId>> {
    READ.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether nobody reads the stream any more that this thread writes.
pub(crate) fn abandoned() -> bool {
    OWN.get().is_some_and(|own| !read().contains(&own))
}

/// MessagePack as Nushell speaks it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wire;

impl PluginEncoder for Wire {
    fn name(&self) -> &str {
        MsgPackSerializer.name()
    }
}

impl Encoder<PluginInput> for Wire {
    fn encode(&self, data: &PluginInput, writer: &mut impl Write) -> Result<(), ShellError> {
        MsgPackSerializer.encode(data, writer)
    }

    fn decode(&self, reader: &mut impl BufRead) -> Result<Option<PluginInput>, ShellError> {
        let message = MsgPackSerializer.decode(reader)?;
        if let Some(PluginInput::Drop(id)) = &message {
            read().remove(id);
        }
        Ok(message)
    }
}

impl Encoder<PluginOutput> for Wire {
    fn encode(&self, data: &PluginOutput, writer: &mut impl Write) -> Result<(), ShellError> {
        match data {
            PluginOutput::Data(id, _) if OWN.get() != Some(*id) => {
                OWN.set(Some(*id));
                read().insert(*id);
            }
            PluginOutput::End(id) => {
                OWN.set(None);
                read().remove(id);
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

    fn say(message: PluginOutput) {
        Wire.encode(&message, &mut Vec::new()).unwrap();
    }

    fn hear(message: PluginInput) {
        let mut bytes = Vec::new();
        MsgPackSerializer.encode(&message, &mut bytes).unwrap();
        let heard: Option<PluginInput> = Wire.decode(&mut bytes.as_slice()).unwrap();
        assert!(heard.is_some());
    }

    #[test]
    fn a_stream_is_abandoned_when_the_shell_drops_it_and_no_other_is() {
        let row = |id| PluginOutput::Data(id, StreamData::List(Value::test_int(1)));
        assert!(!abandoned(), "a thread that has written nothing");
        say(row(900_001));
        say(row(900_001));
        assert!(!abandoned());
        hear(PluginInput::Drop(900_002));
        assert!(!abandoned(), "another stream");
        hear(PluginInput::Drop(900_001));
        assert!(abandoned());
        assert!(!std::thread::spawn(abandoned).join().unwrap(), "another thread");
        say(PluginOutput::End(900_001));
        assert!(!abandoned(), "the thread may write another stream");
    }
}
