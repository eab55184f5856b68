//! Settings from `$env.config.plugins.lisa`: defaults for flags. Only this module combines flags and settings.

use crate::errors::{code, invalid_argument};
use lisa_engine::{
    api::words::Mode,
    error::{Kind, near_matches},
};
use nu_plugin::{EngineInterface, EvaluatedCall};
use nu_protocol::{FromValue, LabeledError, ShellError, Span, Spanned, Value};
use std::time::Duration;

/// The caller's settings. All are optional.
#[derive(Debug, Default, Clone, PartialEq, FromValue)]
pub(crate) struct Settings {
    /// Default agent of a spawn.
    #[nu_value(default)]
    pub(crate) agent: Option<String>,
    /// `interactive` or `exec`.
    #[nu_value(default)]
    pub(crate) mode: Option<String>,
    /// The model.
    #[nu_value(default)]
    pub(crate) model: Option<String>,
    /// The directory that sessions start in.
    #[nu_value(default)]
    pub(crate) cwd: Option<String>,
    /// How long spawn and resume wait for the agent to be ready.
    #[nu_value(default)]
    pub(crate) wait: Option<Duration>,
    /// Timeout of monitor.
    #[nu_value(default)]
    pub(crate) timeout: Option<Duration>,
    /// Maximum number of lines of capture.
    #[nu_value(default)]
    pub(crate) lines: Option<i64>,
    /// The project to list, such as `.` (default: all projects).
    #[nu_value(default)]
    pub(crate) project: Option<String>,
}

/// All settings, for the error about an unknown one.
const KNOWN: &[&str] = &["agent", "mode", "model", "cwd", "wait", "timeout", "lines", "project"];

impl Settings {
    /// Gets the settings from the shell.
    pub(crate) fn read(interface: &EngineInterface, head: Span) -> Result<Self, LabeledError> {
        match interface.get_plugin_config()? {
            Some(value) => Self::parse(value, head),
            None => Ok(Self::default()),
        }
    }

    fn parse(value: Value, head: Span) -> Result<Self, LabeledError> {
        let at = if value.span() == Span::unknown() { head } else { value.span() };
        let wrong = |message: String, help: String| {
            LabeledError::new(message)
                .with_code(code(Kind::InvalidConfig))
                .with_label("in $env.config.plugins.lisa", at)
                .with_help(help)
        };
        if let Ok(record) = value.as_record()
            && let Some(unknown) = record.columns().find(|name| !KNOWN.contains(&name.as_str()))
        {
            let known: Vec<String> = KNOWN.iter().map(|&word| word.to_owned()).collect();
            let near = near_matches(unknown, &known);
            let there_are = if near.is_empty() { KNOWN.join(", ") } else { near.join(", ") };
            return Err(wrong(format!("Unknown setting `{unknown}`"), format!("settings: {there_are}")));
        }
        Self::from_value(value.clone()).map_err(|error| {
            let message = match &error {
                ShellError::CantConvert { to_type, from_type, span, .. } => {
                    let which = value.as_record().ok().and_then(|record| {
                        record.iter().find(|(_, value)| value.span() == *span).map(|(name, _)| name.as_str())
                    });
                    let which = which.map_or("A setting".to_owned(), |name| format!("The setting `{name}`"));
                    format!("{which} must be {to_type}, not {from_type}")
                }
                error => format!("Malformed settings: {error}"),
            };
            wrong(message, "see `help lisa`".to_owned())
        })
    }

    /// The agent: the argument, or the setting.
    pub(crate) fn agent(
        &self,
        given: Option<Spanned<String>>,
        head: Span,
    ) -> Result<Spanned<String>, LabeledError> {
        given.or_else(|| self.agent.clone().map(|item| Spanned { item, span: head })).ok_or_else(|| {
            invalid_argument(
                "no agent given",
                "pass one (see `lisa agent list`), or set $env.config.plugins.lisa.agent",
                head,
            )
        })
    }

    /// The mode: `--mode`, or the setting (default: interactive).
    pub(crate) fn mode(&self, call: &EvaluatedCall) -> Result<Mode, LabeledError> {
        let given: Option<Spanned<String>> = call.get_flag("mode")?;
        let (word, span) = match (&given, &self.mode) {
            (Some(flag), _) => (flag.item.as_str(), flag.span),
            (None, Some(setting)) => (setting.as_str(), call.head),
            (None, None) => return Ok(Mode::default()),
        };
        [Mode::Interactive, Mode::Exec].into_iter().find(|mode| mode.as_str() == word).ok_or_else(|| {
            invalid_argument(format!("unknown mode `{word}`"), "modes: interactive, exec", span)
        })
    }

