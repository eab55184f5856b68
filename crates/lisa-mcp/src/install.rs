//! Registering the server with a client, by the client's own documented means.
//!
//! Where the client is installed its own command is run; where it is not, the file and the lines for it are printed.
//! Nobody's configuration is edited by hand.

use crate::cli::{Client, InstallFlags, Scope};
use lisa_engine::error::{Error, Kind, Result, printable};
use serde_json::json;
use std::{
    env,
    ffi::OsStr,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

/// What registering amounts to.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// The client's own command, where it has one for this scope.
    command: Option<Vec<String>>,
    /// The same by hand: which file, and what to put there.
    file: String,
    lines: String,
    /// What the user should know.
    notes: Vec<&'static str>,
}

const CODEX_NOTE: &str = "\
Codex asks before spawn_session, resume_session, answer_prompt and kill_session; `codex exec` has nobody to ask and may\n\
cancel them. Where you trust it with that, add to the server's table: default_tools_approval_mode = \"approve\"";

const CODEX_VARIABLES_NOTE: &str = "\
Codex gives its servers hardly more than HOME and PATH, and agents that Lisa starts get no more than the server has.\n\
Where they need other variables, such as keys, name them in the server's table: env_vars = [\"ANTHROPIC_API_KEY\"]";

/// Registers, or prints what would be done; the exit status of the client's command.
pub fn run(flags: &InstallFlags, out: &mut dyn Write) -> Result<u8> {
    check_name(&flags.name)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let plan = plan(flags, &server_command(&path)?)?;
    let mut say = |text: &str| {
        writeln!(out, "{text}").map_err(|error| Error::io("write", Path::new("standard output"), &error))
    };
    let program = plan.command.as_ref().and_then(|command| find(&path, command.first()?));
    match (&plan.command, program) {
        (Some(command), Some(_)) if flags.dry_run => say(&format!("would run: {}", shown(command)))?,
        (Some(command), Some(program)) => {
            say(&format!("running: {}", shown(command)))?;
            let status = Command::new(&program)
                .args(&command[1..])
                .status()
                .map_err(|error| Error::io("run", &program, &error))?;
            if !status.success() {
                return Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
            }
        }
        (command, _) => {
            if let Some(name) = command.as_ref().and_then(|command| command.first()) {
                say(&format!("`{name}` is not on the PATH, so nothing was changed."))?;
            }
            say(&format!("Put this into {}:\n\n{}\n", plan.file, plan.lines.trim_end()))?;
        }
    }
    plan.notes.iter().try_for_each(|note| say(&format!("\nNote: {note}")))?;
    Ok(0)
}

fn check_name(name: &str) -> Result<()> {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if plain {
        return Ok(());
    }
    Err(Error::new(
        Kind::InvalidName,
        format!("`{}` can not be a server's name", printable(name)),
        "use letters, digits, `-` and `_`",
    ))
}

/// `lisa-mcp` where that is this very program on the PATH, else its whole path.
fn server_command(path: &OsStr) -> Result<String> {
    let own =
        env::current_exe().map_err(|error| Error::io("find", Path::new("the running program"), &error))?;
    let named = find(path, "lisa-mcp").and_then(|found| found.canonicalize().ok());
    if named.is_some() && named == own.canonicalize().ok() {
        return Ok("lisa-mcp".to_owned());
    }
    Ok(own.display().to_string())
}

fn plan(flags: &InstallFlags, server: &str) -> Result<Plan> {
    let line: Vec<String> = std::iter::once(server.to_owned()).chain(flags.options.iter().cloned()).collect();
    match flags.client {
        Client::Claude => Ok(claude(flags, &line)),
        Client::Codex => codex(flags, &line),
    }
}

