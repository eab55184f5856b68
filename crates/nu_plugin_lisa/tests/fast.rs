//! Tests that need no session: signatures, and errors about invalid arguments.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]
#![allow(clippy::result_large_err, reason = "Nushell's own error type")]

use nu_plugin::{Plugin, PluginCommand};
use nu_plugin_lisa::LisaPlugin;
use nu_plugin_test_support::PluginTest;
use nu_protocol::{LabeledError, ShellError, Span, Type, Value};

/// A Nushell engine with the plugin, and temporary working and state directories.
struct Shell {
    test: PluginTest,
    _dir: tempfile::TempDir,
}

impl Shell {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut test = PluginTest::new("lisa", LisaPlugin.into()).unwrap();
        let path = Value::test_string(dir.path().to_str().unwrap());
        for name in ["PWD", "HOME", "LISA_STATE_DIR", "LISA_CONFIG_DIR"] {
            test.engine_state_mut().add_env_var(name.to_owned(), path.clone());
        }
        Self { test, _dir: dir }
    }

    fn eval(&mut self, source: &str) -> Result<Value, ShellError> {
        self.test.eval(source)?.into_value(Span::test_data())
    }

    #[track_caller]
    fn error(&mut self, source: &str) -> LabeledError {
        match self.eval(source) {
            Err(ShellError::LabeledError(error)) => *error,
            other => panic!("`{source}` should fail with a labelled error: {other:?}"),
        }
    }

    #[track_caller]
    fn fails(&mut self, source: &str, code: &str, help: &str) {
        let error = self.error(source);
        assert_eq!(error.code.as_deref(), Some(code), "{source}: {error:?}");
        assert!(error.help.as_deref().is_some_and(|text| text.contains(help)), "{source}: {error:?}");
        assert!(!error.labels.is_empty(), "{source}: the error has a label");
    }
}

fn commands() -> Vec<Box<dyn PluginCommand<Plugin = LisaPlugin>>> {
    LisaPlugin.commands()
}

#[test]
fn all_commands_are_registered() {
    let mut names: Vec<String> = commands().iter().map(|command| command.name().to_owned()).collect();
    names.sort();
    let want = [
        "lisa",
        "lisa agent",
        "lisa agent build-cmd",
        "lisa agent list",
        "lisa cleanup",
        "lisa doctor",
        "lisa record",
        "lisa replay",
        "lisa session",
        "lisa session answer",
        "lisa session attach",
        "lisa session capture",
        "lisa session exists",
        "lisa session explain",
        "lisa session interrupt",
        "lisa session kill",
        "lisa session kill-all",
        "lisa session list",
        "lisa session monitor",
        "lisa session name",
        "lisa session resume",
        "lisa session send",
        "lisa session spawn",
        "lisa session status",
        "lisa session tree",
        "lisa watch",
    ];
    assert_eq!(names, want);
}

#[test]
fn descriptions_are_sentences() {
    for command in commands() {
        let description = command.description();
        assert!(description.ends_with('.'), "{}: {description}", command.name());
        assert!(
            description.chars().next().is_some_and(char::is_uppercase),
            "{}: {description}",
            command.name()
        );
        let signature = command.signature();
        let positionals = signature.required_positional.iter().chain(&signature.optional_positional);
        let described = positionals.chain(&signature.rest_positional).map(|arg| (&arg.name, &arg.desc));
        let flags =
            signature.named.iter().filter(|flag| flag.long != "help").map(|flag| (&flag.long, &flag.desc));
        for (name, text) in described.chain(flags) {
            assert!(
                text.ends_with('.') && text.chars().next().is_some_and(char::is_uppercase),
                "{name}: {text}"
            );
        }
    }
}

#[test]
fn every_command_declares_its_types_and_has_an_example_with_a_result() {
    for command in commands() {
        let signature = command.signature();
        assert!(!signature.input_output_types.is_empty(), "{}", command.name());
        for (_, output) in &signature.input_output_types {
            assert!(*output != Type::Any, "{}", command.name());
        }
        assert!(command.examples().iter().any(|example| example.result.is_some()), "{}", command.name());
        assert!(signature.required_positional.len() + signature.optional_positional.len() <= 2);
    }
}

