//! Shared parts of signatures.

use lisa_engine::api::{EventKind, View, words::Status};
use nu_protocol::{Category, Completion, Example, Flag, PositionalArg, Signature, SyntaxShape, Type, Value};

/// The words of an API enum as a static list, for completions.
macro_rules! words_of {
    ($set:ty) => {{
        const WORDS: [&str; <$set>::ALL.len()] = {
            let mut words = [""; <$set>::ALL.len()];
            let mut i = 0;
            while i < words.len() {
                words[i] = <$set>::ALL[i].as_str();
                i += 1;
            }
            words
        };
        &WORDS
    }};
}

/// All statuses.
pub(crate) const STATUSES: &[&str] = words_of!(Status);
/// All kinds of events.
pub(crate) const EVENTS: &[&str] = words_of!(EventKind);
/// All views of a session.
pub(crate) const VIEWS: &[&str] = words_of!(View);
/// All modes.
pub(crate) const MODES: &[&str] = &["interactive", "exec"];

/// A signature in the category `lisa` of `help commands`.
pub(crate) fn lisa(name: &str) -> Signature {
    Signature::build(name).category(Category::Custom("lisa".to_owned()))
}

/// A flag that takes one of these words.
pub(crate) fn choice(name: &str, short: Option<char>, words: &'static [&'static str], desc: &str) -> Flag {
    let flag = Flag::new(name).arg(SyntaxShape::String).desc(desc).completion(Completion::new_list(words));
    match short {
        Some(short) => flag.short(short),
        None => flag,
    }
}

/// A `--mode` flag.
pub(crate) fn mode() -> Flag {
    choice("mode", Some('m'), MODES, "How to run it: interactive (many prompts) or exec (one prompt).")
}

/// Signatures of commands that take session names.
pub(crate) trait OverNames {
    /// Takes any number of names, as arguments or input.
    fn names(self, out: Type) -> Self;
    /// Takes one name, as an argument or input.
    fn one_name(self, out: Type) -> Self;
}

impl OverNames for Signature {
    fn names(self, out: Type) -> Self {
        let inputs = [Type::String, Type::list(Type::String), named_record(), named_table()];
        self.param(PositionalArg::new("names", SyntaxShape::String).desc("Names of the sessions.").rest())
            .input_output_types(inputs_to(inputs, out))
    }

    fn one_name(self, out: Type) -> Self {
        self.param(PositionalArg::new("name", SyntaxShape::String).desc("Name of the session.").optional())
            .input_output_types(inputs_to([Type::String, named_record()], out))
    }
}

/// The input and output types of a command with these inputs or none. `any` is last: inside `each {|row| … }` the row is
/// the input of the first command even if it isn't used, and Nushell rejects undeclared input types.
pub(crate) fn inputs_to(inputs: impl IntoIterator<Item = Type>, out: Type) -> Vec<(Type, Type)> {
    let inputs = std::iter::once(Type::Nothing).chain(inputs).chain([Type::Any]);
    inputs.map(|input| (input, out.clone())).collect()
}

fn named_record() -> Type {
    Type::Record([("name", Type::String)].into())
}

fn named_table() -> Type {
    Type::Table([("name", Type::String)].into())
}

/// An example with an optional result.
pub(crate) fn example<'a>(
    description: &'a str,
    example: &'a str,
    result: impl Into<Option<Value>>,
) -> Example<'a> {
    Example { description, example, result: result.into() }
}