fn claude(flags: &InstallFlags, line: &[String]) -> Plan {
    let scope = flags.scope.unwrap_or(Scope::Project);
    let word = match scope {
        Scope::Local => "local",
        Scope::Project => "project",
        Scope::User => "user",
    };
    let mut command = strings(&["claude", "mcp", "add", "--scope", word, &flags.name, "--"]);
    command.extend(line.iter().cloned());
    let server = json!({ "type": "stdio", "command": line[0], "args": line[1..] });
    let whole = json!({ "mcpServers": { flags.name.as_str(): server } });
    Plan {
        command: Some(command),
        file: match scope {
            Scope::Project => ".mcp.json in the project's folder".to_owned(),
            Scope::User => "~/.claude.json".to_owned(),
            Scope::Local => "~/.claude.json, below projects and this folder".to_owned(),
        },
        lines: format!("{whole:#}"),
        notes: match scope {
            Scope::Project => vec!["Claude Code asks once whether to trust servers of a project's .mcp.json"],
            _ => Vec::new(),
        },
    }
}

fn codex(flags: &InstallFlags, line: &[String]) -> Result<Plan> {
    let scope = flags.scope.unwrap_or(Scope::User);
    let mut command = strings(&["codex", "mcp", "add", &flags.name, "--"]);
    command.extend(line.iter().cloned());
    let quoted = |text: &String| json!(text).to_string();
    let args: Vec<String> = line[1..].iter().map(quoted).collect();
    let lines = format!(
        "[mcp_servers.{}]\ncommand = {}\nargs = [{}]\n",
        flags.name,
        quoted(&line[0]),
        args.join(", ")
    );
    match scope {
        Scope::User => Ok(Plan {
            command: Some(command),
            file: "~/.codex/config.toml".to_owned(),
            lines,
            notes: vec![CODEX_NOTE, CODEX_VARIABLES_NOTE],
        }),
        Scope::Project => Ok(Plan {
            command: None,
            file: ".codex/config.toml in the project's folder (Codex reads it once you trust the folder)"
                .to_owned(),
            lines,
            notes: vec![CODEX_NOTE, CODEX_VARIABLES_NOTE],
        }),
        Scope::Local => {
            Err(Error::invalid("Codex has no scope `local`", "use --scope user or --scope project"))
        }
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The program of this name in the folders of a PATH.
fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    env::split_paths(path).map(|folder| folder.join(name)).find(|program| {
        use std::os::unix::fs::PermissionsExt;
        program.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    })
}

/// A command as it would be typed.
fn shown(command: &[String]) -> String {
    let plain = |word: &String| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=@".contains(c))
    };
    let quoted =
        |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) };
    command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(client: Client, scope: Option<Scope>) -> InstallFlags {
        InstallFlags { client, scope, name: "lisa".into(), dry_run: true, options: Vec::new() }
    }

    #[test]
    fn claude_is_registered_for_the_project_unless_said() {
        let plan = plan(&flags(Client::Claude, None), "lisa-mcp").unwrap();
        assert_eq!(shown(&plan.command.unwrap()), "claude mcp add --scope project lisa -- lisa-mcp");
        assert!(plan.file.starts_with(".mcp.json"));
        let file: serde_json::Value = serde_json::from_str(&plan.lines).unwrap();
        assert_eq!(file["mcpServers"]["lisa"]["command"], "lisa-mcp");
    }

    #[test]
    fn codex_is_registered_for_the_user() {
        let mut flags = flags(Client::Codex, None);
        flags.options = vec!["--allow-agent".into(), "codex".into()];
        let plan = plan(&flags, "/opt/lisa mcp").unwrap();
        assert_eq!(
            shown(&plan.command.unwrap()),
            "codex mcp add lisa -- '/opt/lisa mcp' --allow-agent codex"
        );
        expect_test::expect![[r#"
            [mcp_servers.lisa]
            command = "/opt/lisa mcp"
            args = ["--allow-agent", "codex"]
        "#]]
        .assert_eq(&plan.lines);
    }

    #[test]
    fn a_scope_without_a_command_is_said_by_hand() {
        let by_hand = plan(&flags(Client::Codex, Some(Scope::Project)), "lisa-mcp").unwrap();
        assert_eq!(by_hand.command, None);
        assert!(plan(&flags(Client::Codex, Some(Scope::Local)), "lisa-mcp").is_err());
    }

    #[test]
    fn a_name_that_would_break_a_file_is_refused() {
        assert!(check_name("lisa]\n").is_err());
        assert!(check_name("lisa-2").is_ok());
    }
}
