//! Who plays what.

/// One agent's part.
pub(super) struct Part {
    /// The session's name.
    pub(super) name: &'static str,
    /// What a person would ask of it.
    task: &'static str,
    /// What the scripted agent does about it.
    steps: &'static [&'static str],
    /// What its prompt is answered with, where it has one.
    pub(super) answer: Option<&'static str>,
}

impl Part {
    /// The whole text that is sent.
    pub(super) fn prompt(&self) -> String {
        format!("{}\n{}", self.task, self.steps.join("\n"))
    }
}

/// Everybody: a long turn, a permission that is answered by its effect, a question that is answered by a label.
pub(super) const CAST: &[Part] = &[
    Part {
        name: "refactor",
        task: "Split the parser into modules.",
        steps: &[
            "!todo [ ] read the parser / [ ] move the tokens / [ ] run the tests",
            "!think 2s",
            "!tool Read src/parser.rs 2s",
            "!todo [x] read the parser / [ ] move the tokens / [ ] run the tests",
            "!think 2s",
            "!todo [x] read the parser / [x] move the tokens / [ ] run the tests",
            "!tool Bash \"cargo test\" 3s 42 tests passed",
            "!todo [x] read the parser / [x] move the tokens / [x] run the tests",
            "!say The parser is three modules now, and its 42 tests pass.",
        ],
        answer: None,
    },
    Part {
        name: "clean",
        task: "Make room on the disk.",
        steps: &[
            "!think 1s",
            "!permission Bash rm -rf build/cache",
            "!say The cache is gone: 3 GB are free.",
        ],
        answer: Some("allow_once"),
    },
    Part {
        name: "store",
        task: "Keep the results somewhere.",
        steps: &[
            "!think 3s",
            "!ask Storage | Where shall the results go? | SQLite: one file | Postgres: a server",
            "!think 1s",
            "!say The results go there from now on.",
        ],
        answer: Some("SQLite"),
    },
];
