//! The bearer token for HTTP clients.

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

/// The environment variable with the token. It's never passed to a session.
pub const ENV_VAR: &str = "LISA_MCP_TOKEN";

/// File name of the generated token in the state directory.
const FILE_NAME: &str = "mcp-token";

/// Lock file held while the generated token is read or created.
const LOCK_NAME: &str = "mcp-token.lock";

/// Timeout for the lock. Reading or writing one small file takes far less.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum length. Shorter tokens can be guessed.
const MIN_LENGTH: usize = 16;

/// Maximum length. Anything longer isn't a token.
const MAX_LENGTH: usize = 4096;

/// A secret that is compared in constant time and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A token and the file it came from.
#[derive(Debug)]
pub struct LoadedToken {
    /// The token.
    pub token: Token,
    /// The file to tell the user about; `None` if the token is from the environment.
    pub file: Option<PathBuf>,
}

impl Token {
    /// Validates a token.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        if !(MIN_LENGTH..=MAX_LENGTH).contains(&text.len()) || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err(Error::new(
                Kind::InvalidConfig,
                format!(
                    "the bearer token must have at least {MIN_LENGTH} and at most {MAX_LENGTH} printable characters, and no spaces"
                ),
                "generate one with `openssl rand -hex 32`, or leave it out and Lisa generates one",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether an `Authorization` header contains this token. Constant-time comparison.
    pub fn matches_header(&self, header: Option<&[u8]>) -> bool {
        let Some(header) = header else { return false };
        let Some((scheme, given)) = header.split_at_checked(7) else { return false };
        let known = self.0.as_bytes();
        if !scheme.eq_ignore_ascii_case(b"Bearer ") || given.len() != known.len() {
            return false;
        }
        given.iter().zip(known).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

/// The token from a file, from the environment, or generated once and kept in the state directory.
pub fn load(file: Option<&Path>, variable: Option<&str>, state_dir: &Path) -> Result<LoadedToken> {
    if let Some(path) = file {
        return Ok(LoadedToken { token: read_user_token(path)?, file: Some(path.to_owned()) });
    }
    if let Some(text) = variable {
        return Ok(LoadedToken { token: Token::new(text)?, file: None });
    }
    let path = state_dir.join(FILE_NAME);
    Ok(LoadedToken { token: load_or_generate(state_dir, &path)?, file: Some(path) })
}

/// Reads the user's own token file, which Lisa never writes.
fn read_user_token(path: &Path) -> Result<Token> {
    let advice =
        "write a token of at least 16 characters into it, or leave out --token-file and Lisa generates one";
    let cannot_read = |why: String| {
        let what = format!("cannot read the token file {}: {why}", path.display());
        Error::new(Kind::InvalidConfig, what, advice)
    };
    let bytes = read_private_file(path)?.ok_or_else(|| cannot_read("there is no such file".to_owned()))?;
    Token::new(std::str::from_utf8(&bytes).map_err(|error| cannot_read(error.to_string()))?)
}

/// Loads the generated token, or creates it. An unusable token (a crash may leave an empty file) is replaced. The lock
/// prevents a race: of several servers that start at once, one creates the token and the others read it.
fn load_or_generate(state_dir: &Path, path: &Path) -> Result<Token> {
    disk::private_dir(state_dir)?;
    let _lock = Lock::take(&state_dir.join(LOCK_NAME), LOCK_TIMEOUT)?;
    let left = read_private_file(path)?;
    if let Some(token) = left.as_deref().and_then(|bytes| Token::new(std::str::from_utf8(bytes).ok()?).ok()) {
        return Ok(token);
    }
    let text = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    disk::write_atomic(path, format!("{text}\n").as_bytes())?;
    if left.is_some() {
        log::notice(&format!(
            "the token in {} was empty or malformed and has been replaced; clients must read it again",
            path.display()
        ));
    }
    Ok(Token(text))
}

/// Reads a token file that only this user can access; `None` if it doesn't exist. Never blocks: a FIFO is rejected
/// before and after opening.
fn read_private_file(path: &Path) -> Result<Option<Vec<u8>>> {
    let user = rustix::process::geteuid().as_raw();
    let check = |facts: &fs::Metadata| match untrusted_reason(facts, user) {
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
    file.take(MAX_LENGTH as u64 + 2).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Why a token file can't be trusted, and how to fix it.
fn untrusted_reason(facts: &fs::Metadata, user: u32) -> Option<(String, &'static str)> {
    let replace = "remove it and restart to generate a new one, or pass another with --token-file";
    if facts.is_symlink() {
        Some(("is a symbolic link, which is not followed".to_owned(), replace))
    } else if !facts.is_file() {
        Some(("is not a regular file".to_owned(), replace))
    } else if facts.uid() != user {
        Some((format!("belongs to another user (uid {})", facts.uid()), replace))
    } else if facts.mode() & 0o077 != 0 {
        Some(("can be read by others".to_owned(), "make it private with `chmod 600`"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_exact_token_is_accepted() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.matches_header(Some(b"Bearer 0123456789abcdef")));
        assert!(token.matches_header(Some(b"bearer 0123456789abcdef")));
        for wrong in
            ["Bearer 0123456789abcdeF", "Bearer 0123456789abcde", "Basic 0123456789abcdef", "", "Bearer "]
        {
            assert!(!token.matches_header(Some(wrong.as_bytes())), "{wrong}");
        }
        assert!(!token.matches_header(None));
    }

    #[test]
    fn a_token_is_generated_once_with_private_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let first = load(None, None, &state).unwrap();
        let path = first.file.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(load(None, None, &state).unwrap().token, first.token);
    }

    #[test]
    fn a_token_file_that_others_can_read_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        fs::write(&path, "0123456789abcdef").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = load(Some(&path), None, dir.path()).unwrap_err();
        assert!(error.to_string().contains("can be read by others"), "{error}");
    }

    #[test]
    fn a_token_file_of_another_user_is_rejected_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        fs::write(&path, "0123456789abcdef").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let facts = fs::symlink_metadata(&path).unwrap();
        assert_eq!(untrusted_reason(&facts, facts.uid()), None);
        let (what, hint) = untrusted_reason(&facts, facts.uid() + 1).unwrap();
        assert!(what.contains("another user") && hint.contains("remove it"), "{what}; {hint}");
    }

    #[test]
    fn a_short_token_is_rejected_and_debug_output_hides_tokens() {
        assert!(load(None, Some("short"), Path::new("/nowhere")).is_err());
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef").unwrap()), "Token(…)");
    }
}
