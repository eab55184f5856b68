//! The house rules: what reviewers would otherwise have to say again and again.
//!
//! They read the sources as text, so they also hold for a crate that does not build.

mod layers;
mod manners;
mod paper;
mod source;

use crate::{
    context::Context,
    failure::{Failure, Result},
};
use source::Tree;

/// One house rule.
struct Rule {
    /// What holds.
    what: &'static str,
    /// Every place where it does not.
    check: fn(&Tree) -> Vec<String>,
}

const RULES: &[Rule] = &[
    Rule { what: "no Rust file has more than 600 lines", check: manners::sizes },
    Rule { what: "no work is left open in the code, and no test is switched off", check: manners::open_ends },
    Rule { what: "plain words: none of the worst", check: manners::plain_words },
    Rule { what: "no path of somebody's own machine", check: manners::private_paths },
    Rule { what: "every test file has a name of its own", check: manners::test_names },
    Rule { what: "only the engine's tmux door starts tmux", check: layers::tmux_door },
    Rule { what: "no agent's name in code: agents are profiles", check: layers::agent_names },
    Rule { what: "the engine knows no front end", check: layers::front_ends },
    Rule { what: "the developer commands link no crate of Lisa's", check: layers::developer_commands },
    Rule { what: "every LISA_ variable is in the documented list", check: paper::variables },
    Rule { what: "the README names the commands to begin with", check: paper::commands },
    Rule { what: "the generated parts of the documentation are up to date", check: paper::generated },
    Rule { what: "ARCHITECTURE.md has at most 150 lines", check: paper::map_size },
];

/// What came of the rules.
pub(crate) struct Findings {
    /// How many hold.
    pub(crate) kept: u32,
    /// Those that do not.
    pub(crate) broken: Vec<String>,
}

/// Checks every rule and prints the places where one is broken.
pub(crate) fn run(context: &Context) -> Result<Findings> {
    let tree = Tree::read(&context.root)?;
    let mut findings = Findings { kept: 0, broken: Vec::new() };
    for rule in RULES {
        let places = (rule.check)(&tree);
        if places.is_empty() {
            findings.kept += 1;
            continue;
        }
        println!("  broken: {}", rule.what);
        for place in &places {
            println!("    {place}");
        }
        findings.broken.push(format!("{} ({} places)", rule.what, places.len()));
    }
    if tree.files.is_empty() {
        return Err(Failure::new("the workspace has no files").hint("run it inside the git checkout"));
    }
    Ok(findings)
}
