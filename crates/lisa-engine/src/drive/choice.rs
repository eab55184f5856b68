//! Which option a choice means, and which keys choose it. Pure functions.

use crate::{
    api::words::{Effect, Prompt, PromptKind, PromptOption},
    classify::profile::{Keys, OptionStyle},
    classify::prompt::ESCAPE,
    error::{Error, Kind, Result, printable},
};

/// The option that a choice refers to: by key, effect, label, or start of the label.
pub fn find<'a>(prompt: &'a Prompt, choice: &str) -> Result<&'a PromptOption> {
    let choice = choice.trim();
    let plain = |label: &str| label.trim().trim_end_matches(['.', '…']).to_lowercase();
    let wanted = plain(choice);
    let by_key = prompt.options.iter().find(|option| option.key.eq_ignore_ascii_case(choice));
    let effect = Effect::parse(&wanted).filter(|effect| !matches!(effect, Effect::Choose | Effect::Other));
    let by_effect = || effect.and_then(|effect| prompt.options.iter().find(|option| option.effect == effect));
    let by_label = || prompt.options.iter().find(|option| plain(&option.label) == wanted);
    let by_start = || {
        let mut fits = prompt
            .options
            .iter()
            .filter(|option| !wanted.is_empty() && plain(&option.label).starts_with(&wanted));
        fits.next().filter(|_| fits.next().is_none())
    };
    by_key.or_else(by_effect).or_else(by_label).or_else(by_start).ok_or_else(|| {
        let options: Vec<String> =
            prompt.options.iter().map(|option| format!("{} ({})", option.key, option.label)).collect();
        let cut = if prompt.truncated { "; the dialog is cut off, so there may be more" } else { "" };
        Error::new(
            Kind::UnknownChoice,
            format!("`{}` is not one of the options", printable(choice)),
            format!("choose one of {}{cut}", options.join(", ")),
        )
        .about(choice)
    })
}

/// How to choose an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Its key alone.
    Key,
    /// Its key, then Enter.
    KeyEnter,
    /// Arrow keys (back, forward) until it is selected, then Enter.
    Arrows(&'static str, &'static str),
    /// The key that closes the dialog.
    Dismiss,
}

/// How to choose this option, with the agent's own keys.
pub fn way(option: &PromptOption, keys: &Keys) -> Way {
    if option.key == ESCAPE {
        return Way::Dismiss;
    }
    match keys.choose {
        OptionStyle::Digit if is_digit(&option.key) => Way::Key,
        OptionStyle::DigitEnter if is_digit(&option.key) => Way::KeyEnter,
        OptionStyle::Horizontal => Way::Arrows("Left", "Right"),
        OptionStyle::Digit | OptionStyle::DigitEnter | OptionStyle::Vertical => Way::Arrows("Up", "Down"),
    }
}

/// Whether an option's key is a single digit that can be pressed.
pub fn is_digit(key: &str) -> bool {
    key.len() == 1 && key.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a choice that isn't one of the options means to deny the prompt, which closing it does. Doesn't apply to
/// dialogs of the program itself, since closing one may exit the agent.
pub fn denies(prompt: &Prompt, choice: &str) -> bool {
    let wanted = Effect::parse(&choice.trim().to_lowercase());
    wanted == Some(Effect::Deny) && prompt.kind != PromptKind::Dialog
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(key: &str, label: &str, effect: Effect) -> PromptOption {
        PromptOption { key: key.into(), label: label.into(), selected: key == "1", checked: None, effect }
    }

    fn permission() -> Prompt {
        Prompt {
            id: "x".into(),
            kind: PromptKind::Permission,
            dialog: None,
            title: "Allow?".into(),
            body: String::new(),
            tool: None,
            command: None,
            file: None,
            options: vec![
                option("1", "Yes", Effect::AllowOnce),
                option("2", "Yes, and don't ask again", Effect::AllowAlways),
                option("3", "No, and tell it what to do", Effect::Deny),
            ],
            multi: false,
            free_text: false,
            truncated: false,
            step: None,
            disagrees: false,
        }
    }

    #[test]
    fn an_option_is_found_by_key_effect_label_or_a_unique_beginning() {
        let prompt = permission();
        let key = |choice: &str| find(&prompt, choice).map(|option| option.key.clone());
        assert_eq!(key("2").unwrap(), "2");
        assert_eq!(key("deny").unwrap(), "3");
        assert_eq!(key("allow_always").unwrap(), "2");
        assert_eq!(key("yes").unwrap(), "1");
        assert_eq!(key("no").unwrap(), "3");
        let error = key("maybe").unwrap_err();
        assert_eq!(error.kind(), Kind::UnknownChoice);
        assert!(error.hint().contains("3 (No, and tell it what to do)"));
    }

    #[test]
    fn a_beginning_that_fits_two_is_no_choice() {
        let mut prompt = permission();
        prompt.options[0].label = "Yes, once".into();
        assert!(find(&prompt, "yes").is_err());
    }

    #[test]
    fn the_keys_follow_the_profiles_way() {
        let prompt = permission();
        let with = |choose| way(&prompt.options[2], &Keys { choose, ..Keys::default() });
        assert_eq!(with(OptionStyle::Digit), Way::Key);
        assert_eq!(with(OptionStyle::DigitEnter), Way::KeyEnter);
        assert_eq!(with(OptionStyle::Vertical), Way::Arrows("Up", "Down"));
        assert_eq!(with(OptionStyle::Horizontal), Way::Arrows("Left", "Right"));
        let tenth = option("10", "Ten", Effect::Choose);
        assert_eq!(way(&tenth, &Keys::default()), Way::Arrows("Up", "Down"));
    }

    #[test]
    fn a_prompt_without_an_option_that_denies_can_be_denied_and_a_dialog_can_not() {
        let mut prompt = permission();
        assert!(denies(&prompt, "deny") && !denies(&prompt, "3") && !denies(&prompt, "allow_once"));
        prompt.kind = PromptKind::Dialog;
        assert!(!denies(&prompt, "deny"));
    }
}
