//! The catalogue of profiles: those compiled in, overridden by the user's own.

use super::Profile;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The profiles that ship with Lisa: file name and text.
const BUILT_IN: &[(&str, &str)] = &[
    ("claude.toml", include_str!("../../profiles/claude.toml")),
    ("codex.toml", include_str!("../../profiles/codex.toml")),
    ("opencode.toml", include_str!("../../profiles/opencode.toml")),
    ("demo.toml", include_str!("../../profiles/demo.toml")),
    ("generic.toml", include_str!("../../profiles/generic.toml")),
];

/// The id of the profile that fits any command.
pub(super) const FALLBACK: &str = "generic";

/// Every profile, by id.
#[derive(Debug, Clone)]
pub struct Profiles {
    by_id: BTreeMap<String, Arc<Profile>>,
    own: BTreeSet<String>,
}

impl Profiles {
    /// Loads the profiles that ship with Lisa, then the user's own from a folder, which win where ids are the same.
    ///
    /// # Errors
    /// Names the file, and where it can the line, of the first profile that does not read, has a pattern that fails
    /// one of its own examples, or takes an id twice.
    pub fn load(user_dir: Option<&Path>) -> Result<Self, ProfileError> {
        let mut own = BTreeSet::new();
        let mut by_id: BTreeMap<_, _> =
            built_in()?.iter().map(|profile| (profile.id.clone(), Arc::clone(profile))).collect();
        for path in user_dir.map(user_files).transpose()?.unwrap_or_default() {
            let text = std::fs::read_to_string(&path).map_err(|error| ProfileError {
                file: path.clone(),
                line: None,
                problem: format!("can not be read: {error}"),
            })?;
            let profile = parse(&path, &text)?;
            own.insert(profile.id.clone());
            by_id.insert(profile.id.clone(), Arc::new(profile));
        }
        Ok(Self { by_id, own })
    }

    /// The profile with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Profile>> {
        self.by_id.get(id).cloned()
    }

    /// The profile with this id, or the one for any command.
    pub fn get_or_generic(&self, id: &str) -> Option<Arc<Profile>> {
        self.get(id).or_else(|| self.get(FALLBACK))
    }

    /// Whether a profile is the user's own.
    pub fn is_own(&self, id: &str) -> bool {
        self.own.contains(id)
    }

    /// Every profile, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.by_id.values()
    }
}

/// The profiles that ship with Lisa, read once in a process: to compile and check their patterns takes far longer than
/// any look at a session, and they can not change.
fn built_in() -> Result<&'static [Arc<Profile>], ProfileError> {
    static READ: OnceLock<Result<Vec<Arc<Profile>>, ProfileError>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        BUILT_IN.iter().map(|(name, text)| parse(Path::new(name), text).map(Arc::new)).collect()
    });
    read.as_deref().map_err(Clone::clone)
}

fn user_files(dir: &Path) -> Result<Vec<PathBuf>, ProfileError> {
    let fault = |error: std::io::Error| ProfileError {
        file: dir.to_owned(),
        line: None,
        problem: format!("can not be listed: {error}"),
    };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fault(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(fault)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn parse(file: &Path, text: &str) -> Result<Profile, ProfileError> {
    let profile: Profile = toml::from_str(text).map_err(|error| ProfileError {
        file: file.to_owned(),
        line: error.span().map(|span| line_of(text, span.start)),
        problem: error.message().to_owned(),
    })?;
    let id_ok = !profile.id.is_empty()
        && profile.id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if !id_ok {
        return Err(ProfileError {
            file: file.to_owned(),
            line: None,
            problem: format!("the id {:?} must be of letters, digits, `_` and `-`", profile.id),
        });
    }
    Ok(profile)
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// A profile that can not be used, and where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    /// The file.
    pub file: PathBuf,
    /// The line in it, from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "profile {}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for ProfileError {}
