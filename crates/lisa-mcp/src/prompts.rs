//! The `delegate` prompt, which a user picks from the client's menu to delegate a task.

use rmcp::{
    ErrorData,
    model::{GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role},
};

/// Name of the prompt.
pub const DELEGATE: &str = "delegate";

const TEXT: &str = include_str!("delegate.md");

/// The prompt's entry in `prompts/list`.
pub(crate) fn delegate() -> Prompt {
    let argument = |name: &str, text: &str, required: bool| {
        PromptArgument::new(name).with_description(text).with_required(required)
    };
    Prompt::new(
        DELEGATE,
        Some("Delegate a task to another AI coding agent, supervise it, and report the result."),
        Some(vec![
            argument("task", "The task.", true),
            argument("agent", "The agent: claude (default), codex, opencode, …", false),
            argument("cwd", "The directory to work in (default: this one).", false),
        ]),
    )
    .with_title("Delegate a task")
}

/// The prompt with its arguments filled in.
pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    if request.name != DELEGATE {
        return Err(ErrorData::invalid_params(
            format!("unknown prompt `{}`; the only prompt is `delegate`", request.name),
            None,
        ));
    }
    let argument = |name: &str| {
        let given = request.arguments.as_ref().and_then(|all| all.get(name));
        given.and_then(serde_json::Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    };
    let task = argument("task")
        .ok_or_else(|| ErrorData::invalid_params("missing argument `task` for delegate", None))?;
    let cwd = argument("cwd").map(|cwd| format!(" and cwd `{cwd}`")).unwrap_or_default();
    let text = TEXT
        .replace("{agent}", argument("agent").unwrap_or("claude"))
        .replace("{cwd}", &cwd)
        .replace("{task}", task);
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
        .with_description("Delegate a task to another agent"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(arguments: &[(&str, &str)]) -> Result<String, ErrorData> {
        let arguments = arguments.iter().map(|(k, v)| ((*k).to_owned(), serde_json::json!(v))).collect();
        let request = GetPromptRequestParams::new(DELEGATE).with_arguments(arguments);
        let result = get(&request)?;
        Ok(result.messages[0].content.as_text().unwrap().text.clone())
    }

    #[test]
    fn arguments_are_filled_in() {
        let text = text(&[("task", "fix {agent}"), ("agent", "codex"), ("cwd", "/src")]).unwrap();
        assert!(text.contains("fix {agent}\n"), "the task is left as it is: {text}");
        assert!(text.contains("agent `codex` and cwd `/src`"), "{text}");
    }

    #[test]
    fn the_task_is_required() {
        assert!(text(&[("task", "  ")]).is_err());
    }
}
