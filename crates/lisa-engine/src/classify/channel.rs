//! The channels on which an agent publishes events: what happened, line by line.

use crate::{api::words::SignalError, classify::evidence::Source};
use serde::{Deserialize, Serialize};
use std::ops::{Index, IndexMut};

/// A channel, from the one that tells most to the one that tells least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Hooks, at the moment of the event.
    Hook,
    /// The transcript of the conversation.
    Transcript,
    /// Notifications.
    Notify,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 3] = [Self::Hook, Self::Transcript, Self::Notify];

    /// The source that evidence from this channel names.
    pub const fn source(self) -> Source {
        match self {
            Self::Hook => Source::Hook,
            Self::Transcript => Source::Transcript,
            Self::Notify => Source::Notify,
        }
    }

    /// The channel that a source names, if it names one.
    pub(crate) fn of(source: Source) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.source() == source)
    }

    /// The signal that is missing if the channel can't be read.
    pub(crate) const fn error(self) -> SignalError {
        match self {
            Self::Hook => SignalError::Hook,
            Self::Transcript => SignalError::Transcript,
            Self::Notify => SignalError::Notify,
        }
    }
}

/// One value for each channel.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PerChannel<T> {
    /// For hooks.
    pub hook: T,
    /// For the transcript.
    pub transcript: T,
    /// For notifications.
    pub notify: T,
}

impl<T> PerChannel<T> {
    /// All values, in the order of [`Channel::ALL`].
    pub const fn all(&self) -> [&T; 3] {
        [&self.hook, &self.transcript, &self.notify]
    }

    /// All values, to change.
    pub const fn all_mut(&mut self) -> [&mut T; 3] {
        [&mut self.hook, &mut self.transcript, &mut self.notify]
    }
}

impl<T> Index<Channel> for PerChannel<T> {
    type Output = T;

    fn index(&self, channel: Channel) -> &T {
        match channel {
            Channel::Hook => &self.hook,
            Channel::Transcript => &self.transcript,
            Channel::Notify => &self.notify,
        }
    }
}

impl<T> IndexMut<Channel> for PerChannel<T> {
    fn index_mut(&mut self, channel: Channel) -> &mut T {
        match channel {
            Channel::Hook => &mut self.hook,
            Channel::Transcript => &mut self.transcript,
            Channel::Notify => &mut self.notify,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_has_its_own_value_and_source() {
        let mut values = PerChannel::default();
        for (number, channel) in Channel::ALL.into_iter().enumerate() {
            values[channel] = number;
            assert_eq!(Channel::of(channel.source()), Some(channel));
        }
        assert_eq!(values.all(), [&0, &1, &2]);
        assert_eq!(values.all_mut().map(|value| *value), Channel::ALL.map(|channel| values[channel]));
        assert_eq!(Channel::of(Source::Screen), None);
    }
}
