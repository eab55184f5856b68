//! Real agents as children: each plays every scenario on a scripted model, through every front end, and what Lisa says
//! of it all the while is compared with the model server's own log.

use lisa_tests::agents::AgentKind::{self, Claude, Codex};
use lisa_tests::hands::Through::{self, Engine, Mcp, Nu};
use lisa_tests::play::{ALONE, CONVERSATION, PAIR, play};

fn converses(kind: AgentKind, through: Through) {
    play(kind, through, CONVERSATION, 1);
}

fn runs_alone(kind: AgentKind, through: Through) {
    play(kind, through, ALONE, 1);
}

fn is_one_of_two(kind: AgentKind, through: Through) {
    play(kind, through, PAIR, 2);
}

macro_rules! children {
    ($($module:ident: $kind:expr, $through:expr;)*) => {$(
        mod $module {
            use super::*;

            #[test]
            fn converses_and_is_told_rightly() {
                converses($kind, $through);
            }

            #[test]
            fn plans_asks_for_trust_and_runs_to_completion() {
                runs_alone($kind, $through);
            }

            #[test]
            fn is_told_from_another_in_the_same_project() {
                is_one_of_two($kind, $through);
            }
        }
    )*};
}

children! {
    claude_through_the_engine: Claude, Engine;
    claude_through_mcp: Claude, Mcp;
    claude_through_nu: Claude, Nu;
    codex_through_the_engine: Codex, Engine;
    codex_through_mcp: Codex, Mcp;
    codex_through_nu: Codex, Nu;
}
