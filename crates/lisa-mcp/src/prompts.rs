//! The `delegate` prompt: what a person picks from a menu to hand a task on.

use rmcp::{
    ErrorData,
    model::{GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role},
};

/// The prompt's name.
pub const DELEGATE: &str = "delegate";

const TEXT: &str = include_str!("delegate.md");

/// The prompt as it is listed.
pub(crate) fn delegate() -> Prompt {
    let argument = |name: &str, text: &str, required: bool| {
        PromptArgument::new(name).with_description(text).with_required(required)
    };
    Prompt::new(
        DELEGATE,
        Some("Hand a task to another AI coding agent, watch over it, and bring back the result."),
        Some(vec![
            argument("task", "What is to be done.", true),
            argument("agent", "Who should do it: claude (unless said), codex, opencode, …", false),
            argument("cwd", "The folder to work in; this one unless said.", false),
        ]),
    )
    .with_title("Delegate a task")
}

/// The prompt with its arguments filled in.
pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    if request.name != DELEGATE {
        return Err(ErrorData::invalid_params(
            format!("there is no prompt `{}`; there is `delegate`", request.name),
            None,
        ));
    }
    let argument = |name: &str| {
        let given = request.arguments.as_ref().and_then(|all| all.get(name));
        given.and_then(serde_json::Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    };
    let task = argument("task")
        .ok_or_else(|| ErrorData::invalid_params("delegate needs `task`: what is to be done", None))?;
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
    fn a_task_is_needed() {
        assert!(text(&[("task", "  ")]).is_err());
    }
}