#[test]
fn flags_are_as_specified() {
    let want = [
        ("lisa session list", "agent -a, status -s, project -p, all -A"),
        (
            "lisa session spawn",
            "prompt -p, name -n, tag -t, cwd -c, mode -m, model, env -e, policy, size, trust, dangerous, wait -w",
        ),
        ("lisa session send", "keys -k, queue -q, replace-draft, force -f, wait -w"),
        ("lisa session answer", "choice -c, text -t, prompt-id"),
        ("lisa session monitor", "until -u, turn, all, timeout -t, stream -s"),
        ("lisa session capture", "view -v, lines -n, since, ansi"),
        ("lisa session kill", "force -f"),
        ("lisa session kill-all", "project -p, agent -a, force -f"),
        ("lisa watch", "since, event -e"),
        ("lisa agent build-cmd", "mode -m, prompt -p, model"),
    ];
    let all = commands();
    for (name, flags) in want {
        let command = all.iter().find(|command| command.name() == name).unwrap();
        let named = command.signature().named;
        let got: Vec<String> = named
            .iter()
            .filter(|flag| flag.long != "help")
            .map(|flag| flag.short.map_or(flag.long.clone(), |short| format!("{} -{short}", flag.long)))
            .collect();
        assert_eq!(got.join(", "), flags, "{name}");
    }
}

#[test]
fn a_command_without_names_is_an_error() {
    let mut shell = Shell::new();
    for command in
        ["status", "answer --choice deny", "interrupt", "resume", "kill", "explain", "capture", "attach"]
    {
        shell.fails(&format!("lisa session {command}"), "lisa::invalid_argument", "name");
    }
}

#[test]
fn an_empty_list_does_nothing() {
    let mut shell = Shell::new();
    for command in ["answer --choice deny", "interrupt", "resume", "kill", "status", "monitor"] {
        let done = shell.eval(&format!("[] | lisa session {command}")).unwrap();
        assert_eq!(done, Value::test_list(vec![]), "{command}");
    }
    assert_eq!(shell.eval("[] | lisa watch").unwrap(), Value::test_list(vec![]));
}

#[test]
fn an_invalid_word_is_an_error_with_the_valid_ones() {
    let mut shell = Shell::new();
    let code = "lisa::invalid_argument";
    shell.fails("lisa session list --status waiting", code, "waiting_input");
    shell.fails("lisa session monitor x --until waiting_inptu", code, "waiting_input");
    shell.fails("lisa session capture x --view sreen", code, "screen");
    shell.fails("lisa watch --event propmt", code, "prompt");
    shell.fails("lisa session spawn demo --mode batch", code, "exec");
    shell.fails("lisa session spawn demo --size big", code, "220x60");
    shell.fails("lisa session spawn demo --policy {alow: [Read]}", code, "allow");
    shell.fails("lisa session capture x --lines 0", code, "2000");
    shell.fails("lisa session capture x --since (-1)", code, "returned");
}

#[test]
fn an_action_without_its_argument_is_an_error() {
    let mut shell = Shell::new();
    let code = "lisa::invalid_argument";
    shell.fails("lisa session send x", code, "pipe");
    shell.fails("lisa session answer x", code, "--choice");
    shell.fails("lisa session spawn", code, "lisa agent list");
    shell.fails("lisa replay", code, "file");
}

#[test]
fn an_error_points_at_the_argument_it_is_about() {
    let mut shell = Shell::new();
    let source = "lisa session list --status waiting";
    let label = shell.error(source).labels[0].clone();
    assert_eq!(label.span.end - label.span.start, "--status waiting".len());
    let error = shell.error("lisa replay nowhere.jsonl");
    assert_eq!(error.code.as_deref(), Some("lisa::io"));
    assert_eq!(error.labels[0].span.end - error.labels[0].span.start, "nowhere.jsonl".len());
}

#[test]
fn the_callers_environment_is_used() {
    let mut shell = Shell::new();
    shell.fails("$env.LISA_MAX_SESSIONS = 'many'; lisa doctor", "lisa::invalid_config", "LISA_MAX_SESSIONS");
    shell.fails("$env.LISA_STATE_DIR = 'here'; lisa doctor", "lisa::invalid_config", "LISA_STATE_DIR");
}

#[test]
fn settings_come_from_the_configuration_and_invalid_ones_are_named() {
    let mut shell = Shell::new();
    shell.fails("$env.config.plugins.lisa = {agnet: demo}; lisa doctor", "lisa::invalid_config", "agent");
    shell.fails(
        "$env.config.plugins.lisa = {timeout: soon}; lisa doctor",
        "lisa::invalid_config",
        "help lisa",
    );
    shell.fails(
        "$env.config.plugins.lisa = {mode: batch}; lisa session name demo",
        "lisa::invalid_argument",
        "exec",
    );
}
