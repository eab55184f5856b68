//! What a monitor waits for.

use crate::errors::invalid;
use lisa_engine::{
    api::Session,
    error::near_matches,
    words::{Attention, StateName, Status},
};
use nu_protocol::{LabeledError, Span};

/// What a monitor waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// It needs somebody, or has something to show.
    Attention,
    /// The end of a turn.
    Turn,
    /// Anything at all.
    Event,
    /// A status.
    Status(Status),
    /// A state.
    State(StateName),
}

impl Until {
    /// Every word that can be waited for: the three special ones, then statuses, then states.
    pub(crate) const WORDS: &'static [&'static str] = {
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

    /// What a word says to wait for.
    pub(crate) fn parse(word: &str, span: Span) -> Result<Self, LabeledError> {
        match word {
            "attention" => return Ok(Self::Attention),
            "turn" => return Ok(Self::Turn),
            "event" => return Ok(Self::Event),
            _ => {}
        }
        Status::parse(word).map(Self::Status).or_else(|| StateName::parse(word).map(Self::State)).ok_or_else(
            || {
                let known: Vec<String> = Self::WORDS.iter().map(|&word| word.to_owned()).collect();
                let near = near_matches(word, &known);
                let hint = if near.is_empty() { known.join(", ") } else { near.join(", ") };
                invalid(format!("nothing to wait for is called `{word}`"), format!("wait for {hint}"), span)
            },
        )
    }

    /// Its word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Turn => "turn",
            Self::Event => "event",
            Self::Status(status) => status.as_str(),
            Self::State(state) => state.as_str(),
        }
    }

    /// Whether a session, as it is, is what a stream of sessions is to show.
    pub(crate) fn shows(self, session: &Session) -> bool {
        match self {
            Self::Attention => session.attention != Attention::Autonomous,
            Self::Turn => session.status != Status::InProgress && session.status != Status::JustStarted,
            Self::Event => true,
            Self::Status(status) => session.status == status,
            Self::State(state) => session.state == state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_understood_and_stays_itself() {
        for word in Until::WORDS {
            assert_eq!(Until::parse(word, Span::test_data()).unwrap().as_str(), *word);
        }
    }

    #[test]
    fn a_misspelt_word_names_the_right_one() {
        let error = Until::parse("waiting_imput", Span::test_data()).unwrap_err();
        assert!(error.help.as_deref().is_some_and(|help| help.contains("waiting_input")), "{error:?}");
    }
}
