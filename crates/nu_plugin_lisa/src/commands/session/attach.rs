//! `lisa session attach`: attaches this terminal to a session.

use crate::{
    LisaPlugin,
    complete::{Arg, Source, completes},
    context::CommandContext,
    errors::{At, invalid_argument},
    names::{self, Names},
    signature::{OverNames, example, lisa},
};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Type, Value};
use std::process::Command;

/// `lisa session attach`
pub(crate) struct Attach;

impl SimplePluginCommand for Attach {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa session attach"
    }

    fn description(&self) -> &str {
        "Attach this terminal to a session; Ctrl-B D detaches."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["tmux", "open", "join"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa session attach").one_name(Type::Nothing)
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![
            example("Attach to a session", "lisa session attach fix-login", None),
            example(
                "A session that does not exist",
                "try { lisa session attach nobody } catch {|e| $e.details.code }",
                Value::test_string("lisa::session_not_found"),
            ),
        ]
    }

    completes!(Arg::Nth(0) => Source::Sessions);

    fn run(
        &self,
        _plugin: &LisaPlugin,
        interface: &EngineInterface,
        call: &EvaluatedCall,
        input: &Value,
    ) -> Result<Value, LabeledError> {
        let lisa = CommandContext::open(interface, call)?;
        let named = Names::read(call, 0, input)?.one(call.head)?;
        names::check(&lisa.engine, std::slice::from_ref(&named))?;
        let argv = lisa.engine.attach_command(&named.name).at(named.span)?;
        let no_terminal = |why: String| {
            invalid_argument(
                format!("cannot attach this terminal: {why}"),
                "attach from an interactive shell",
                call.head,
            )
        };
        let Some((program, args)) = argv.split_first() else {
            return Err(no_terminal("there is no command to run".into()));
        };
        // In this mode the plugin's standard streams are its connection to the shell, not the terminal.
        if interface.is_using_stdio() {
            return Err(no_terminal("the plugin has no access to it".into()));
        }
        let foreground = interface.enter_foreground().map_err(|error| no_terminal(error.to_string()))?;
        // Lisa has its own tmux server, so attaching from inside another tmux isn't the nesting that tmux rejects.
        let ran = Command::new(program)
            .args(args)
            .env_clear()
            .envs(lisa.env.iter())
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .current_dir(&lisa.cwd)
            .status();
        foreground.leave()?;
        match ran {
            Ok(status) if status.success() => Ok(Value::nothing(call.head)),
            Ok(status) => Err(no_terminal(format!("{program} ended with {status}"))),
            Err(error) => Err(no_terminal(format!("{program} did not start: {error}"))),
        }
    }
}
