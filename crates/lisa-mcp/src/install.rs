//! `lisa-mcp install`: registers the server with an MCP client.
//!
//! If the client is installed, its own `mcp add` command is run. Otherwise the file and the lines to add are printed.
//! Lisa never edits a client's configuration itself.

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

/// How to register with one client.
#[derive(Debug, PartialEq, Eq)]
struct Registration {
    /// The client's own command, if it has one for this scope.
    command: Option<Vec<String>>,
    /// For registering by hand: the file, and what to add to it.
    file: String,
    lines: String,
    notes: Vec<&'static str>,
}

const CODEX_NOTE: &str = "\
Codex asks before spawn_session, resume_session, answer_prompt and kill_session. `codex exec` can't ask and may cancel\n\
them. To allow them, add this to the server's table: default_tools_approval_mode = \"approve\"";

const CODEX_VARIABLES_NOTE: &str = "\
Codex passes little more than HOME and PATH to its servers, and agents inherit the server's environment.\n\
To pass other variables, such as keys, add them to the server's table: env_vars = [\"ANTHROPIC_API_KEY\"]";

/// Registers with the client, or prints how to. Returns the exit status of the client's command.
pub fn run(flags: &InstallFlags, out: &mut dyn Write) -> Result<u8> {
    check_name(&flags.name)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let registration = registration(flags, &server_command(&path)?)?;
    let mut print = |text: &str| {
        writeln!(out, "{text}").map_err(|error| Error::io("write", Path::new("standard output"), &error))
    };
    let program = registration.command.as_ref().and_then(|command| find_program(&path, command.first()?));
    match (&registration.command, program) {
        (Some(command), Some(_)) if flags.dry_run => print(&format!("would run: {}", shell_quoted(command)))?,
        (Some(command), Some(program)) => {
            print(&format!("running: {}", shell_quoted(command)))?;
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
                print(&format!("`{name}` is not on the PATH; nothing was changed."))?;
            }
            print(&format!("Add this to {}:\n\n{}\n", registration.file, registration.lines.trim_end()))?;
        }
    }
    registration.notes.iter().try_for_each(|note| print(&format!("\nNote: {note}")))?;
    Ok(0)
}

fn check_name(name: &str) -> Result<()> {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if plain {
        return Ok(());
    }
    Err(Error::new(
        Kind::InvalidName,
        format!("invalid server name `{}`", printable(name)),
        "use letters, digits, `-` and `_`",
    ))
}

/// `lisa-mcp` if that resolves to this program on the PATH, else the full path.
fn server_command(path: &OsStr) -> Result<String> {
    let own =
        env::current_exe().map_err(|error| Error::io("find", Path::new("the running program"), &error))?;
    let named = find_program(path, "lisa-mcp").and_then(|found| found.canonicalize().ok());
    if named.is_some() && named == own.canonicalize().ok() {
        return Ok("lisa-mcp".to_owned());
    }
    Ok(own.display().to_string())
}

fn registration(flags: &InstallFlags, server: &str) -> Result<Registration> {
    let line: Vec<String> = std::iter::once(server.to_owned()).chain(flags.options.iter().cloned()).collect();
    match flags.client {
        Client::Claude => Ok(claude(flags, &line)),
        Client::Codex => codex(flags, &line),
    }
}

fn claude(flags: &InstallFlags, line: &[String]) -> Registration {
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
    Registration {
        command: Some(command),
        file: match scope {
            Scope::Project => ".mcp.json in the project directory".to_owned(),
            Scope::User => "~/.claude.json".to_owned(),
            Scope::Local => "~/.claude.json, under projects and this directory".to_owned(),
        },
        lines: format!("{whole:#}"),
        notes: match scope {
            Scope::Project => {
                vec!["Claude Code asks once whether to trust the servers in a project's .mcp.json"]
            }
            _ => Vec::new(),
        },
    }
}

fn codex(flags: &InstallFlags, line: &[String]) -> Result<Registration> {
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
        Scope::User => Ok(Registration {
            command: Some(command),
            file: "~/.codex/config.toml".to_owned(),
            lines,
            notes: vec![CODEX_NOTE, CODEX_VARIABLES_NOTE],
        }),
        Scope::Project => Ok(Registration {
            command: None,
            file: ".codex/config.toml in the project directory (Codex reads it once you trust the directory)"
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

/// Looks up a program in a PATH.
fn find_program(path: &OsStr, name: &str) -> Option<PathBuf> {
    env::split_paths(path).map(|dir| dir.join(name)).find(|program| {
        use std::os::unix::fs::PermissionsExt;
        program.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    })
}

/// A command line quoted for a shell.
fn shell_quoted(command: &[String]) -> String {
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
    fn claude_is_registered_for_the_project_by_default() {
        let registration = registration(&flags(Client::Claude, None), "lisa-mcp").unwrap();
        assert_eq!(
            shell_quoted(&registration.command.unwrap()),
            "claude mcp add --scope project lisa -- lisa-mcp"
        );
        assert!(registration.file.starts_with(".mcp.json"));
        let file: serde_json::Value = serde_json::from_str(&registration.lines).unwrap();
        assert_eq!(file["mcpServers"]["lisa"]["command"], "lisa-mcp");
    }

    #[test]
    fn codex_is_registered_for_the_user_by_default() {
        let mut flags = flags(Client::Codex, None);
        flags.options = vec!["--allow-agent".into(), "codex".into()];
        let registration = registration(&flags, "/opt/lisa mcp").unwrap();
        assert_eq!(
            shell_quoted(&registration.command.unwrap()),
            "codex mcp add lisa -- '/opt/lisa mcp' --allow-agent codex"
        );
        expect_test::expect![[r#"
            [mcp_servers.lisa]
            command = "/opt/lisa mcp"
            args = ["--allow-agent", "codex"]
        "#]]
        .assert_eq(&registration.lines);
    }

    #[test]
    fn a_scope_without_a_command_prints_the_lines_to_add() {
        let by_hand = registration(&flags(Client::Codex, Some(Scope::Project)), "lisa-mcp").unwrap();
        assert_eq!(by_hand.command, None);
        assert!(registration(&flags(Client::Codex, Some(Scope::Local)), "lisa-mcp").is_err());
    }

    #[test]
    fn a_name_that_would_break_the_toml_is_rejected() {
        assert!(check_name("lisa]\n").is_err());
        assert!(check_name("lisa-2").is_ok());
    }
}
