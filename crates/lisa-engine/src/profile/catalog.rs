//! The catalogue of profiles: those compiled in, overridden by the user's own.

use super::Profile;
use crate::disk;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The most that is read of one profile.
const FILE_MAX: u64 = 1 << 20;

/// The profiles that ship with Lisa: id and text, in the order of ids.
const BUILT_IN: [(&str, &str); 5] = [
    ("claude", include_str!("../../profiles/claude.toml")),
    ("codex", include_str!("../../profiles/codex.toml")),
    ("demo", include_str!("../../profiles/demo.toml")),
    ("generic", include_str!("../../profiles/generic.toml")),
    ("opencode", include_str!("../../profiles/opencode.toml")),
];

/// The id of the profile that fits any command.
pub const FALLBACK: &str = "generic";

/// Every profile, by id.
#[derive(Debug, Clone)]
pub struct Profiles {
    own: BTreeMap<String, Arc<Profile>>,
}

impl Profiles {
    /// Loads the user's own profiles from a folder. Those that ship with Lisa stand behind them and are read when they
    /// are first asked for: to compile and check their patterns takes far longer than any look at a session.
    ///
    /// # Errors
    /// Names the file, and where it can the line, of the first profile that does not read or has a pattern that fails
    /// one of its own examples.
    pub fn load(user_dir: Option<&Path>) -> Result<Self, ProfileError> {
        let mut own = BTreeMap::new();
        for path in user_dir.map(user_files).transpose()?.unwrap_or_default() {
            let bytes = disk::read_foreign(&path, FILE_MAX).map_err(|error| ProfileError {
                file: path.clone(),
                line: None,
                problem: format!("cannot be read: {error}"),
            })?;
            let profile = parse(&path, &String::from_utf8_lossy(&bytes))?;
            own.insert(profile.id.clone(), Arc::new(profile));
        }
        Ok(Self { own })
    }

    /// The profile with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Profile>> {
        self.own.get(id).cloned().or_else(|| built_in(id))
    }

    /// The profile with this id, or the one for any command.
    pub fn get_or_generic(&self, id: &str) -> Option<Arc<Profile>> {
        self.get(id).or_else(|| self.get(FALLBACK))
    }

    /// Whether a profile is the user's own.
    pub fn is_own(&self, id: &str) -> bool {
        self.own.contains_key(id)
    }

    /// Every id, in order.
    pub fn ids(&self) -> Vec<String> {
        let shipped = BUILT_IN.iter().map(|(id, _)| (*id).to_owned());
        shipped.chain(self.own.keys().cloned()).collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Every profile, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = Arc<Profile>> {
        self.ids().into_iter().filter_map(|id| self.get(&id))
    }
}

/// A profile that ships with Lisa, read once in a process. A test reads them all.
fn built_in(id: &str) -> Option<Arc<Profile>> {
    static READ: [OnceLock<Option<Arc<Profile>>>; BUILT_IN.len()] =
        [const { OnceLock::new() }; BUILT_IN.len()];
    let index = BUILT_IN.iter().position(|(shipped, _)| *shipped == id)?;
    let read = || parse(Path::new(&format!("{id}.toml")), BUILT_IN[index].1).ok().map(Arc::new);
    READ[index].get_or_init(read).clone()
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

/// Reads the text of a profile.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Profile, ProfileError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_that_ships_reads_and_has_the_id_it_is_known_by() {
        for (id, text) in BUILT_IN {
            let profile = parse(Path::new(id), text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.id, id);
        }
        let profiles = Profiles::load(None).expect("nothing to go wrong");
        assert_eq!(profiles.iter().count(), BUILT_IN.len());
    }
}
