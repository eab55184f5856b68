//! `cargo xtask ci`: what the build server runs, in one command, as strictly.

use crate::{
    context::{Context, refuse_unknown},
    failure::Result,
};

/// One part of what the build server runs.
struct Part {
    line: &'static [&'static str],
    why: &'static str,
    run: fn(&Context, &[String]) -> Result<()>,
}

const PARTS: &[Part] = &[
    Part { line: &["setup"], why: "a machine that has only Rust, git and npm", run: crate::tools::command },
    Part { line: &["test"], why: "every group; what is skipped has failed", run: crate::test::command },
];

/// `cargo xtask ci`.
pub(crate) fn command(context: &Context, arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    refuse_unknown(&words, &["--list"])?;
    let strict = context.strictly();
    for part in PARTS {
        let line = part.line.join(" ");
        println!("CI=true cargo xtask {line:8} # {}", part.why);
        if !words.contains(&"--list") {
            let rest: Vec<String> = part.line.iter().skip(1).map(|word| (*word).to_owned()).collect();
            (part.run)(&strict, &rest)?;
        }
    }
    Ok(())
}
