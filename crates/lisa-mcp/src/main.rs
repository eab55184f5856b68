//! Lisa's MCP server and its sub-commands.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.first().map(String::as_str) {
        Some("replay") => replay(&args[1..]),
        _ => Err("usage: lisa-mcp replay [--full] < recording".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "lisa-mcp: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Reads a recording on standard input and prints a verdict for each of its frames.
fn replay(args: &[String]) -> Result<(), String> {
    let full = match args {
        [] => false,
        [flag] if flag == "--full" => true,
        _ => return Err("usage: lisa-mcp replay [--full] < recording".to_owned()),
    };
    let profiles = lisa_engine::profile::Profiles::load(None).map_err(|error| error.to_string())?;
    let output = std::io::BufWriter::new(std::io::stdout().lock());
    lisa_engine::recording::replay::run(&profiles, std::io::stdin().lock(), output, std::io::stderr(), full)
}
