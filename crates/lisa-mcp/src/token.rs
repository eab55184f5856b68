//! The bearer token that HTTP clients must show.

use lisa_engine::error::{Error, Kind, Result};
use std::{
    fs,
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The variable that may hold the token. It is never passed on to a session.
pub const VARIABLE: &str = "LISA_MCP_TOKEN";

/// What a made token is kept as, in the state folder.
const FILE: &str = "mcp-token";

/// Shorter ones can be guessed.
const LEAST: usize = 16;

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
    /// Where it stands.
    pub file: Option<PathBuf>,
}

impl Token {
    /// Takes a secret that is long enough to be one.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.len() < LEAST || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err(Error::new(
                Kind::InvalidConfig,
                format!("the bearer token must have at least {LEAST} printable characters and no spaces"),
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

/// The token from a file, from the variable, or one that is made once and kept in the state folder.
pub fn find(file: Option<&Path>, variable: Option<&str>, state_dir: &Path) -> Result<Found> {
    if let Some(path) = file {
        return Ok(Found { token: read(path)?, file: Some(path.to_owned()) });
    }
    if let Some(text) = variable {
        return Ok(Found { token: Token::new(text)?, file: None });
    }
    let path = state_dir.join(FILE);
    let token = match make(state_dir, &path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(&path)?,
        Err(error) => return Err(Error::io("write", &path, &error)),
        Ok(token) => token,
    };
    Ok(Found { token, file: Some(path) })
}

fn read(path: &Path) -> Result<Token> {
    let facts = fs::symlink_metadata(path).map_err(|error| {
        Error::new(
            Kind::InvalidConfig,
            format!("the token file {} can not be read: {error}", path.display()),
            "write a token of 16 characters or more into it, or leave --token-file out to have one made",
        )
    })?;
    let user = rustix::process::geteuid().as_raw();
    let fault = if !facts.is_file() {
        "is no plain file"
    } else if facts.uid() != user && facts.uid() != 0 {
        "belongs to somebody else"
    } else if facts.mode() & 0o077 != 0 {
        "can be read by others"
    } else {
        let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, &error))?;
        return Token::new(&text);
    };
    Err(Error::new(
        Kind::NotAllowed,
        format!("the token file {} {fault}", path.display()),
        format!("make it yours alone: chmod 600 {}", path.display()),
    ))
}

/// Writes a new token that only this user can read; fails if there is one already.
fn make(state_dir: &Path, path: &Path) -> std::io::Result<Token> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir)?;
    let text = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    Ok(Token(text))
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
    fn a_short_token_is_refused_and_none_is_ever_shown() {
        assert!(find(None, Some("short"), Path::new("/nowhere")).is_err());
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef").unwrap()), "Token(…)");
    }
}
