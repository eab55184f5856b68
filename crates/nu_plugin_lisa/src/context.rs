//! The context of a command: the engine, opened with the caller's directory and environment instead of the plugin's.

use crate::{
    errors::{At, invalid_argument},
    interrupt::Interrupt,
    settings::Settings,
};
use lisa_engine::{config::Environment, engine::Engine, watch::Caller};
use nu_plugin::{EngineInterface, EvaluatedCall};
use nu_protocol::{LabeledError, Span, Value};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

/// The context of a command: engine, settings, and the caller's span, directory and environment.
pub(crate) struct CommandContext {
    /// The engine. Ctrl-C cancels its waits.
    pub(crate) engine: Engine,
    /// Set by Ctrl-C.
    pub(crate) interrupt: Interrupt,
    /// `$env.config.plugins.lisa`.
    pub(crate) settings: Settings,
    /// The span of the command's name.
    pub(crate) head: Span,
    /// The caller's current directory.
    pub(crate) cwd: PathBuf,
    /// The caller's environment.
    pub(crate) env: Environment,
}

impl CommandContext {
    /// Opens the engine for a call.
    pub(crate) fn open(interface: &EngineInterface, call: &EvaluatedCall) -> Result<Self, LabeledError> {
        Self::open_at(interface, call.head)
    }

    /// For a call that may block for long: adds a liveness check, see [`Interrupt::with_liveness_check`].
    pub(crate) fn with_liveness_check(self) -> Self {
        Self { interrupt: self.interrupt.with_liveness_check(), ..self }
    }

    /// Opens the engine with errors labelled at `head`, such as for a completion.
    pub(crate) fn open_at(interface: &EngineInterface, head: Span) -> Result<Self, LabeledError> {
        let caller = caller(interface, head)?;
        let (cwd, env) = (caller.cwd.clone(), caller.env.clone());
        let interrupt = Interrupt::listen(interface)?;
        Ok(Self {
            engine: Engine::open(caller).at(head)?.cancelled_by(&interrupt.cancel()),
            interrupt,
            settings: Settings::read(interface, head)?,
            head,
            cwd,
            env,
        })
    }

    /// A `project` parameter for the engine: makes a directory absolute and leaves a name or hash unchanged.
    pub(crate) fn absolute_project(&self, given: String) -> String {
        let is_path = given.contains('/') || [".", "..", "~"].contains(&given.as_str());
        if is_path { self.absolute_path(&given) } else { given }
    }

    /// Makes a path absolute. Nushell does that for arguments, but not for settings.
    pub(crate) fn absolute_path(&self, given: &str) -> String {
        absolute(given, &self.cwd, self.env.text("HOME"))
    }
}

fn caller(interface: &EngineInterface, head: Span) -> Result<Caller, LabeledError> {
    let program = std::env::current_exe().map_err(|error| {
        invalid_argument(
            format!("cannot find the plugin's own executable: {error}"),
            "restart the plugin",
            head,
        )
    })?;
    Ok(Caller {
        env: Environment::from_pairs(strings(interface.get_env_vars()?)),
        cwd: PathBuf::from(interface.get_current_dir()?),
        helper: vec![program.display().to_string(), "helper".to_owned()],
        policy: None,
    })
}

fn absolute(given: &str, cwd: &Path, home: Option<&str>) -> String {
    let path = match (given.strip_prefix('~'), home) {
        (Some(below), Some(home)) if below.is_empty() || below.starts_with('/') => format!("{home}{below}"),
        _ => given.to_owned(),
    };
    // `components` removes `.` in the middle.
    cwd.join(path).components().collect::<PathBuf>().display().to_string()
}

/// The variables that Nushell passes to an external program: strings and numbers unchanged, lists joined with `:` like
/// `PATH`. Records and closures, such as `config`, are left out.
fn strings(vars: HashMap<String, Value>) -> impl Iterator<Item = (String, String)> {
    vars.into_iter().filter_map(|(name, value)| {
        let text = match value {
            Value::List { vals, .. } => {
                let parts: Option<Vec<String>> =
                    vals.into_iter().map(|part| part.coerce_into_string().ok()).collect();
                parts?.join(":")
            }
            value => value.coerce_into_string().ok()?,
        };
        Some((name, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nu_protocol::record;

    #[test]
    fn paths_in_settings_are_relative_to_the_callers_directory() {
        let absolute = |given| absolute(given, Path::new("/srv/here"), Some("/home/ada"));
        assert_eq!(absolute("."), "/srv/here");
        assert_eq!(absolute("sub/x"), "/srv/here/sub/x");
        assert_eq!(absolute("~/x"), "/home/ada/x");
        assert_eq!(absolute("~"), "/home/ada");
        assert_eq!(absolute("~bob"), "/srv/here/~bob");
        assert_eq!(absolute("/tmp"), "/tmp");
    }

    #[test]
    fn the_environment_is_the_same_as_for_an_external_program() {
        let vars = HashMap::from([
            (
                "PATH".to_owned(),
                Value::test_list(vec![Value::test_string("/bin"), Value::test_string("/opt/bin")]),
            ),
            ("HOME".to_owned(), Value::test_string("/home/ada")),
            ("SHLVL".to_owned(), Value::test_int(2)),
            ("config".to_owned(), Value::test_record(record! { "a" => Value::test_int(1) })),
        ]);
        let mut got: Vec<_> = strings(vars).collect();
        got.sort();
        let want = [("HOME", "/home/ada"), ("PATH", "/bin:/opt/bin"), ("SHLVL", "2")];
        assert_eq!(got, want.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
