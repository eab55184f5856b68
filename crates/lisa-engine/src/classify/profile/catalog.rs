//! The catalog of profiles: those compiled in, overridden by the user's own.

use super::Profile;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The profiles that ship with Lisa: id and text of each file in `profiles/`, sorted by id.
const BUILT_IN: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// The id of the profile for any command.
pub const FALLBACK: &str = "generic";

/// Every profile, by id.
#[derive(Debug, Clone)]
pub struct Profiles {
    own: BTreeMap<String, Arc<Profile>>,
}

impl Profiles {
    /// Only the profiles that ship with Lisa.
    pub const fn shipped() -> Self {
        Self { own: BTreeMap::new() }
    }

    /// The user's own profiles (files and their texts), which take precedence over those that ship with Lisa. The
    /// latter are parsed on first use: compiling and checking their patterns takes far longer than a look.
    ///
    /// # Errors
    /// Names the file, and the line if known, of the first profile that is malformed or has a pattern that
    /// fails one of its own examples.
    pub fn with_own(files: impl IntoIterator<Item = (PathBuf, String)>) -> Result<Self, ProfileError> {
        let mut own = BTreeMap::new();
        for (path, text) in files {
            let profile = parse(&path, &text)?;
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

    /// Every id, sorted.
    pub fn ids(&self) -> Vec<String> {
        let shipped = BUILT_IN.iter().map(|(id, _)| (*id).to_owned());
        shipped.chain(self.own.keys().cloned()).collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Every profile, sorted by id.
    pub fn iter(&self) -> impl Iterator<Item = Arc<Profile>> {
        self.ids().into_iter().filter_map(|id| self.get(&id))
    }
}

/// A profile that ships with Lisa, parsed once per process. A test parses them all.
fn built_in(id: &str) -> Option<Arc<Profile>> {
    static READ: [OnceLock<Option<Arc<Profile>>>; BUILT_IN.len()] =
        [const { OnceLock::new() }; BUILT_IN.len()];
    let index = BUILT_IN.iter().position(|(shipped, _)| *shipped == id)?;
    let read = || parse(Path::new(&format!("{id}.toml")), BUILT_IN[index].1).ok().map(Arc::new);
    READ[index].get_or_init(read).clone()
}

/// Parses the text of a profile.
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
            problem: format!("the id {:?} may only contain letters, digits, `_` and `-`", profile.id),
        });
    }
    Ok(profile)
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// An invalid profile, and where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1, if known.
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
            assert_eq!(profile.id, *id);
        }
        assert_eq!(Profiles::shipped().iter().count(), BUILT_IN.len());
    }
}
