//! Finds an agent's own files: fills in the paths of a profile for one session.

use super::Meta;
use crate::classify::profile::{Feed, FeedSource, OpenFile, Profile};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

/// The file in a session's directory with what the hook command received.
pub const HOOKS: &str = "hooks.jsonl";

/// The values that a profile's path can refer to.
#[derive(Debug, Clone, Copy)]
pub struct PathContext<'a> {
    /// The session.
    pub meta: &'a Meta,
    /// Its directory.
    pub dir: &'a Path,
    /// The agent's process.
    pub pid: Option<u32>,
    /// The agent's own conversation id.
    pub session_id: Option<&'a str>,
}

/// The directories that a profile's paths refer to by environment variable, with the values of the agent's
/// environment. They are saved in the metadata, because a later look has another environment.
pub fn env_dirs(profile: &Profile, env: &[(OsString, OsString)]) -> BTreeMap<String, PathBuf> {
    let value =
        |name: &str| env.iter().rev().find(|(key, _)| key == OsStr::new(name)).map(|(_, value)| value);
    let mut dirs = BTreeMap::new();
    for path in profile.paths() {
        for name in names(path).filter_map(|name| name.split_once(':').map(|(name, _)| name)) {
            if let Some(value) = value(name).filter(|value| !value.is_empty()) {
                dirs.insert(name.to_owned(), PathBuf::from(value));
            }
        }
    }
    if let Some(home) = value("HOME") {
        dirs.insert("HOME".to_owned(), PathBuf::from(home));
    }
    dirs
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

/// The file that a path of a profile stands for; the newest one if several match. `None` if a value isn't known yet or
/// no file exists.
pub fn locate(path: &str, context: PathContext<'_>) -> Option<PathBuf> {
    let mut filled = String::new();
    let mut rest = path;
    while let Some((head, tail)) = rest.split_once('{') {
        let (name, after) = tail.split_once('}')?;
        filled.push_str(head);
        filled.push_str(&value(name, context)?);
        rest = after;
    }
    filled.push_str(rest);
    if filled.contains('*') { newest_match(&filled) } else { Some(PathBuf::from(filled)) }
}

fn value(name: &str, context: PathContext<'_>) -> Option<String> {
    let text = |path: &Path| path.to_str().map(str::to_owned);
    match name.split_once(':') {
        None => match name {
            "pid" => context.pid.map(|pid| pid.to_string()),
            "session_id" => context.session_id.map(str::to_owned),
            "directory" => text(context.dir),
            _ => None,
        },
        Some((name, default)) => match (context.meta.places.get(name), default.strip_prefix("~/")) {
            (Some(place), _) => text(place),
            (None, Some(below)) => text(&context.meta.places.get("HOME")?.join(below)),
            (None, None) => Some(default.to_owned()),
        },
    }
}

fn newest_match(pattern: &str) -> Option<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for part in Path::new(pattern).components().skip(1) {
        let part = part.as_os_str().to_str()?;
        if !part.contains('*') {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        found = found
            .iter()
            .filter_map(|dir| fs::read_dir(dir).ok())
            .flat_map(Iterator::flatten)
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| fits(name, part)))
            .map(|entry| entry.path())
            .collect();
    }
    found
        .into_iter()
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .max()
        .map(|(_, path)| path)
}

/// The file of a feed; `title` is the pane's.
pub fn feed_file(feed: &Feed, context: PathContext<'_>, title: Option<&str>) -> Option<PathBuf> {
    match feed.from.as_ref()? {
        FeedSource::Hook => Some(context.dir.join(HOOKS)),
        FeedSource::File(path) => locate(path, context),
        FeedSource::Open(file) => open_file(file, context.pid?, title),
    }
}

/// The matching file that a process has open. If it has several, the one whose conversation is in the title; if the
/// title names yet another conversation, that one hasn't been written yet.
fn open_file(file: &OpenFile, pid: u32, title: Option<&str>) -> Option<PathBuf> {
    let open = open_files(pid, &file.path);
    let named = file
        .titled
        .as_ref()
        .zip(title)
        .and_then(|(pattern, title)| pattern.captures(title)?.get(1).map(|id| id.as_str().to_owned()));
    match named {
        Some(id) => open.into_iter().find(|path| path.to_string_lossy().contains(&id)),
        None => open.into_iter().next(),
    }
}

/// The open files of a process whose paths end like the pattern. The first one opened is the session's own; later ones
/// belong to subagents, or to a conversation that was started anew.
#[cfg(target_os = "linux")]
fn open_files(pid: u32, pattern: &str) -> Vec<PathBuf> {
    let pattern = format!("*{pattern}");
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut descriptors: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    descriptors.sort_unstable();
    let paths = descriptors.into_iter().filter_map(|descriptor| {
        let path = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
        fits(path.to_str()?, &pattern).then_some(path)
    });
    paths.collect()
}

/// Other systems don't tell which files a process has open.
#[cfg(not(target_os = "linux"))]
fn open_files(_pid: u32, _pattern: &str) -> Vec<PathBuf> {
    Vec::new()
}

/// Whether text matches a pattern in which `*` matches any text.
pub fn fits(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return text.is_empty() };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::profile::Profiles;

    #[test]
    fn a_star_fits_any_text() {
        assert!(fits("git status --short", "git status*"));
        assert!(fits("abc", "a*c") && fits("ac", "a*c") && fits("abc", "abc") && fits("x", "*"));
        assert!(!fits("ab", "a*c") && !fits("abcd", "abc") && !fits("aXbXc", "a*b*d"));
        assert!(fits("/h/.codex/sessions/2026/01/02/rollout-1.jsonl", "*/sessions/*/rollout-*.jsonl"));
    }

    #[test]
    fn the_newest_of_several_files_is_the_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        fs::create_dir_all(format!("{root}/a")).unwrap();
        fs::create_dir_all(format!("{root}/b")).unwrap();
        fs::write(format!("{root}/a/s.jsonl"), "").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(format!("{root}/b/s.jsonl"), "").unwrap();
        assert_eq!(newest_match(&format!("{root}/*/s.jsonl")), Some(format!("{root}/b/s.jsonl").into()));
        assert_eq!(newest_match(&format!("{root}/*/t.jsonl")), None);
    }

    #[test]
    fn the_environment_of_the_agent_says_where_its_files_are() {
        let profile = Profiles::shipped().get("claude").unwrap();
        let name = "CLAUDE_CONFIG_DIR";
        let env = [("HOME".into(), "/home/dev".into()), (name.into(), "/conf".into())];
        assert_eq!(env_dirs(&profile, &env)[name], Path::new("/conf"));
        assert!(!env_dirs(&profile, &env[..1]).contains_key(name));
    }
}
