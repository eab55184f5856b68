//! Parses the `--until` flag of `lisa session monitor`.

use crate::errors::invalid_argument;
use lisa_engine::{api::Until, error::near_matches};
use nu_protocol::{LabeledError, Span};

/// Parses a value of `--until`.
pub(crate) fn parse(word: &str, span: Span) -> Result<Until, LabeledError> {
    Until::parse(word).ok_or_else(|| {
        let known: Vec<String> = Until::WORDS.iter().map(|&word| word.to_owned()).collect();
        let near = near_matches(word, &known);
        let hint = if near.is_empty() {
            format!("allowed: {}", known.join(", "))
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        invalid_argument(format!("invalid value `{word}` for --until"), hint, span)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_gets_a_suggestion() {
        let error = parse("waiting_imput", Span::test_data()).unwrap_err();
        assert!(error.help.as_deref().is_some_and(|help| help.contains("waiting_input")), "{error:?}");
    }
}
