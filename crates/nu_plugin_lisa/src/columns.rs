//! The columns of every command's output: their names, their types, and the field of the API that each shows. `convert`
//! fills them, and signatures declare them: Nushell checks assignments such as `let x: table<name: string>` against
//! them and completes column names from them.
//!
//! Names and words are those of the API. Fields with a unit (`idle_ms`, `wait_estimate_s`) are durations here, without
//! the unit in the name; `started_at` is `started`.

use nu_protocol::Type;

/// The columns of a record or table, in order.
pub(crate) type Columns = &'static [Column];

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// Its name in Nushell.
    pub(crate) name: &'static str,
    /// The field of the API, which has the same name unless this says otherwise.
    pub(crate) field: &'static str,
    pub(crate) kind: Kind,
    /// Whether it is null where the API has nothing.
    nullable: bool,
}

/// The type of a column, and what the API has in its place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Texts,
    Int,
    Float,
    Bool,
    /// A flag that the API leaves out where it has this value.
    Flag(bool),
    /// A timestamp.
    Date,
    /// A number of these milliseconds.
    Duration(u64),
    /// Milliseconds, of which two units are shown.
    Idle,
    /// A number of bytes.
    Size,
    Record(Columns),
    /// The same, declared without its fields: commands that take names repeat the type of their output for each type of
    /// input, and their help should stay readable.
    Plain(Columns),
    Table(Columns),
    /// A table whose rows have the columns of the whole, which Nushell's types can't express.
    Nested,
    /// An object with any fields.
    Any,
}

impl Column {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, field: name, kind, nullable: false }
    }

    const fn or_null(self) -> Self {
        Self { nullable: true, ..self }
    }

    const fn of(self, field: &'static str) -> Self {
        Self { field, ..self }
    }

    fn ty(&self) -> Type {
        let ty = self.kind.ty();
        if self.nullable { Type::one_of([ty, Type::Nothing]) } else { ty }
    }
}

impl Kind {
    fn ty(self) -> Type {
        match self {
            Self::Text => Type::String,
            Self::Texts => Type::list(Type::String),
            Self::Int => Type::Int,
            Self::Float => Type::Float,
            Self::Bool | Self::Flag(_) => Type::Bool,
            Self::Date => Type::Date,
            Self::Duration(_) | Self::Idle => Type::Duration,
            Self::Size => Type::Filesize,
            Self::Record(columns) => record(columns),
            Self::Table(columns) => table(columns),
            Self::Nested => Type::list(Type::Any),
            Self::Plain(_) | Self::Any => Type::record(),
        }
    }
}

/// The type of a table of these columns.
pub(crate) fn table(columns: Columns) -> Type {
    Type::Table(columns.iter().map(|column| (column.name.to_owned(), column.ty())).collect())
}

/// The type of a record of these fields.
pub(crate) fn record(columns: Columns) -> Type {
    Type::Record(columns.iter().map(|column| (column.name.to_owned(), column.ty())).collect())
}

const fn text(name: &'static str) -> Column {
    Column::new(name, Kind::Text)
}

const fn texts(name: &'static str) -> Column {
    Column::new(name, Kind::Texts)
}

const fn int(name: &'static str) -> Column {
    Column::new(name, Kind::Int)
}

const fn bool(name: &'static str) -> Column {
    Column::new(name, Kind::Bool)
}

const fn date(name: &'static str) -> Column {
    Column::new(name, Kind::Date)
}

const fn millis(name: &'static str, field: &'static str) -> Column {
    Column::new(name, Kind::Duration(1)).of(field)
}

const fn nested(name: &'static str, columns: Columns) -> Column {
    Column::new(name, Kind::Record(columns)).or_null()
}

const fn plain(name: &'static str, columns: Columns) -> Column {
    Column::new(name, Kind::Plain(columns)).or_null()
}

const fn recorded() -> Column {
    Column::new("recorded", Kind::Flag(true))
}

const fn rows(name: &'static str, columns: Columns) -> Column {
    Column::new(name, Kind::Table(columns))
}

const IDLE: Column = Column::new("idle", Kind::Idle).of("idle_ms");
const STARTED: Column = date("started").of("started_at");

/// A row of `lisa session list`. The first five fit a terminal of 80 columns.
pub(crate) const ROW: Columns = &[
    text("name"),
    text("agent"),
    text("status"),
    IDLE,
    STARTED,
    text("state"),
    text("attention"),
    nested("prompt", PROMPT),
    text("project"),
    text("cwd"),
    text("mode"),
    int("pid").or_null(),
    text("tag").or_null(),
    text("parent").or_null(),
    text("host"),
    text("reason"),
];

/// A row of `lisa session status`; after it come the columns of `lisa session spawn` alone.
pub(crate) const SESSION: Columns = SPAWNED.split_at(38).0;

/// The output of `lisa session spawn`: the session, and the receipt of its prompt.
pub(crate) const SPAWNED: Columns = &[
    text("name"),
    text("agent"),
    text("status"),
    IDLE,
    STARTED,
    text("state"),
    text("attention"),
    plain("prompt", PROMPT),
    text("reason"),
    text("confidence"),
    text("source"),
    date("since"),
    text("activity").or_null(),
    text("tool").or_null(),
    text("last_message").or_null(),
    bool("asks").or_null(),
    plain("error", FAILURE),
    plain("exit", EXIT),
    text("expected").or_null(),
    texts("failed_signals"),
    text("mode"),
    text("cwd"),
    text("project"),
    text("project_hash"),
    text("tag").or_null(),
    text("parent").or_null(),
    int("depth"),
    text("host"),
    int("pid").or_null(),
    text("run_id"),
    text("agent_session_id").or_null(),
    text("turn").or_null(),
    int("subagents"),
    int("background_tasks"),
    plain("todos", TODOS),
    Column::new("wait_estimate", Kind::Duration(1000)).of("wait_estimate_s").or_null(),
    plain("usage", USAGE),
    Column::new("signals", Kind::Any).or_null(),
    nested("receipt", RECEIPT),
    int("cursor"),
    text("next"),
];

