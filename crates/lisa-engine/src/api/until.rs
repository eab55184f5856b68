//! What to wait for.

use super::{
    Session,
    words::{Attention, StateName, Status},
};

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The session needs somebody, or has something to look at.
    Attention,
    /// The end of a turn.
    Turn,
    /// Any event.
    Event,
    /// A status.
    Status(Status),
    /// A state.
    State(StateName),
}

impl Until {
    /// Every word to wait for: the three special ones, then statuses, then states.
    pub const WORDS: &'static [&'static str] = {
        const OWN: [&str; 3] = ["attention", "turn", "event"];
        const COUNT: usize = OWN.len() + Status::ALL.len() + StateName::ALL.len();
        const WORDS: [&str; COUNT] = {
            let mut words = [""; COUNT];
            let mut i = 0;
            while i < COUNT {
                words[i] = if i < OWN.len() {
                    OWN[i]
                } else if i < OWN.len() + Status::ALL.len() {
                    Status::ALL[i - OWN.len()].as_str()
                } else {
                    StateName::ALL[i - OWN.len() - Status::ALL.len()].as_str()
                };
                i += 1;
            }
            words
        };
        &WORDS
    };

    /// Parses a word.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "attention" => Some(Self::Attention),
            "turn" => Some(Self::Turn),
            "event" => Some(Self::Event),
            _ => Status::parse(word).map(Self::Status).or_else(|| StateName::parse(word).map(Self::State)),
        }
    }

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Turn => "turn",
            Self::Event => "event",
            Self::Status(status) => status.as_str(),
            Self::State(state) => state.as_str(),
        }
    }

    /// Whether the session satisfies the wait as it is now. Always false for `turn` and `event`, which are not states.
    pub fn fits(self, session: &Session) -> bool {
        match self {
            Self::Attention => {
                let settled = !matches!(session.state, StateName::Starting | StateName::Working);
                settled && session.attention != Attention::Autonomous
            }
            Self::Status(status) => session.status == status,
            Self::State(state) => session.state == state,
            Self::Turn | Self::Event => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_understood_and_stays_itself() {
        for word in Until::WORDS {
            assert_eq!(Until::parse(word).map(Until::as_str), Some(*word));
        }
        assert_eq!(Until::parse("nonsense"), None);
    }
}
