//! Session names: validation, generation, and the name of a project.

use crate::{
    api::words::Mode,
    error::{Error, Kind, Result, printable},
};
use jiff::{Timestamp, tz::TimeZone};
use md5::{Digest, Md5};
use std::path::{Path, PathBuf};

/// The longest name a caller may choose.
const NAME_MAX: usize = 64;
/// How many characters of a directory's name go into a generated name.
const SLUG_MAX: usize = 10;
/// How many characters of a tag go into a generated name.
const TAG_MAX: usize = 16;

/// Validates a name from a caller. It becomes a tmux target and a directory, so few characters are allowed.
pub fn check(name: &str) -> Result<()> {
    let invalid = |what: String| {
        Err(Error::new(
            Kind::InvalidName,
            what,
            format!("use 1 to {NAME_MAX} letters, digits, `_` or `-`, starting with a letter or digit"),
        )
        .about(name))
    };
    if name.is_empty() {
        return invalid("the session name is empty".to_owned());
    }
    if name.chars().count() > NAME_MAX {
        return invalid(format!("the session name has {} characters", name.chars().count()));
    }
    if let Some(bad) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))) {
        return invalid(format!("the session name `{}` contains {bad:?}", printable(name)));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return invalid(format!("the session name `{name}` starts with `{}`", &name[..1]));
    }
    Ok(())
}

/// Whether a string could be a session's name at all; anything else is never looked up on disk.
pub fn plausible(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// A unique name: `lisa-{project}-{yymmdd}-{hhmmss}-{nanos}-{agent}-{mode}[-{tag}]`.
pub fn make(project: &Path, agent: &str, mode: Mode, tag: Option<&str>, now: Timestamp) -> String {
    let time = now.to_zoned(TimeZone::UTC);
    let mut name = format!(
        "lisa-{}-{}-{:09}-{}-{}",
        slug(&project_name(project), SLUG_MAX).unwrap_or_else(|| "project".to_owned()),
        time.strftime("%y%m%d-%H%M%S"),
        time.subsec_nanosecond(),
        slug(agent, 32).unwrap_or_else(|| "agent".to_owned()),
        mode.as_str(),
    );
    if let Some(tag) = tag.and_then(|tag| slug(tag, TAG_MAX)) {
        name.push('-');
        name.push_str(&tag);
    }
    name
}

/// Text in lower case, with everything but letters and digits replaced by single dashes.
fn slug(text: &str, max: usize) -> Option<String> {
    let mut out = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => out.push(c),
            _ if !out.is_empty() && !out.ends_with('-') => out.push('-'),
            _ => {}
        }
        if out.len() == max {
            break;
        }
    }
    let out = out.trim_end_matches('-').to_owned();
    (!out.is_empty()).then_some(out)
}

/// The project of a directory: its nearest ancestor with a repository, or itself.
pub fn project_root(cwd: &Path) -> PathBuf {
    cwd.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(cwd).to_owned()
}

/// The display name of a project: the last part of its root directory.
pub fn project_name(root: &Path) -> String {
    root.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The first 8 hex digits of the MD5 of a project's canonical root.
pub fn project_hash(root: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let digest = Md5::digest(root.as_os_str().as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_hit_something_else_are_refused() {
        let long = "x".repeat(300);
        for bad in [
            "",
            ":",
            "a:b",
            "a.b",
            "a/b",
            "..",
            "*",
            "a\u{7}",
            "a b",
            "=a",
            "-a",
            "_lisa",
            "é",
            long.as_str(),
        ] {
            assert_eq!(check(bad).unwrap_err().kind(), Kind::InvalidName, "{bad:?}");
        }
        check("fix-login_2").unwrap();
    }

    #[test]
    fn a_made_name_has_the_parts_in_order() {
        let now: Timestamp = "2026-02-03T04:05:06.000000789Z".parse().unwrap();
        let name =
            make(Path::new("/x/My Project.rs"), "claude", Mode::Exec, Some("Fix: it, now or never"), now);
        assert_eq!(name, "lisa-my-project-260203-040506-000000789-claude-exec-fix-it-now-or-ne");
        assert!(plausible(&name));
    }

    #[test]
    fn the_project_hash_is_the_md5_of_the_root() {
        assert_eq!(project_hash(Path::new("/home/dev/proj1")), {
            let digest = Md5::digest(b"/home/dev/proj1");
            format!("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3])
        });
        assert_eq!(project_hash(Path::new("")), "d41d8cd9");
    }
}
