//! The `next` column: what to do next, with command names.

use lisa_engine::{api::Next, drive::gate::hint};

/// The engine's next step as text, with command names.
pub(crate) fn describe(next: &Next) -> String {
    match next {
        Next::Spawn => "there are no sessions: lisa session spawn starts one".to_owned(),
        // A monitor starts with the current states, so it needs no cursor.
        Next::Wait { session, .. } => format!("lisa session monitor {session}"),
        Next::WaitAgain { .. } => "lisa session monitor waits again".to_owned(),
        Next::Answer { session } => {
            format!("lisa session answer {session}: choose one of prompt.options and pass --prompt-id")
        }
        Next::ReadDialog { session } => format!(
            "read the dialog with lisa session status {session}; lisa session answer only if you want one of its options"
        ),
        Next::Collect { session } => format!(
            "lisa session capture {session} for its answer, then lisa session send to continue or lisa session kill when done"
        ),
        Next::Redirect { session } => {
            format!("lisa session send {session} with what to do instead, or lisa session kill")
        }
        Next::Send { session } => format!("lisa session send {session} to continue"),
        Next::Retry { session } => {
            format!("read `error` of {session}; if it is recoverable, lisa session send again later")
        }
        Next::Resume { session } => format!(
            "lisa session capture {session} --view output; lisa session resume to continue, or lisa session kill"
        ),
        Next::Unblock { session } => {
            format!("lisa session explain {session}; then lisa session interrupt or lisa session kill")
        }
        Next::Diagnose { session } => format!("lisa session explain {session}, or lisa doctor"),
        Next::Overcome { refusal } => hint(*refusal).to_owned(),
    }
}
