//! The bearer token that HTTP clients must show.

use crate::log;
use lisa_engine::{
    disk::{self, Lock},
    error::{Error, Kind, Result},
};
use rustix::fs::OFlags;
use std::{
    fs,
    io::{ErrorKind, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

/// The variable that may hold the token. It is never passed on to a session.
pub const VARIABLE: &str = "LISA_MCP_TOKEN";

/// What a made token is kept as, in the state directory.
const FILE: &str = "mcp-token";

/// Held while the kept token is read or made.
const LOCK: &str = "mcp-token.lock";

/// Reading or writing one small file takes far less.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// Shorter ones can be guessed.
const LEAST: usize = 16;

/// What is longer was not meant as a token.
const MOST: usize = 4096;

/// A secret that is compared in constant time and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A token, and the file it is kept in where there is one to tell the user about.
#[derive(Debug)]
pub struct Found {
    /// The token.
    pub token: Token,
    /// Where it is kept.
    pub file: Option<PathBuf>,
}

impl Token {
    /// Takes a secret that is long enough to be one.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        if !(LEAST..=MOST).contains(&text.len()) || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err(Error::new(
                Kind::InvalidConfig,
                format!(
                    "the bearer token must have at least {LEAST} printable characters, at most {MOST}, and no spaces"
                ),
                "make one with `openssl rand -hex 32`, or leave it out to have one made",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether an `Authorization` header shows this token. Takes the same time wherever the first difference is.
    pub fn is_shown_by(&self, header: Option<&[u8]>) -> bool {
        let Some(header) = header else { return false };
        let Some((scheme, given)) = header.split_at_checked(7) else { return false };
        let known = self.0.as_bytes();
        if !scheme.eq_ignore_ascii_case(b"Bearer ") || given.len() != known.len() {
            return false;
        }
        given.iter().zip(known).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

/// The token from a file, from the variable, or one that is made once and kept in the state directory.
pub fn find(file: Option<&Path>, variable: Option<&str>, state_dir: &Path) -> Result<Found> {
    if let Some(path) = file {
        return Ok(Found { token: given(path)?, file: Some(path.to_owned()) });
    }
    if let Some(text) = variable {
        return Ok(Found { token: Token::new(text)?, file: None });
    }
    let path = state_dir.join(FILE);
    Ok(Found { token: kept(state_dir, &path)?, file: Some(path) })
}

/// The token in a file of the user's, which is only ever read.
fn given(path: &Path) -> Result<Token> {
    let advice = "write a token of 16 characters or more into it, or leave --token-file out to have one made";
    let cannot_read = |why: String| {
        let what = format!("the token file {} cannot be read: {why}", path.display());
        Error::new(Kind::InvalidConfig, what, advice)
    };
    let bytes = read(path)?.ok_or_else(|| cannot_read("there is no such file".to_owned()))?;
    Token::new(std::str::from_utf8(&bytes).map_err(|error| cannot_read(error.to_string()))?)
}

/// The token that Lisa keeps. One that cannot be used (a crash may leave an empty file) is replaced; of servers that
/// start together one makes it, and the others read it.
fn kept(state_dir: &Path, path: &Path) -> Result<Token> {
    disk::private_dir(state_dir)?;
    let _lock = Lock::take(&state_dir.join(LOCK), LOCK_LIMIT)?;
    let left = read(path)?;
    if let Some(token) = left.as_deref().and_then(|bytes| Token::new(std::str::from_utf8(bytes).ok()?).ok()) {
        return Ok(token);
    }
    let text = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    disk::write_atomic(path, format!("{text}\n").as_bytes())?;
    if left.is_some() {
        log::say(&format!(
            "the token in {} was empty or damaged and has been replaced: clients must read it again",
            path.display()
        ));
    }
    Ok(Token(text))
}

/// The bytes of a token file that is this user's alone; `None` where there is none. Never waits: a fifo is refused
/// before and after it is opened.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let user = rustix::process::geteuid().as_raw();
    let check = |facts: &fs::Metadata| match fault(facts, user) {
        Some((what, hint)) => {
            let what = format!("the token file {} {what}", path.display());
            Err(Error::new(Kind::NotAllowed, what, hint))
        }
        None => Ok(()),
    };
    match fs::symlink_metadata(path) {
        Ok(facts) => check(&facts)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", path, &error)),
    }
    let failed = |error: std::io::Error| Error::io("read", path, &error);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    check(&file.metadata().map_err(failed)?)?;
    let mut bytes = Vec::new();
    file.take(MOST as u64 + 2).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Why a token file cannot be trusted, and what to do about it.
fn fault(facts: &fs::Metadata, user: u32) -> Option<(String, &'static str)> {
    let replace = "remove it and start again to have one made, or name another with --token-file";
    if facts.is_symlink() {
        Some(("is a symbolic link, which is not followed".to_owned(), replace))
    } else if !facts.is_file() {
        Some(("is not a regular file".to_owned(), replace))
    } else if facts.uid() != user {
        Some((format!("belongs to another user (uid {})", facts.uid()), replace))
    } else if facts.mode() & 0o077 != 0 {
        Some(("can be read by others".to_owned(), "make it yours alone with `chmod 600`"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_whole_token_is_accepted() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.is_shown_by(Some(b"Bearer 0123456789abcdef")));
        assert!(token.is_shown_by(Some(b"bearer 0123456789abcdef")));
        for wrong in
            ["Bearer 0123456789abcdeF", "Bearer 0123456789abcde", "Basic 0123456789abcdef", "", "Bearer "]
        {
            assert!(!token.is_shown_by(Some(wrong.as_bytes())), "{wrong}");
        }
        assert!(!token.is_shown_by(None));
    }

    #[test]
    fn a_token_is_made_once_and_is_the_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let first = find(None, None, &state).unwrap();
        let path = first.file.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(find(None, None, &state).unwrap().token, first.token);
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        fs::write(&path, "0123456789abcdef").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = find(Some(&path), None, dir.path()).unwrap_err();
        assert!(error.to_string().contains("can be read by others"), "{error}");
    }

    #[test]
    fn a_file_of_another_user_is_refused_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        fs::write(&path, "0123456789abcdef").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let facts = fs::symlink_metadata(&path).unwrap();
        assert_eq!(fault(&facts, facts.uid()), None);
        let (what, hint) = fault(&facts, facts.uid() + 1).unwrap();
        assert!(what.contains("another user") && hint.contains("remove it"), "{what}; {hint}");
    }

    #[test]
    fn a_short_token_is_refused_and_none_is_ever_shown() {
        assert!(find(None, Some("short"), Path::new("/nowhere")).is_err());
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef").unwrap()), "Token(…)");
    }
}
