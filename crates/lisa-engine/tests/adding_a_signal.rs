//! Adds a signal to a copy of the engine, in the places that ARCHITECTURE.md lists and nowhere else. If it takes
//! another place, the copy doesn't compile or its test fails.

// Tests may panic.
#![allow(clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The places, below `crates/lisa-engine/src`, as the map names them.
const PLACES: [&str; 4] = ["classify/observation", "observe/", "classify/sensors/", "api/words/signals"];

/// The sensor's own file: what it claims, what it shows, and its test.
const SENSOR: &str = r#"//! How loaded the machine is.

use super::{Look, Sensor, failure};
use crate::api::words::{SignalError, Signals};
use crate::classify::evidence::{Evidence, Source};

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    let why = look.obs.load.failure().into_iter();
    why.map(|why| look.unreadable(Source::Timing, SignalError::Load, why)).collect()
}

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.load = look.obs.load.seen().cloned();
    signals.load_error = failure(&look.obs.load);
}

#[cfg(test)]
mod tests {
    use crate::api::words::{Mode, SignalError};
    use crate::classify::explain::reasons;
    use crate::classify::memory::Memory;
    use crate::classify::observation::{At, Observation, Reading};
    use crate::classify::profile::Profiles;
    use crate::classify::step;

    #[test]
    fn added_signal_is_shown_and_its_failure_explained() {
        let profile = Profiles::shipped().get("generic").unwrap();
        let mut obs = Observation::none(At(1), At(0), "run", Mode::Interactive);
        obs.load = Reading::Seen("0.50".to_owned());
        assert_eq!(step(&profile, Memory::default(), &obs).signals.load.as_deref(), Some("0.50"));
        obs.load = Reading::Unavailable { why: "no /proc".to_owned() };
        let failed = reasons(&step(&profile, Memory::default(), &obs), obs.at).failed;
        assert!(failed.iter().any(|failed| failed.signal == SignalError::Load && failed.why == "no /proc"));
    }
}
"#;

#[test]
fn a_signal_takes_four_places() {
    let map = fs::read_to_string(workspace().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let row =
        map.lines().find(|line| line.starts_with("| a signal |")).expect("the map says how to add a signal");
    for place in PLACES {
        assert!(row.contains(place), "the map doesn't name {place}: {row}");
    }
    let copy = Copy::make();
    copy.edit(
        "classify/observation.rs",
        "pub struct Observation {",
        "    /// The load.\n    pub load: Reading<String>,",
    );
    copy.edit(
        "classify/observation.rs",
        "            pane: Reading::Absent,",
        "            load: Reading::Absent,",
    );
    copy.edit("observe/mod.rs", "    let observation = Observation {", "        load: read_load(),");
    copy.append(
        "observe/mod.rs",
        "\nfn read_load() -> Reading<String> {\n    match std::fs::read_to_string(\"/proc/loadavg\") {\n        \
         Ok(text) => Reading::Seen(text),\n        Err(error) => Reading::Unavailable { why: error.to_string() },\n    \
         }\n}\n",
    );
    copy.append("classify/sensors/load.rs", SENSOR);
    copy.edit("classify/sensors/mod.rs", "mod input;", "mod load;");
    copy.edit("classify/sensors/mod.rs", "pub const SENSORS: &[Sensor] = &[", "    load::SENSOR,");
    let signals = "api/words/signals.rs";
    copy.edit(signals, "pub struct Signals {", "    /// The load.\n    pub load: Option<String>,\n    /// Why not.\n    pub load_error: Option<String>,");
    copy.edit(
        signals,
        "    SignalError {",
        "        /// The load couldn't be read.\n        Load = \"load_error\",",
    );
    copy.edit(
        signals,
        "    pub const fn would_tell(self) -> &'static str {\n        match self {",
        "            Self::Load => \"how busy the machine is\",",
    );
    copy.edit(
        signals,
        "        let slot = match error {",
        "            SignalError::Load => &self.load_error,",
    );
    copy.test("added_signal_is_shown_and_its_failure_explained");
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// A copy of the engine in a workspace of its own.
struct Copy {
    directory: PathBuf,
}

impl Copy {
    fn make() -> Self {
        // Always the same place, so that cargo replaces what it built there before.
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("adding_a_signal");
        drop(fs::remove_dir_all(&directory));
        let (from, to) = (workspace(), &directory);
        let manifest = fs::read_to_string(from.join("Cargo.toml")).expect("the workspace's manifest");
        let (head, rest) = manifest.split_once("members = [").expect("a list of members");
        let (_, rest) = rest.split_once("]\n").expect("the end of that list");
        let manifest = format!("{head}members = [\"crates/lisa-engine\"]\n{rest}");
        let manifest: Vec<&str> =
            manifest.lines().filter(|line| !line.starts_with("default-members")).collect();
        fs::create_dir_all(to).expect("a directory");
        fs::write(to.join("Cargo.toml"), manifest.join("\n")).expect("a manifest");
        fs::copy(from.join("Cargo.lock"), to.join("Cargo.lock")).expect("a lock file");
        let engine = Path::new("crates/lisa-engine");
        for part in ["src", "profiles"] {
            copy_all(&from.join(engine).join(part), &to.join(engine).join(part));
        }
        fs::copy(from.join(engine).join("build.rs"), to.join(engine).join("build.rs"))
            .expect("a build script");
        let manifest =
            fs::read_to_string(from.join(engine).join("Cargo.toml")).expect("the engine's manifest");
        // The unit tests don't use what tests of several crates share.
        let manifest = manifest.replace("test-support.workspace = true\n", "");
        let manifest = manifest.split("[[test]]").next().unwrap_or_default();
        fs::write(to.join(engine).join("Cargo.toml"), manifest).expect("a manifest");
        Self { directory }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.join("crates/lisa-engine/src").join(file)
    }

    /// Inserts text behind the only place where a file has this line.
    fn edit(&self, file: &str, behind: &str, text: &str) {
        let path = self.path(file);
        let before = fs::read_to_string(&path).expect("a source file");
        let anchor = format!("{behind}\n");
        assert_eq!(before.matches(&anchor).count(), 1, "{file} has `{behind}` once");
        fs::write(&path, before.replace(&anchor, &format!("{anchor}{text}\n"))).expect("an edited file");
    }

    fn append(&self, file: &str, text: &str) {
        let path = self.path(file);
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, before + text).expect("an edited file");
    }

    /// Compiles the copy and runs one of its tests. It shares compiled dependencies with the workspace.
    fn test(&self, name: &str) {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
        let run = Command::new(env!("CARGO"))
            .args(["test", "--quiet", "--offline", "--lib", "--package", "lisa-engine", "--", name])
            .current_dir(&self.directory)
            .env("CARGO_TARGET_DIR", target)
            .output()
            .expect("cargo");
        let said =
            format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success() && said.contains("1 passed"), "{said}");
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy_all(&path, &to),
            false => drop(fs::copy(&path, &to).expect("a copy")),
        }
    }
}
