//! `lisa record`: records what Lisa sees of a session to a file.

use crate::{
    LisaPlugin, columns,
    complete::{Arg, Source, completes},
    context::CommandContext,
    convert,
    errors::{At, invalid_argument, labeled},
    names::{self, Names},
    signature::{OverNames, example, lisa},
};
use lisa_engine::error::{Error, Kind};
use nu_plugin::{EngineInterface, EvaluatedCall, SimplePluginCommand};
use nu_protocol::{Example, LabeledError, Signature, Spanned, SyntaxShape, Value};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::Path,
    time::{Duration, Instant},
};

/// `lisa record`
pub(crate) struct Record;

impl SimplePluginCommand for Record {
    type Plugin = LisaPlugin;

    fn name(&self) -> &str {
        "lisa record"
    }

    fn description(&self) -> &str {
        "Record what Lisa sees of a session until it ends, the time limit, or Ctrl-C."
    }

    fn extra_description(&self) -> &str {
        "Secrets are masked. Record a wrong verdict to turn it into a test: see `lisa replay`. After Ctrl-C the recording is\n\
         complete up to that point, although the shell reports an interrupt."
    }

    fn search_terms(&self) -> Vec<&str> {
        vec!["recording", "timeline", "capture"]
    }

    fn signature(&self) -> Signature {
        lisa("lisa record")
            .one_name(columns::table(columns::RECORDED))
            .named(
                "out",
                SyntaxShape::Filepath,
                "The output file (default: <name>.jsonl in this directory).",
                Some('o'),
            )
            .named("limit", SyntaxShape::Duration, "Time limit (default: until the session ends).", Some('l'))
            .switch("force", "Overwrite an existing file.", Some('f'))
    }

    fn examples(&self) -> Vec<Example<'_>> {
        vec![example(
            "Record half a second",
            "lisa record docs --limit 500ms --out /tmp/docs.jsonl --force | get name",
            Value::test_list(vec![Value::test_string("docs")]),
        )]
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
        let given: Option<Spanned<String>> = call.get_flag("out")?;
        let (file, span) = match given {
            Some(given) => (lisa.cwd.join(given.item), given.span),
            None => (lisa.cwd.join(format!("{}.jsonl", named.name)), call.head),
        };
        let limit: Option<Duration> = call.get_flag("limit")?;
        let began = Instant::now();
        let mut out = BufWriter::new(create(&file, call.has_flag("force")?).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                let message = format!("{} already exists", file.display());
                return invalid_argument(
                    message,
                    "choose another file with --out, or overwrite it with --force",
                    span,
                );
            }
            labeled(&Error::io("write", &file, &error), span)
        })?);
        let interrupt = lisa.interrupt.with_liveness_check();
        let frames = match lisa.engine.record(&named.name, &mut out, limit, &interrupt.cancel()) {
            // After Ctrl-C, the recording is complete up to that point.
            Err(error) if error.kind() == Kind::Cancelled => None,
            frames => Some(frames.at(named.span)?),
        };
        let bytes = out.flush().and_then(|()| std::fs::read(&file));
        let bytes = bytes.map_err(|error| labeled(&Error::io("write", &file, &error), span))?;
        let lines = bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum();
        let size = bytes.len() as u64;
        let frames = frames.unwrap_or(lines);
        let row = convert::recorded(&named.name, &file, frames, size, began.elapsed(), call.head);
        Ok(Value::list(vec![row], call.head))
    }
}

fn create(file: &Path, force: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(file)
}
