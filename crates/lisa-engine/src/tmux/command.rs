//! A tmux command as a list of words, in the two notations that tmux takes.

/// One tmux command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cmd(Vec<Word>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Text(String),
    /// Commands as a single argument, as `if-shell` takes them.
    List(Vec<Cmd>),
}

impl Cmd {
    /// A command without arguments.
    pub fn new(name: &str) -> Self {
        Self(vec![Word::Text(name.to_owned())])
    }

    /// Adds an argument, byte for byte.
    #[must_use]
    pub fn arg(mut self, word: impl Into<String>) -> Self {
        self.0.push(Word::Text(word.into()));
        self
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<const N: usize>(mut self, words: [&str; N]) -> Self {
        self.0.extend(words.map(|word| Word::Text(word.to_owned())));
        self
    }

    /// Adds commands as a single argument.
    #[must_use]
    pub fn list(mut self, commands: &[Cmd]) -> Self {
        self.0.push(Word::List(commands.to_vec()));
        self
    }

    /// The command's name.
    pub fn name(&self) -> &str {
        match self.0.first() {
            Some(Word::Text(name)) => name,
            _ => "",
        }
    }

    /// The command as arguments of a `tmux` process; only a trailing `;` is special there.
    pub(super) fn to_argv(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|word| match word {
                Word::Text(text) => match text.strip_suffix(';') {
                    Some(head) => format!("{head}\\;"),
                    None => text.clone(),
                },
                Word::List(commands) => line(commands),
            })
            .collect()
    }

    /// The command as text that tmux parses back into the same words.
    fn to_text(&self) -> String {
        let words: Vec<String> = self
            .0
            .iter()
            .map(|word| match word {
                Word::Text(text) => quote(text),
                Word::List(commands) => quote(&line(commands)),
            })
            .collect();
        words.join(" ")
    }
}

/// Commands as one line of text, for an argument of another command.
pub(super) fn line(commands: &[Cmd]) -> String {
    commands.iter().map(Cmd::to_text).collect::<Vec<_>>().join(" ; ")
}

/// Quotes a word for tmux's parser. Inside single quotes only the quote itself and a newline (which would end the
/// command) are special.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:@%,./+".contains(c);
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with(['%', '~']) {
        return word.to_owned();
    }
    let mut out = String::with_capacity(word.len() + 2);
    out.push('\'');
    for c in word.chars() {
        match c {
            '\'' => out.push_str("'\\''"),
            '\n' => out.push_str("'\"\\n\"'"),
            '\r' => out.push_str("'\"\\r\"'"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_special_characters_are_quoted() {
        let command = Cmd::new("set-buffer").arg("a b; #{x} $HOME ~ 'q'\nz").arg("%3").arg("");
        assert_eq!(command.to_text(), "set-buffer 'a b; #{x} $HOME ~ '\\''q'\\'''\"\\n\"'z' '%3' ''");
    }

    #[test]
    fn a_trailing_semicolon_is_no_separator_in_argv() {
        assert_eq!(Cmd::new("send-keys").arg("foo;").to_argv(), ["send-keys", "foo\\;"]);
    }

    #[test]
    fn a_list_within_a_command_is_one_word() {
        let inner = [
            Cmd::new("copy-mode").args(["-q", "-t", "%1"]),
            Cmd::new("display-message").args(["-p", "it's"]),
        ];
        let outer = Cmd::new("if-shell").args(["-F", "#{pane_dead}"]).list(&inner);
        assert_eq!(outer.to_argv()[3], "copy-mode -q -t '%1' ; display-message -p 'it'\\''s'");
    }
}
