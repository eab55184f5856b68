//! Which turns are known, in what order they began, and which of them are over.
//!
//! A line is dated by its arrival, and a hook may arrive seconds after what it tells of, or out of order. Where lines
//! name their turn, that orders them: a line of a turn that is over, or older than another one, is late.

use serde::{Deserialize, Serialize};

/// How many turns to keep.
const KEPT: usize = 16;

/// The turns that lines have named, oldest first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turns {
    known: Vec<Turn>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Turn {
    id: String,
    over: bool,
}

impl Turns {
    /// Notes that a line named this turn. A turn that no line has named before is the newest one.
    pub(super) fn name(&mut self, id: &str) {
        if self.find(id).is_some() {
            return;
        }
        if self.known.len() >= KEPT {
            self.known.remove(0);
        }
        self.known.push(Turn { id: id.to_owned(), over: false });
    }

    /// Notes that this turn is over.
    pub(super) fn end(&mut self, id: &str) {
        self.known.iter_mut().filter(|turn| turn.id == id).for_each(|turn| turn.over = true);
    }

    /// Whether a newer turn is known than this one.
    pub(in crate::classify) fn is_past(&self, id: &str) -> bool {
        self.find(id).is_some_and(|at| at + 1 < self.known.len())
    }

    /// Whether this turn is over.
    pub(in crate::classify) fn is_over(&self, id: &str) -> bool {
        self.find(id).and_then(|at| self.known.get(at)).is_some_and(|turn| turn.over)
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.known.iter().position(|turn| turn.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_past_once_a_newer_one_is_named() {
        let mut turns = Turns::default();
        turns.name("a");
        assert!(!turns.is_past("a") && !turns.is_over("a"));
        turns.end("a");
        turns.name("b");
        turns.name("a");
        assert!(turns.is_past("a") && turns.is_over("a"));
        assert!(!turns.is_past("b") && !turns.is_past("unknown") && !turns.is_over("unknown"));
    }

    #[test]
    fn only_the_last_turns_are_kept() {
        let mut turns = Turns::default();
        (0..100).for_each(|number| turns.name(&number.to_string()));
        assert_eq!(turns.known.len(), KEPT);
        assert!(turns.is_past("98") && !turns.is_past("99"));
    }
}
