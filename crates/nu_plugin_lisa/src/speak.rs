//! The engine's advice in the words of this shell. Engine texts name operations as the API does; here they are
//! commands and flags.

/// Operations and what they are called here.
const WORDS: &[(&str, &str)] = &[
    ("spawn_session", "lisa session spawn"),
    ("send_input to go on", "lisa session send to go on"),
    ("send_input to ", "lisa session send "),
    ("send_input", "lisa session send"),
    ("answer_prompt for", "lisa session answer"),
    ("answer_prompt", "lisa session answer"),
    ("wait_sessions with", "lisa session monitor"),
    ("wait_sessions", "lisa session monitor"),
    ("session_status", "lisa session status"),
    ("list_sessions", "lisa session list"),
    ("read_session", "lisa session capture"),
    ("interrupt_session", "lisa session interrupt"),
    ("kill_session", "lisa session kill"),
    ("resume_session", "lisa session resume"),
    ("explain_session", "lisa session explain"),
    ("or doctor", "or lisa doctor"),
    ("list the sessions to see which there are", "`lisa session list` shows which there are"),
    ("give the `turn` of a receipt", "pipe in what `lisa session send` returned, or give --turn"),
    ("wait again with the same cursor", "wait again"),
    ("leave `since` out", "leave --since out"),
    ("`dangerous`", "--dangerous"),
    ("send with queue", "send with --queue"),
    ("view=", "--view "),
    ("since=", "--since "),
    ("replace_draft", "--replace-draft"),
    ("prompt_id", "--prompt-id"),
];

/// A text of the engine as a user of this shell would say it.
pub(crate) fn here(text: &str) -> String {
    let mut said = WORDS.iter().fold(text.to_owned(), |said, (there, here)| said.replace(there, here));
    // A list of one session is just its name.
    if let Some((before, rest)) = said.split_once("sessions=[\"")
        && let Some((name, after)) = rest.split_once("\"]")
    {
        // A monitor begins with how things stand, so it needs no cursor.
        let after = after
            .strip_prefix(", --since ")
            .map_or(after, |cursor| cursor.trim_start_matches(|digit: char| digit.is_ascii_digit()));
        said = format!("{before}{name}{after}");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::here;

    #[test]
    fn advice_names_commands_of_this_shell() {
        for (there, said) in [
            ("wait_sessions with sessions=[\"docs\"]", "lisa session monitor docs"),
            ("wait_sessions with sessions=[\"docs\"], since=139", "lisa session monitor docs"),
            ("send_input to docs with what to do instead", "lisa session send docs with what to do instead"),
            (
                "then send_input to go on or kill_session",
                "then lisa session send to go on or lisa session kill",
            ),
            (
                "answer_prompt for docs: choose one of prompt.options and give prompt_id",
                "lisa session answer docs: choose one of prompt.options and give --prompt-id",
            ),
            ("look with read_session view=screen", "look with lisa session capture --view screen"),
            ("explain_session docs, or doctor", "lisa session explain docs, or lisa doctor"),
            ("did you mean fix-login?", "did you mean fix-login?"),
        ] {
            assert_eq!(here(there), said);
        }
    }
}
