//! The workspace as text: its files, and the lines of a Rust file that are code.

use crate::{
    failure::{Failure, Result},
    run,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// One file of the workspace.
pub(super) struct Source {
    /// Its path below the workspace's directory, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

/// All text files that git knows or would add.
pub(super) struct Tree {
    pub(super) root: PathBuf,
    pub(super) files: Vec<Source>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let output = run::output(Command::new("git").args(list).current_dir(root))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::new(format!("git does not list the files: {}", said.trim())));
        }
        let mut files = Vec::new();
        for path in String::from_utf8_lossy(&output.stdout).split('\0').filter(|path| !path.is_empty()) {
            // A file that is gone or is no text has no lines to check.
            if let Ok(text) = fs::read_to_string(root.join(path)) {
                files.push(Source { path: path.to_owned(), text });
            }
        }
        Ok(Self { root: root.to_path_buf(), files })
    }

    /// Every Rust file.
    pub(super) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The Rust files of what ships: `crates/*/src`, without files of tests.
    pub(super) fn shipped(&self) -> impl Iterator<Item = &Source> {
        self.rust().filter(|file| {
            let mut parts = file.path.split('/');
            parts.next() == Some("crates") && parts.nth(1) == Some("src") && !file.is_test()
        })
    }

    /// The text of one file; empty if it is not there.
    pub(super) fn text(&self, path: &str) -> &str {
        self.files.iter().find(|file| file.path == path).map_or("", |file| &file.text)
    }
}

impl Source {
    /// Whether the whole file is tests.
    fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name == "tests.rs" || name.ends_with("_tests.rs") || self.path.contains("/tests/")
    }

    /// The lines of code with their numbers: no comments, and nothing from the module of tests at the end on.
    pub(super) fn code(&self) -> Vec<(usize, &str)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut code = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let text = line.trim_start();
            let next = lines.get(at + 1).map_or("", |next| next.trim());
            if text == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{') {
                break;
            }
            let kept = without_comment(line);
            if !kept.trim().is_empty() {
                code.push((at + 1, kept));
            }
        }
        code
    }

    /// A place in the file, as compilers write it.
    pub(super) fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// A line up to its comment; `//` inside a string does not begin one.
fn without_comment(line: &str) -> &str {
    let mut in_string = false;
    let mut escaped = false;
    let mut last = ' ';
    for (at, char) in line.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' if last != '\'' => in_string = !in_string,
            '/' if last == '/' && !in_string => return line.get(..at - 1).unwrap_or_default(),
            _ => {}
        }
        last = char;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_what_is_left_without_comments_and_tests() {
        let text = "//! doc\nlet a = \"http://x\"; // why\n\n#[cfg(test)]\nmod tests {\n    secret\n}\n";
        let source = Source { path: "crates/a/src/a.rs".into(), text: text.into() };
        assert_eq!(source.code(), [(2, "let a = \"http://x\"; ")]);
    }

    #[test]
    fn a_quoted_quote_does_not_open_a_string() {
        assert_eq!(without_comment("x == '\"' // y"), "x == '\"' ");
        assert_eq!(without_comment(r#"x == "\"" // y"#), r#"x == "\"" "#);
    }

    #[test]
    fn a_file_of_test_helpers_ships_nothing() {
        let file = |path: &str| Source { path: path.into(), text: String::new() };
        let files =
            vec![file("crates/a/src/b/tests.rs"), file("crates/a/src/b.rs"), file("xtask/src/main.rs")];
        let tree = Tree { root: PathBuf::new(), files };
        assert_eq!(tree.shipped().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["crates/a/src/b.rs"]);
    }
}