    /// `--model`, or the setting.
    pub(crate) fn model(&self, call: &EvaluatedCall) -> Result<Option<String>, LabeledError> {
        Ok(call.get_flag("model")?.or_else(|| self.model.clone()))
    }

    /// `--cwd`, or the setting.
    pub(crate) fn cwd(&self, call: &EvaluatedCall) -> Result<Option<String>, LabeledError> {
        Ok(call.get_flag("cwd")?.or_else(|| self.cwd.clone()))
    }

    /// `--wait`, or the setting, in seconds.
    pub(crate) fn wait_s(&self, call: &EvaluatedCall) -> Result<Option<f64>, LabeledError> {
        Ok(call.get_flag::<Duration>("wait")?.or(self.wait).map(|wait| wait.as_secs_f64()))
    }

    /// `--timeout`, or the setting.
    pub(crate) fn timeout(&self, call: &EvaluatedCall) -> Result<Option<Duration>, LabeledError> {
        Ok(call.get_flag("timeout")?.or(self.timeout))
    }

    /// `--lines`, or the setting.
    pub(crate) fn lines(&self, call: &EvaluatedCall) -> Result<Option<u32>, LabeledError> {
        let given: Option<Spanned<i64>> = call.get_flag("lines")?;
        let (count, span) = match (given, self.lines) {
            (Some(flag), _) => (flag.item, flag.span),
            (None, Some(setting)) => (setting, call.head),
            (None, None) => return Ok(None),
        };
        u32::try_from(count).ok().filter(|count| *count > 0).map(Some).ok_or_else(|| {
            invalid_argument(
                format!("invalid number of lines: {count}"),
                "pass a number from 1 to 2000",
                span,
            )
        })
    }

    /// `--project`, or the setting. `--all` ignores the setting.
    pub(crate) fn project(&self, call: &EvaluatedCall) -> Result<Option<String>, LabeledError> {
        let given: Option<String> = call.get_flag("project")?;
        let all = call.has_flag("all")?;
        Ok(given.or_else(|| self.project.clone().filter(|_| !all)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nu_protocol::{IntoSpanned, record};

    fn settings(record: nu_protocol::Record) -> Result<Settings, LabeledError> {
        Settings::parse(Value::test_record(record), Span::test_data())
    }

    #[test]
    fn settings_are_optional() {
        let got = settings(record! { "agent" => Value::test_string("codex") }).unwrap();
        assert_eq!(got, Settings { agent: Some("codex".into()), ..Settings::default() });
    }

    #[test]
    fn a_misspelt_setting_is_an_error_with_a_suggestion() {
        let error = settings(record! { "modle" => Value::test_string("x") }).unwrap_err();
        assert_eq!(error.code.as_deref(), Some("lisa::invalid_config"));
        assert!(error.help.as_deref().is_some_and(|help| help.contains("model")), "{error:?}");
    }

    #[test]
    fn a_setting_of_the_wrong_type_is_an_error() {
        let error = settings(record! { "timeout" => Value::test_string("soon") }).unwrap_err();
        assert_eq!(error.code.as_deref(), Some("lisa::invalid_config"));
    }

    #[test]
    fn a_flag_overrides_a_setting() {
        let settings = settings(record! { "timeout" => Value::test_duration(1_000_000_000) }).unwrap();
        let call = EvaluatedCall::new(Span::test_data());
        assert_eq!(settings.timeout(&call).unwrap(), Some(Duration::from_secs(1)));
        let call = call.with_named(
            "timeout".to_owned().into_spanned(Span::test_data()),
            Value::test_duration(2_000_000_000),
        );
        assert_eq!(settings.timeout(&call).unwrap(), Some(Duration::from_secs(2)));
    }

    #[test]
    fn all_overrides_the_project_setting() {
        let settings = settings(record! { "project" => Value::test_string(".") }).unwrap();
        let call = EvaluatedCall::new(Span::test_data());
        assert_eq!(settings.project(&call).unwrap().as_deref(), Some("."));
        let call = call.with_flag("all".to_owned().into_spanned(Span::test_data()));
        assert_eq!(settings.project(&call).unwrap(), None);
    }
}
