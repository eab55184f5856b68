//! The engine, opened for whoever typed the command: their folder and their environment, never the plugin's own.

use crate::{
    errors::{At, invalid},
    interrupt::Interrupt,
    settings::Settings,
};
use lisa_engine::{
    config::Environment,
    engine::{Caller, Engine},
};
use nu_plugin::{EngineInterface, EvaluatedCall};
use nu_protocol::{LabeledError, Span, Value};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

/// What a command works with: the engine, the caller's settings, and where in the source the command stands.
pub(crate) struct Lisa {
    /// Lisa's engine. Its waits for agents to come up end with Ctrl-C.
    pub(crate) engine: Engine,
    /// Whether the user has pressed Ctrl-C.
    pub(crate) interrupt: Interrupt,
    /// `$env.config.plugins.lisa`.
    pub(crate) settings: Settings,
    /// Where the command's name stands.
    pub(crate) head: Span,
    /// The caller's folder.
    pub(crate) cwd: PathBuf,
    /// The caller's environment.
    pub(crate) env: Environment,
}

impl Lisa {
    /// Opens the engine for a call.
    pub(crate) fn open(interface: &EngineInterface, call: &EvaluatedCall) -> Result<Self, LabeledError> {
        Self::open_at(interface, call.head)
    }

    /// The same for a call that may block for long; see [`Interrupt::for_long`].
    pub(crate) fn for_long(self) -> Self {
        Self { interrupt: self.interrupt.for_long(), ..self }
    }

    /// Opens the engine for something that happens at `head`, such as a completion.
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

    /// A project as the engine takes it: its name or hash as it is, a folder as an absolute path.
    pub(crate) fn project(&self, given: String) -> String {
        let is_folder = given.contains('/') || [".", "..", "~"].contains(&given.as_str());
        if is_folder { self.folder(&given) } else { given }
    }

    /// A folder as an absolute path. Nushell has done this for an argument, not for a setting.
    pub(crate) fn folder(&self, given: &str) -> String {
        absolute(given, &self.cwd, self.env.text("HOME"))
    }
}

fn caller(interface: &EngineInterface, head: Span) -> Result<Caller, LabeledError> {
    let program = std::env::current_exe().map_err(|error| {
        invalid(format!("the plugin's own program can not be found: {error}"), "start the plugin again", head)
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
    // Without `.` in the middle, which `components` drops.
    cwd.join(path).components().collect::<PathBuf>().display().to_string()
}

/// The variables that Nushell would pass to an external program: texts and numbers as they are, lists of folders
/// joined as `PATH` is. Records and closures, such as `config`, stay in the shell.
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
    fn folders_of_settings_are_taken_from_where_the_caller_stands() {
        let absolute = |given| absolute(given, Path::new("/srv/here"), Some("/home/ada"));
        assert_eq!(absolute("."), "/srv/here");
        assert_eq!(absolute("sub/x"), "/srv/here/sub/x");
        assert_eq!(absolute("~/x"), "/home/ada/x");
        assert_eq!(absolute("~"), "/home/ada");
        assert_eq!(absolute("~bob"), "/srv/here/~bob");
        assert_eq!(absolute("/tmp"), "/tmp");
    }

    #[test]
    fn the_environment_is_what_an_external_program_would_get() {
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
