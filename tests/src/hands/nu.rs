//! The plugin in a real Nushell: each deed is a script of its own, as a person would run it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use lisa_engine::api::{AnswerRequest, SendRequest, SpawnRequest, View};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use test_support::{programs, tools};

use super::{Answered, Done, Hands, Seen, Sent, Spawned, Told, Until};
use crate::lab::Lab;

/// The variable in which a script finds its arguments.
const ARGUMENTS: &str = "SCENARIO";

/// Nushell with the plugin and nothing else.
pub struct Nu {
    nu: PathBuf,
    plugin: PathBuf,
    env: Vec<(OsString, OsString)>,
    project: PathBuf,
}

impl Nu {
    /// Nushell in a lab.
    pub fn new(lab: &Lab) -> Self {
        Self {
            nu: tools::program("nu").unwrap(),
            plugin: programs::built("nu_plugin_lisa").unwrap(),
            env: lab.home.env().collect(),
            project: lab.home.project().to_path_buf(),
        }
    }

    /// Runs a script, which finds its arguments in `$a`; the value of its last expression.
    fn run(&self, script: &str, arguments: &Value) -> Told<Value> {
        let script = format!("let a = $env.{ARGUMENTS} | from json\n{script} | to json --raw");
        let plugins = format!("[{}]", self.plugin.display());
        let output = Command::new(&self.nu)
            .args(["-n", "--plugins", &plugins, "--no-newline", "-c", &script])
            .env_clear()
            .envs(self.env.iter().cloned())
            .env(ARGUMENTS, arguments.to_string())
            .current_dir(&self.project)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(format!("{script}: {}{said}", String::from_utf8_lossy(&output.stderr)));
        }
        serde_json::from_str(&said).map_err(|error| format!("{script}: {error}: {said}"))
    }

    fn told<T: DeserializeOwned>(&self, script: &str, arguments: &Value) -> Told<T> {
        let value = self.run(script, arguments)?;
        serde_json::from_value(value.clone()).map_err(|error| format!("{script}: {error}: {value}"))
    }

    /// A row of a table that says what was done, unless it says what went wrong.
    fn row<T: DeserializeOwned>(&self, script: &str, arguments: &Value) -> Told<T> {
        let row = self.run(&format!("{script} | first"), arguments)?;
        if !row["error"].is_null() {
            return Err(row["error"].to_string());
        }
        serde_json::from_value(row.clone()).map_err(|error| format!("{script}: {error}: {row}"))
    }
}

impl Hands for Nu {
    fn spawn(&self, request: &SpawnRequest) -> Told<Spawned> {
        let mut script = "lisa session spawn $a.agent ...$a.args --name $a.name --cwd $a.cwd".to_owned();
        let mut arguments = json!({"agent": request.agent, "name": request.name, "cwd": request.cwd,
            "args": request.args, "mode": request.mode});
        script += " --mode $a.mode";
        if let Some(prompt) = &request.prompt {
            script += " --prompt $a.prompt";
            arguments["prompt"] = json!(prompt);
        }
        if request.trust {
            script += " --trust";
        }
        self.told(&script, &arguments)
    }

    fn send(&self, request: &SendRequest) -> Told<Sent> {
        let script = match (&request.text, request.force) {
            (Some(_), _) => "lisa session send $a.session $a.text",
            (None, false) => "lisa session send $a.session --keys $a.keys",
            (None, true) => "lisa session send $a.session --keys $a.keys --force",
        };
        let flags = [(request.queue, " --queue"), (request.replace_draft, " --replace-draft")];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect();
        self.told(&format!("{script}{flags}"), &json!(request))
    }

    fn answer(&self, request: &AnswerRequest) -> Told<Answered> {
        let script = match &request.prompt_id {
            Some(_) => "lisa session answer $a.session --choice $a.choice --prompt-id $a.prompt_id",
            None => "lisa session answer $a.session --choice $a.choice",
        };
        self.row(script, &json!(request))
    }

    fn status(&self, session: &str) -> Told<Seen> {
        self.told("lisa session status $a | first", &json!(session))
    }

    fn wait(&self, session: &str, until: &Until<'_>, seconds: f64) -> Told<()> {
        let (flags, word) = match until {
            Until::Word(word) => ("--until $a.word", word),
            Until::Turn(turn) => ("--until turn --turn $a.word", turn),
        };
        let script =
            format!("lisa session monitor $a.session {flags} --timeout ($a.seconds * 1sec) | get name");
        self.run(&script, &json!({"session": session, "word": word, "seconds": seconds})).map(drop)
    }

    fn read(&self, session: &str, view: View) -> Told<String> {
        self.told(
            "lisa session capture $a.session --view $a.view --lines 400",
            &json!({"session": session, "view": view}),
        )
    }

    fn interrupt(&self, session: &str) -> Told<Done> {
        self.row("lisa session interrupt $a", &json!(session))
    }

    fn resume(&self, session: &str, prompt: Option<&str>) -> Told<Done> {
        match prompt {
            None => self.row("lisa session resume $a", &json!(session)),
            Some(prompt) => {
                let arguments = json!({"session": session, "prompt": prompt});
                self.row("lisa session resume $a.session --prompt $a.prompt", &arguments)
            }
        }
    }

    fn kill(&self, session: &str) -> Told<Done> {
        self.row("lisa session kill $a", &json!(session))
    }
}
