//! `cargo xtask ci`: what the build server runs, in one command, as strictly.

use crate::{context::Context, failure::Result, setup, test};

/// The arguments of `ci`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// List what would be run
    #[arg(long)]
    list: bool,
}

/// One part of what the build server runs.
struct Part {
    name: &'static str,
    why: &'static str,
    run: fn(&Context) -> Result<()>,
}

const PARTS: &[Part] = &[
    Part {
        name: "setup",
        why: "a machine that has only Rust, git and npm",
        run: |context| setup::command(context, &setup::Arguments::default()),
    },
    Part {
        name: "test",
        why: "every group; what is skipped has failed",
        run: |context| test::command(context, &test::Arguments::default()),
    },
];

/// `cargo xtask ci`.
pub(crate) fn command(context: &Context, arguments: &Arguments) -> Result<()> {
    let strict = context.strictly();
    for part in PARTS {
        println!("CI=true cargo xtask {:8} # {}", part.name, part.why);
        if !arguments.list {
            (part.run)(&strict)?;
        }
    }
    Ok(())
}
