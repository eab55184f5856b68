//! What the code looks like.

use super::source::Tree;
use crate::test::{TestFile, test_files};
use std::{collections::BTreeMap, env, path::PathBuf};

const MOST_LINES: usize = 600;

/// Written in two halves, so that this file does not break the rule it makes.
const OPEN_ENDS: &[&str] = &[
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("#[ig", "nore"),
];

/// Words that read slowly, and what to write instead. In two halves, too.
const SLOW: &[(&str, &str)] = &[
    (concat!("can ", "not"), "cannot or can't"),
    (concat!("unless ", "said"), "default: …"),
    (concat!("hear their ", "screen"), "screen readers"),
];

/// Names of people that stand for anybody in examples.
const ANYBODY: &[&str] = &["me", "x", "you", "user", "someone", "somebody", "ada", "dev"];

pub(super) fn sizes(tree: &Tree) -> Vec<String> {
    let counted = tree.rust().map(|file| (file, file.text.lines().count()));
    counted
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(file, lines)| format!("{}: {lines} lines", file.path))
        .collect()
}

pub(super) fn open_ends(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in tree.rust() {
        for (at, line) in file.text.lines().enumerate() {
            for word in OPEN_ENDS.iter().filter(|word| line.contains(**word)) {
                places.push(file.at(at + 1, &format!("has `{word}`")));
            }
        }
    }
    places
}

pub(super) fn plain_words(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    let written = |path: &str| path.ends_with(".rs") || path.ends_with(".md") || path.ends_with(".nu");
    for file in tree.files.iter().filter(|file| written(&file.path)) {
        for (at, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            for (slow, plain) in SLOW.iter().filter(|(slow, _)| line.contains(slow)) {
                places.push(file.at(at + 1, &format!("says `{slow}`; write {plain}")));
            }
        }
    }
    places
}

pub(super) fn private_paths(tree: &Tree) -> Vec<String> {
    let mut own: Vec<String> = vec![tree.root.display().to_string()];
    own.extend(env::var_os("HOME").map(|home| PathBuf::from(home).display().to_string()));
    // `/` and `/root` are on every machine.
    own.retain(|path| path.len() > "/root".len());
    let mut places = Vec::new();
    for file in &tree.files {
        for (at, line) in file.text.lines().enumerate() {
            if let Some(path) = own.iter().find(|path| line.contains(path.as_str())) {
                places.push(file.at(at + 1, &format!("has {path}")));
            } else if let Some(name) = home_of_somebody(line) {
                places.push(file.at(at + 1, &format!("has the home of `{name}`")));
            }
        }
    }
    places
}

/// The name of somebody whose home is in the line, unless it stands for anybody.
fn home_of_somebody(line: &str) -> Option<&str> {
    for home in [concat!("/ho", "me/"), concat!("/Us", "ers/")] {
        for rest in line.split(home).skip(1) {
            let end =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)).unwrap_or(rest.len());
            let name = rest.get(..end).unwrap_or_default();
            if !name.is_empty() && !ANYBODY.contains(&name) {
                return Some(name);
            }
        }
    }
    None
}

/// Test programs are chosen by name in the whole workspace, so two of one name would run as one.
pub(super) fn test_names(tree: &Tree) -> Vec<String> {
    let files = match test_files(&tree.root) {
        Ok(files) => files,
        Err(failure) => return vec![failure.line()],
    };
    let mut by_name: BTreeMap<&str, Vec<&TestFile>> = BTreeMap::new();
    for file in &files {
        by_name.entry(&file.name).or_default().push(file);
    }
    let shared = by_name.values().filter(|files| files.iter().any(|file| file.group != files[0].group));
    shared
        .map(|files| files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(" and "))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::source::Source, *};

    fn tree(text: &str) -> Tree {
        let file = Source { path: "crates/a/src/a.rs".into(), text: text.into() };
        Tree { root: "/srv/checkout/lisa".into(), files: vec![file] }
    }

    #[test]
    fn a_long_file_is_named_with_its_length() {
        assert_eq!(sizes(&tree(&"x\n".repeat(601))), ["crates/a/src/a.rs: 601 lines"]);
        assert!(sizes(&tree(&"x\n".repeat(600))).is_empty());
    }

    #[test]
    fn open_work_is_found_where_it_stands() {
        let text = format!("fn a() {{}}\n// {}: later\n", OPEN_ENDS[2]);
        assert_eq!(open_ends(&tree(&text)).len(), 1);
    }

    #[test]
    fn slow_words_are_named_with_what_to_write() {
        let places = plain_words(&tree(&format!("// It {} be read.\n", SLOW[0].0)));
        assert_eq!(places, [format!("crates/a/src/a.rs:1: says `{}`; write {}", SLOW[0].0, SLOW[0].1)]);
        assert!(plain_words(&tree("// It cannot be read.\n")).is_empty());
    }

    #[test]
    fn a_home_is_private_unless_it_is_anybody_s() {
        let home = concat!("/ho", "me/");
        assert_eq!(private_paths(&tree(&format!("at {home}hilda/src"))).len(), 1);
        assert!(private_paths(&tree(&format!("at {home}me/src and {home}user"))).is_empty());
        assert_eq!(private_paths(&tree("see /srv/checkout/lisa/target")).len(), 1);
    }
}
