//! What the documentation says.

use super::source::Tree;
use crate::docs::{self, Variable};
use std::collections::BTreeSet;

/// Names that look like a variable and are none, and why.
const NO_VARIABLES: &[(&str, &str)] = &[
    ("LISA_EXEC_DONE", "a marker in the output of runs to completion"),
    ("LISA_CLIENT_OF", "a mark on Lisa's own tmux clients, which no session gets"),
];

pub(super) fn variables(tree: &Tree) -> Vec<String> {
    let known = match docs::variables(tree.text(docs::CONFIG)) {
        Ok(known) => known,
        Err(failure) => return vec![failure.line()],
    };
    let known: BTreeSet<&str> =
        known.iter().flat_map(|list| list.iter().map(|v: &Variable| v.name.as_str())).collect();
    let mut places = Vec::new();
    // Tests may have variables of their own.
    for file in tree.shipped() {
        for (line, code) in file.code() {
            for name in names(code).filter(|name| !allowed(&known, name)) {
                places.push(file.at(line, &format!("{name} is not in {}", docs::CONFIG)));
            }
        }
    }
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (at, line) in file.text.lines().enumerate() {
            for name in names(line).filter(|name| !allowed(&known, name)) {
                places.push(file.at(at + 1, &format!("{name} does not exist")));
            }
        }
    }
    places
}

fn allowed(known: &BTreeSet<&str>, name: &str) -> bool {
    known.contains(name)
        || name.starts_with("LISA_TEST_")
        || NO_VARIABLES.iter().any(|(other, _)| *other == name)
}

/// Every `LISA_NAME` of a line, where it is a word of its own.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.split(move |c: char| !part_of_word(c)).filter(|word| {
        word.strip_prefix("LISA_").is_some_and(|rest| {
            !rest.is_empty() && rest.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        })
    })
}

pub(super) fn commands(tree: &Tree) -> Vec<String> {
    let readme = tree.text("README.md");
    let wanted = ["cargo xtask demo", "cargo xtask test"];
    let missing = wanted.iter().filter(|command| !readme.contains(**command));
    missing.map(|command| format!("README.md: `{command}` is not there")).collect()
}

pub(super) fn generated(tree: &Tree) -> Vec<String> {
    let readme = tree.text(docs::README);
    match docs::rewritten(readme, tree.text(docs::CONFIG)) {
        Ok(fresh) if fresh == readme => Vec::new(),
        Ok(_) => vec![format!("{}: run `cargo xtask docs`", docs::README)],
        Err(failure) => vec![failure.line()],
    }
}

pub(super) fn map_size(tree: &Tree) -> Vec<String> {
    let lines = tree.text("ARCHITECTURE.md").lines().count();
    match lines {
        0 => vec!["ARCHITECTURE.md: is missing".to_owned()],
        1..=150 => Vec::new(),
        _ => vec![format!("ARCHITECTURE.md: {lines} lines")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_whole_words() {
        let found: Vec<_> =
            names("set LISA_LOG, `LISA_MAX_DEPTH=3`; not __LISA_EXEC__, LISA_ or Lisa_x").collect();
        assert_eq!(found, ["LISA_LOG", "LISA_MAX_DEPTH"]);
    }
}
