//! Converts prompts.

use super::{int, list, or_null, text, text_or_null};
use lisa_engine::api::words::{Prompt, PromptOption};
use nu_protocol::{Span, Value, record};

/// A prompt.
pub(crate) fn prompt(prompt: &Prompt, span: Span) -> Value {
    Value::record(
        record! {
            "id" => text(prompt.id.as_str(), span),
            "kind" => text(prompt.kind.as_str(), span),
            "dialog" => text_or_null(prompt.dialog.map(|dialog| dialog.as_str()), span),
            "title" => text(prompt.title.as_str(), span),
            "body" => text(prompt.body.as_str(), span),
            "tool" => text_or_null(prompt.tool.as_deref(), span),
            "command" => text_or_null(prompt.command.as_deref(), span),
            "file" => text_or_null(prompt.file.as_deref(), span),
            "options" => list(&prompt.options, span, option),
            "multi" => Value::bool(prompt.multi, span),
            "free_text" => Value::bool(prompt.free_text, span),
            "truncated" => Value::bool(prompt.truncated, span),
            "step" => or_null(prompt.step.as_ref(), span, |step, span| Value::record(record! {
                "number" => int(step.number.into(), span),
                "of" => int(step.of.into(), span),
            }, span)),
        },
        span,
    )
}

fn option(option: &PromptOption, span: Span) -> Value {
    Value::record(
        record! {
            "key" => text(option.key.as_str(), span),
            "label" => text(option.label.as_str(), span),
            "selected" => Value::bool(option.selected, span),
            "checked" => or_null(option.checked.as_ref(), span, |checked, span| Value::bool(*checked, span)),
            "effect" => text(option.effect.as_str(), span),
        },
        span,
    )
}
