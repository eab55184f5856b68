//! The part of the documentation that a run of the fuzzer writes.

use super::{
    build::{Fuzzer, Listed},
    report::{Figures, thousands},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
};
use std::fs;

const PAGE: &str = "docs/reliability.md";
const BEGIN: &str = "<!-- fuzz: written by `cargo xtask fuzz --write` -->";
const END: &str = "<!-- fuzz: end -->";

/// Writes the figures of a run over every target into the page.
pub(super) fn write(
    context: &Context,
    fuzzer: &Fuzzer,
    figures: &[Figures],
    arguments: &[String],
) -> Result<()> {
    let path = context.root.join(PAGE);
    let old = fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, &error))?;
    let new = rewritten(&old, &section(fuzzer.targets(), figures, arguments))?;
    fs::write(&path, new).map_err(|error| Failure::io("write", &path, &error))?;
    println!("wrote {PAGE}");
    Ok(())
}

fn rewritten(page: &str, section: &str) -> Result<String> {
    let missing = || Failure::new(format!("{PAGE} has no lines `{BEGIN}` and `{END}`"));
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}\n{section}{END}{after}"))
}

fn section(targets: &[Listed], figures: &[Figures], arguments: &[String]) -> String {
    let total: u64 = figures.iter().map(|target| target.inputs).sum();
    let findings = figures.iter().filter(|target| target.finding.is_some()).count();
    let mut text = format!(
        "`cargo xtask fuzz {}` ran {} inputs over {} targets, with {findings} findings.\n\n\
         | target | what it reads | inputs | findings |\n|---|---|---:|---:|\n",
        arguments.join(" "),
        thousands(total),
        figures.len(),
    );
    for Figures { target, inputs, finding, .. } in figures {
        let what = targets.iter().find(|listed| listed.name == *target).map_or("", |listed| &listed.what);
        text +=
            &format!("| `{target}` | {what} | {} | {} |\n", thousands(*inputs), u32::from(finding.is_some()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_written_between_the_marks_with_its_command_and_its_sum() {
        let targets = [Listed { name: "hooks".into(), what: "what hooks say".into() }];
        let figures =
            [Figures { target: "hooks".into(), inputs: 12_000, per_second: 9, corpus: 1, finding: None }];
        let section = section(&targets, &figures, &["--seconds".into(), "9".into(), "--write".into()]);
        assert!(section.starts_with("`cargo xtask fuzz --seconds 9 --write` ran 12,000 inputs"), "{section}");
        assert!(section.ends_with("| `hooks` | what hooks say | 12,000 | 0 |\n"), "{section}");
        let page = format!("before\n{BEGIN}\nstale\n{END}\nafter\n");
        let new = rewritten(&page, &section).unwrap();
        assert!(new.starts_with("before\n") && new.ends_with("\nafter\n") && !new.contains("stale"));
        assert!(rewritten("no marks", &section).is_err());
    }
}