const FAILURE: Columns = &[text("kind"), bool("recoverable"), text("message")];
const EXIT: Columns = &[int("code").or_null(), int("signal").or_null(), text("kind")];
const TODOS: Columns = &[int("done"), int("total"), text("active").or_null()];
const USAGE: Columns = &[
    text("model").or_null(),
    int("input_tokens").or_null(),
    int("output_tokens").or_null(),
    int("context_tokens").or_null(),
    int("context_size").or_null(),
    Column::new("cost_usd", Kind::Float).or_null(),
];

/// A prompt.
pub(crate) const PROMPT: Columns = &[
    text("id"),
    text("kind"),
    text("dialog").or_null(),
    text("title"),
    text("body"),
    text("tool").or_null(),
    text("command").or_null(),
    text("file").or_null(),
    rows("options", OPTION),
    bool("multi"),
    bool("free_text"),
    bool("truncated"),
    Column::new("disagrees", Kind::Flag(false)),
    nested("step", &[int("number"), int("of")]),
];

const OPTION: Columns =
    &[text("key"), text("label"), bool("selected"), bool("checked").or_null(), text("effect")];

const RECEIPT: Columns = &[
    text("delivered"),
    text("turn").or_null(),
    text("evidence").or_null(),
    date("at"),
    text("refusal").or_null(),
    text("hint").or_null(),
    recorded(),
];

/// The output of `lisa session send`.
pub(crate) const SENT: Columns = &[
    text("name").of("session"),
    text("delivered"),
    text("turn").or_null(),
    text("evidence").or_null(),
    date("at"),
    text("refusal").or_null(),
    text("hint").or_null(),
    recorded(),
    text("status"),
    text("state"),
    int("cursor"),
    text("next"),
];

/// A row of `lisa session answer`.
pub(crate) const ANSWERED: Columns = &[
    text("name").of("session"),
    text("effect").or_null(),
    // What was answered, or why nothing was. Kept among the first columns, which fit a small terminal.
    text("detail"),
    text("state").or_null(),
    text("status").or_null(),
    texts("answered"),
    text("title").or_null(),
    text("prompt_id").or_null(),
    bool("recorded").or_null(),
    int("cursor").or_null(),
    text("next").or_null(),
    nested("error", PROBLEM),
];

/// A row of `interrupt`, `resume`, `kill` and `kill-all`.
pub(crate) const ACTION: Columns = &[
    text("name"),
    text("was").or_null(),
    text("done").or_null(),
    text("detail").or_null(),
    bool("recorded").or_null(),
    nested("error", PROBLEM),
];

/// The error of a failed action.
const PROBLEM: Columns = &[text("code"), text("message"), text("help")];

/// A row of `lisa watch`.
pub(crate) const EVENT: Columns = &[
    date("at"),
    text("session"),
    text("event"),
    text("status"),
    text("state"),
    text("detail"),
    int("cursor"),
    text("turn").or_null(),
    Column::new("data", Kind::Any).or_null(),
];

/// A row of `lisa session tree`.
pub(crate) const TREE: Columns = &[
    text("name"),
    text("agent"),
    text("status"),
    IDLE,
    STARTED,
    text("state"),
    text("attention"),
    int("depth"),
    Column::new("children", Kind::Nested),
];

/// The output of `lisa session explain`.
pub(crate) const EXPLANATION: Columns = &[
    text("name"),
    text("status"),
    text("state"),
    text("rule"),
    text("rule_says"),
    text("confidence"),
    text("source"),
    date("since"),
    rows("evidence_for", EVIDENCE),
    rows("evidence_against", EVIDENCE),
    rows("passed_over", &[text("rule"), text("why_not")]),
    rows("failed", &[text("signal"), text("why"), text("would_tell")]),
    Column::new("session", Kind::Record(SESSION)),
];

const EVIDENCE: Columns =
    &[text("claim"), text("source"), int("authority"), millis("age", "age_ms"), text("quote")];

/// A row of `lisa doctor`.
pub(crate) const CHECK: Columns =
    &[text("name"), bool("ok"), bool("required"), text("detail"), text("fix").or_null()];

/// A row of `lisa agent list`.
pub(crate) const AGENT: Columns = &[
    text("id"),
    text("title"),
    bool("installed"),
    bool("exec"),
    bool("resume"),
    bool("own"),
    texts("recorded_with"),
    bool("prompt_in_arguments"),
    text("path").or_null(),
    text("install"),
];

/// A row of `lisa cleanup`.
pub(crate) const REMOVED: Columns = &[text("kind"), text("name"), text("why")];

/// A row of `lisa record`.
pub(crate) const RECORDED: Columns =
    &[text("name"), text("file"), int("frames"), Column::new("size", Kind::Size), millis("took", "took_ms")];

/// A row of `lisa replay`.
pub(crate) const REPLAYED: Columns =
    &[millis("t", "t"), text("status"), text("state"), text("reason"), text("confidence"), text("source")];
