//! Which option an answer means, and which keys choose it. Pure: prompts in, keys out.

use crate::{
    error::{Error, Kind, Result, printable},
    profile::{Keys, OptionStyle},
    words::{Effect, Prompt, PromptOption},
};

/// The option that a choice names: by its key, its effect, its label, or the beginning of its label.
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
            format!("`{}` is none of the options", printable(choice)),
            format!("choose one of {}{cut}", options.join(", ")),
        )
    })
}

/// The keys that choose one option and, in a prompt that takes one, answer it.
pub fn keys(prompt: &Prompt, option: &PromptOption, keys: &Keys) -> Vec<String> {
    let style = keys.choose_in.get(&prompt.kind).copied().unwrap_or(keys.choose);
    let digit = option.key.len() == 1 && option.key.bytes().all(|byte| byte.is_ascii_digit());
    let by_arrows = |back: &str, on: &str| {
        let at = |wanted: &PromptOption| {
            prompt.options.iter().position(|option| option.key == wanted.key).unwrap_or(0)
        };
        let selected = prompt.options.iter().find(|option| option.selected).map_or(0, at);
        let target = at(option);
        let (key, steps) =
            if target < selected { (back, selected - target) } else { (on, target - selected) };
        let mut pressed = vec![key.to_owned(); steps];
        pressed.push("Enter".to_owned());
        pressed
    };
    match style {
        OptionStyle::Digit if digit => vec![option.key.clone()],
        OptionStyle::DigitEnter if digit => vec![option.key.clone(), "Enter".to_owned()],
        OptionStyle::Horizontal => by_arrows("Left", "Right"),
        OptionStyle::Digit | OptionStyle::DigitEnter | OptionStyle::Vertical => by_arrows("Up", "Down"),
    }
}

/// The keys that tick an option in a list that takes several.
pub fn tick(prompt: &Prompt, option: &PromptOption) -> Vec<String> {
    if option.checked == Some(true) {
        return Vec::new();
    }
    if option.key.len() == 1 && option.key.bytes().all(|byte| byte.is_ascii_digit()) {
        return vec![option.key.clone()];
    }
    let selected = prompt.options.iter().position(|option| option.selected).unwrap_or(0);
    let target = prompt.options.iter().position(|other| other.key == option.key).unwrap_or(0);
    let (key, steps) =
        if target < selected { ("Up", selected - target) } else { ("Down", target - selected) };
    let mut pressed = vec![key.to_owned(); steps];
    pressed.push("Space".to_owned());
    pressed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::PromptKind;

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
        let with = |choose| Keys { choose, ..Keys::default() };
        assert_eq!(keys(&prompt, &prompt.options[2], &with(OptionStyle::Digit)), ["3"]);
        assert_eq!(keys(&prompt, &prompt.options[2], &with(OptionStyle::DigitEnter)), ["3", "Enter"]);
        assert_eq!(
            keys(&prompt, &prompt.options[2], &with(OptionStyle::Vertical)),
            ["Down", "Down", "Enter"]
        );
        assert_eq!(keys(&prompt, &prompt.options[0], &with(OptionStyle::Horizontal)), ["Enter"]);
    }
}
