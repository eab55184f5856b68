//! `cargo xtask docs`: the parts of the documentation that the code knows better.
//!
//! The environment variables are one list in the engine's configuration. It is read there as text, so that the check
//! of the documentation needs no build of the engine.

use crate::{
    context::Context,
    failure::{Failure, Result},
};
use std::fs;

/// Where the variables are listed.
pub(crate) const CONFIG: &str = "crates/lisa-engine/src/config.rs";
/// Where they are documented.
pub(crate) const README: &str = "README.md";

const BEGIN: &str = "<!-- environment: written by `cargo xtask docs` -->";
const END: &str = "<!-- environment: end -->";

/// One environment variable, as the configuration documents it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    default: String,
    what: String,
}

/// The arguments of `docs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Fail if something is not up to date, and write nothing
    #[arg(long)]
    check: bool,
}

/// `cargo xtask docs`.
pub(crate) fn command(context: &Context, arguments: &Arguments) -> Result<()> {
    let path = context.root.join(README);
    let read =
        |path: &std::path::Path| fs::read_to_string(path).map_err(|error| Failure::io("read", path, &error));
    let old = read(&path)?;
    let new = rewritten(&old, &read(&context.root.join(CONFIG))?)?;
    if new == old {
        println!("{README} is up to date");
        return Ok(());
    }
    if arguments.check {
        return Err(Failure::new(format!("{README} is not up to date")).hint("run `cargo xtask docs`"));
    }
    fs::write(&path, new).map_err(|error| Failure::io("write", &path, &error))?;
    println!("wrote {README}");
    Ok(())
}

/// The README with its generated part made anew.
pub(crate) fn rewritten(readme: &str, config: &str) -> Result<String> {
    let missing = || Failure::new(format!("{README} has no lines `{BEGIN}` and `{END}`"));
    let (before, rest) = readme.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}\n{}{END}{after}", section(config)?))
}

fn section(config: &str) -> Result<String> {
    let [read, given] = variables(config)?;
    let mut text = String::from("| variable | default | what it does |\n|---|---|---|\n");
    for variable in &read {
        let default =
            if variable.default.is_empty() { "none".to_owned() } else { format!("`{}`", variable.default) };
        text += &format!("| `{}` | {default} | {} |\n", variable.name, variable.what);
    }
    text += "\nA session's process gets these:\n\n| variable | what it says |\n|---|---|\n";
    for variable in &given {
        text += &format!("| `{}` | {} |\n", variable.name, variable.what);
    }
    Ok(text)
}

/// The variables that Lisa reads, and those that a session's process gets.
pub(crate) fn variables(config: &str) -> Result<[Vec<Variable>; 2]> {
    Ok([list(config, "ENVIRONMENT")?, list(config, "SESSION_ENVIRONMENT")?])
}

/// The `EnvVar`s of one constant list.
fn list(config: &str, constant: &str) -> Result<Vec<Variable>> {
    let failed = || Failure::new(format!("{CONFIG} has no list `{constant}` of variables that can be read"));
    let (_, rest) = config.split_once(&format!("pub const {constant}: &[EnvVar] = &[")).ok_or_else(failed)?;
    let (body, _) = rest.split_once("];").ok_or_else(failed)?;
    let variables: Option<Vec<_>> = body.split("EnvVar {").skip(1).map(variable).collect();
    variables.filter(|list| !list.is_empty()).ok_or_else(failed)
}

fn variable(text: &str) -> Option<Variable> {
    let field = |name: &str| {
        let (_, rest) = text.split_once(&format!("{name}:"))?;
        let (value, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(value.to_owned())
    };
    Some(Variable { name: field("name")?, default: field("default")?, what: field("what")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
/// Read.
pub const ENVIRONMENT: &[EnvVar] = &[
    EnvVar {
        name: "LISA_STATE_DIR",
        default: "$XDG_STATE_HOME/lisa",
        what: "directory for session state",
    },
    EnvVar { name: "LISA_LOG", default: "warn", what: "what is logged" },
];
pub const SESSION_ENVIRONMENT: &[EnvVar] = &[EnvVar { name: "LISA_MODE", default: "", what: "the mode" }];
"#;

    #[test]
    fn the_lists_are_read_in_order() {
        let [read, given] = variables(SOURCE).unwrap();
        assert_eq!(read.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["LISA_STATE_DIR", "LISA_LOG"]);
        assert_eq!(read[0].default, "$XDG_STATE_HOME/lisa");
        assert_eq!(given[0].what, "the mode");
    }

    #[test]
    fn only_the_part_between_the_marks_changes_and_only_once() {
        let readme = format!("before\n{BEGIN}\nstale\n{END}\nafter\n");
        let new = rewritten(&readme, SOURCE).unwrap();
        assert!(new.starts_with("before\n") && new.ends_with("\nafter\n") && !new.contains("stale"));
        assert!(new.contains("| `LISA_LOG` | `warn` | what is logged |"));
        assert_eq!(rewritten(&new, SOURCE).unwrap(), new);
    }

    #[test]
    fn a_list_that_can_not_be_read_is_an_error_not_an_empty_table() {
        assert!(variables("pub const OTHER: u8 = 1;").is_err());
    }
}
