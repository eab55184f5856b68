//! Fuzz targets: every parser of foreign bytes as a function of bytes.
//!
//! Each target takes any input, runs the code that reads such bytes in a live session, and asserts its invariants. A
//! panic, an input that takes seconds, and one that takes hundreds of megabytes are findings. `cargo xtask fuzz` runs
//! the targets; `fuzz/corpus` has seed inputs.
//!
//! Targets are deterministic and do no IO, except those for code that reads a directory: they use a scratch directory.

mod agents;
mod files;
mod input;
mod recordings;
mod screens;
mod sessions;
mod tmux;

/// One parser, or several that read the same bytes in turn.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, also of its corpus, dictionary and findings.
    pub name: &'static str,
    /// What it feeds with the input.
    pub what: &'static str,
    /// Runs one input.
    pub run: fn(&[u8]),
}

/// Every target of the engine.
pub const TARGETS: &[Target] = &[
    Target {
        name: "tmux_messages",
        what: "the tmux server's messages, in pieces as a socket cuts them",
        run: tmux::messages,
    },
    Target { name: "tmux_panes", what: "rows of list-panes, and the version", run: tmux::panes },
    Target {
        name: "tmux_captures",
        what: "pane fields and captured screens in one reply",
        run: tmux::captures,
    },
    Target {
        name: "escapes",
        what: "text with escape sequences, tabs and control bytes",
        run: screens::escapes,
    },
    Target {
        name: "screens",
        what: "consecutive screens of each agent, judged with the memory of the previous ones",
        run: screens::judged,
    },
    Target {
        name: "hooks",
        what: "payloads that an agent's hooks get, through hooks.jsonl to the verdict",
        run: agents::hooks,
    },
    Target {
        name: "hook_file",
        what: "a hooks.jsonl that grows and is truncated while it is read",
        run: agents::hook_file,
    },
    Target { name: "transcripts", what: "lines of each agent's transcript", run: agents::transcripts },
    Target { name: "native", what: "state files that each agent keeps about itself", run: agents::native },
    Target {
        name: "processes",
        what: "lines of /proc/PID/stat, with any name in them",
        run: agents::processes,
    },
    Target {
        name: "profiles",
        what: "a user's own profile, used on a screen where it loads",
        run: files::profiles,
    },
    Target { name: "config", what: "config.toml and the environment", run: files::config },
    Target { name: "records", what: "state.json, meta.json and done files", run: sessions::records },
    Target { name: "journal", what: "a journal segment, read and appended to", run: sessions::journal },
    Target { name: "door", what: "questions to the observer and its answers", run: sessions::door },
    Target {
        name: "recordings",
        what: "a recording, plain or gzipped, replayed and recorded again",
        run: recordings::replayed,
    },
];
