//! The declared output types of all commands. Nushell checks assignments such as `let x: table<name: string>` against
//! them and completes column names from them, but doesn't enforce them; tests in `convert` do.
//!
//! Names and words are those of the API. Fields with a unit (`idle_ms`, `wait_estimate_s`) are durations here, without
//! the unit in the name; `started_at` is `started`.

use nu_protocol::Type;

/// Column names with their types, in order.
pub(crate) type Columns = Vec<(&'static str, Type)>;

/// A table of these columns.
pub(crate) fn table(columns: Columns) -> Type {
    Type::Table(columns.into_iter().map(|(name, ty)| (name.to_owned(), ty)).collect())
}

/// A record of these fields.
pub(crate) fn record(columns: Columns) -> Type {
    Type::Record(columns.into_iter().map(|(name, ty)| (name.to_owned(), ty)).collect())
}

/// A nullable type.
pub(crate) fn or_null(ty: Type) -> Type {
    Type::one_of([ty, Type::Nothing])
}

fn text() -> Type {
    Type::String
}

fn texts() -> Type {
    Type::list(Type::String)
}

/// A row of `lisa session list`. The first five fit a terminal of 80 columns.
pub(crate) fn row() -> Columns {
    vec![
        ("name", text()),
        ("agent", text()),
        ("status", text()),
        ("idle", Type::Duration),
        ("started", Type::Date),
        ("state", text()),
        ("attention", text()),
        ("prompt", or_null(record(prompt()))),
        ("project", text()),
        ("cwd", text()),
        ("mode", text()),
        ("pid", or_null(Type::Int)),
        ("tag", or_null(text())),
        ("parent", or_null(text())),
        ("host", text()),
        ("reason", text()),
    ]
}

/// A row of `lisa session status`. Nested records have no declared fields: commands that take names repeat this type for
/// each input type, and their help should stay readable.
pub(crate) fn session() -> Columns {
    vec![
        ("name", text()),
        ("agent", text()),
        ("status", text()),
        ("idle", Type::Duration),
        ("started", Type::Date),
        ("state", text()),
        ("attention", text()),
        ("prompt", or_null(Type::record())),
        ("reason", text()),
        ("confidence", text()),
        ("source", text()),
        ("since", Type::Date),
        ("activity", or_null(text())),
        ("tool", or_null(text())),
        ("last_message", or_null(text())),
        ("asks", or_null(Type::Bool)),
        ("error", or_null(Type::record())),
        ("exit", or_null(Type::record())),
        ("expected", or_null(text())),
        ("failed_signals", texts()),
        ("mode", text()),
        ("cwd", text()),
        ("project", text()),
        ("project_hash", text()),
        ("tag", or_null(text())),
        ("parent", or_null(text())),
        ("depth", Type::Int),
        ("host", text()),
        ("pid", or_null(Type::Int)),
        ("run_id", text()),
        ("agent_session_id", or_null(text())),
        ("turn", or_null(text())),
        ("subagents", Type::Int),
        ("background_tasks", Type::Int),
        ("todos", or_null(Type::record())),
        ("wait_estimate", or_null(Type::Duration)),
        ("usage", or_null(Type::record())),
        ("signals", or_null(Type::record())),
    ]
}

/// A prompt.
pub(crate) fn prompt() -> Columns {
    vec![
        ("id", text()),
        ("kind", text()),
        ("dialog", or_null(text())),
        ("title", text()),
        ("body", text()),
        ("tool", or_null(text())),
        ("command", or_null(text())),
        ("file", or_null(text())),
        ("options", table(option())),
        ("multi", Type::Bool),
        ("free_text", Type::Bool),
        ("truncated", Type::Bool),
        ("step", or_null(record(vec![("number", Type::Int), ("of", Type::Int)]))),
    ]
}

/// An option of a prompt.
pub(crate) fn option() -> Columns {
    vec![
        ("key", text()),
        ("label", text()),
        ("selected", Type::Bool),
        ("checked", or_null(Type::Bool)),
        ("effect", text()),
    ]
}

/// The output of `lisa session spawn`: the session, and the receipt of its prompt.
pub(crate) fn spawned() -> Columns {
    let mut columns = session();
    columns.extend([("receipt", or_null(record(receipt()))), ("cursor", Type::Int), ("next", text())]);
    columns
}

/// The receipt of a sent prompt.
pub(crate) fn receipt() -> Columns {
    vec![
        ("delivered", text()),
        ("turn", or_null(text())),
        ("evidence", or_null(text())),
        ("at", Type::Date),
        ("refusal", or_null(text())),
        ("hint", or_null(text())),
        ("recorded", Type::Bool),
    ]
}

/// The output of `lisa session send`.
pub(crate) fn sent() -> Columns {
    let mut columns = vec![("name", text())];
    columns.extend(receipt());
    columns.extend([("status", text()), ("state", text()), ("cursor", Type::Int), ("next", text())]);
    columns
}

/// A row of `lisa session answer`.
pub(crate) fn answered() -> Columns {
    vec![
        ("name", text()),
        ("effect", or_null(text())),
        // What was answered, or why nothing was. Kept among the first columns, which fit a small terminal.
        ("detail", text()),
        ("state", or_null(text())),
        ("status", or_null(text())),
        ("answered", texts()),
        ("title", or_null(text())),
        ("prompt_id", or_null(text())),
        ("recorded", or_null(Type::Bool)),
        ("cursor", or_null(Type::Int)),
        ("next", or_null(text())),
        ("error", or_null(record(problem()))),
    ]
}

/// A row of `interrupt`, `resume`, `kill` and `kill-all`.
pub(crate) fn action() -> Columns {
    vec![
        ("name", text()),
        ("was", or_null(text())),
        ("done", or_null(text())),
        ("detail", or_null(text())),
        ("recorded", or_null(Type::Bool)),
        ("error", or_null(record(problem()))),
    ]
}

/// The error of a failed action.
pub(crate) fn problem() -> Columns {
    vec![("code", text()), ("message", text()), ("help", text())]
}

/// A row of `lisa watch`.
pub(crate) fn event() -> Columns {
    vec![
        ("at", Type::Date),
        ("session", text()),
        ("event", text()),
        ("status", text()),
        ("state", text()),
        ("detail", text()),
        ("cursor", Type::Int),
        ("turn", or_null(text())),
        ("data", or_null(Type::record())),
    ]
}

/// A row of `lisa session tree`.
pub(crate) fn tree() -> Columns {
    vec![
        ("name", text()),
        ("agent", text()),
        ("status", text()),
        ("idle", Type::Duration),
        ("started", Type::Date),
        ("state", text()),
        ("attention", text()),
        ("depth", Type::Int),
        // Recursive, which Nushell's types can't express.
        ("children", Type::list(Type::Any)),
    ]
}

/// The output of `lisa session explain`.
pub(crate) fn explanation() -> Columns {
    vec![
        ("name", text()),
        ("status", text()),
        ("state", text()),
        ("rule", text()),
        ("rule_says", text()),
        ("confidence", text()),
        ("source", text()),
        ("since", Type::Date),
        ("evidence_for", table(evidence())),
        ("evidence_against", table(evidence())),
        ("passed_over", table(vec![("rule", text()), ("why_not", text())])),
        ("failed", table(vec![("signal", text()), ("why", text()), ("would_tell", text())])),
        ("session", record(session())),
    ]
}

fn evidence() -> Columns {
    vec![
        ("claim", text()),
        ("source", text()),
        ("authority", Type::Int),
        ("age", Type::Duration),
        ("quote", text()),
    ]
}

/// A row of `lisa doctor`.
pub(crate) fn check() -> Columns {
    vec![
        ("name", text()),
        ("ok", Type::Bool),
        ("required", Type::Bool),
        ("detail", text()),
        ("fix", or_null(text())),
    ]
}

/// A row of `lisa agent list`.
pub(crate) fn agent() -> Columns {
    vec![
        ("id", text()),
        ("title", text()),
        ("installed", Type::Bool),
        ("exec", Type::Bool),
        ("resume", Type::Bool),
        ("own", Type::Bool),
        ("recorded_with", texts()),
        ("prompt_in_arguments", Type::Bool),
        ("path", or_null(text())),
        ("install", text()),
    ]
}

/// A row of `lisa cleanup`.
pub(crate) fn removed() -> Columns {
    vec![("kind", text()), ("name", text()), ("why", text())]
}

/// A row of `lisa record`.
pub(crate) fn recorded() -> Columns {
    vec![
        ("name", text()),
        ("file", text()),
        ("frames", Type::Int),
        ("size", Type::Filesize),
        ("took", Type::Duration),
    ]
}

/// A row of `lisa replay`.
pub(crate) fn replayed() -> Columns {
    vec![
        ("t", Type::Duration),
        ("status", text()),
        ("state", text()),
        ("reason", text()),
        ("confidence", text()),
        ("source", text()),
    ]
}
