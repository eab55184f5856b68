//! Arguments that a caller may not pass: those denied by a policy, and those that switch off an agent's safety checks.

use super::files::fits;
use crate::{
    api::SpawnRequest,
    classify::profile::launch::{Arg, Launch, Template},
    config::Config,
    error::{Error, Kind, Result},
};

/// Checks the arguments. Flags that switch off safety checks need `dangerous`, however they are written.
pub(super) fn check(
    request: &SpawnRequest,
    template: &Template,
    launch: &Launch,
    config: &Config,
) -> Result<()> {
    let model = request.model.as_ref().and_then(|_| flag_of("{model}", template));
    let denied = |flag: &&String| is_given(&request.args, flag) || model == Some(flag.as_str());
    if let Some(flag) = config.policy.denied_flags.iter().find(denied) {
        return Err(Error::new(
            Kind::NotAllowed,
            format!("the policy does not allow the argument `{flag}`"),
            "remove it",
        )
        .about(flag));
    }
    match launch.dangerous.iter().find(|flag| is_given(&request.args, flag)) {
        Some(flag) if !request.dangerous => Err(Error::new(
            Kind::DangerousFlag,
            format!("`{flag}` switches off the agent's safety checks"),
            "remove it, or confirm it with `dangerous`",
        )
        .about(flag)),
        _ => Ok(()),
    }
}

/// The flag that a template puts before this value.
fn flag_of<'a>(value: &str, template: &'a Template) -> Option<&'a str> {
    template.argv.iter().find_map(|arg| match arg {
        Arg::Group(words) if words.iter().any(|word| word == value) => words.first().map(String::as_str),
        _ => None,
    })
}

/// Whether a flag is among the arguments: by itself (`--yolo`), or with a value that matches a pattern (`--mode by*`).
/// The value is in the same word or the next one.
fn is_given(args: &[String], flag: &str) -> bool {
    let Some((name, pattern)) = flag.split_once(' ') else {
        return args.iter().any(|arg| arg == flag || value_of(arg, flag).is_some());
    };
    args.windows(2).any(|pair| pair[0] == name && fits(&pair[1], pattern))
        || args.iter().filter_map(|arg| value_of(arg, name)).any(|value| fits(value, pattern))
}

/// The value in the same word as its flag: `--mode=x`, `-m=x`, `-mx`.
fn value_of<'a>(arg: &'a str, flag: &str) -> Option<&'a str> {
    let rest = arg.strip_prefix(flag).filter(|rest| !rest.is_empty())?;
    match rest.strip_prefix('=') {
        Some(value) => Some(value),
        None => (!flag.starts_with("--") && flag.starts_with('-')).then_some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(args: &[&str], flag: &str) -> bool {
        is_given(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>(), flag)
    }

    #[test]
    fn a_flag_is_found_however_it_is_written() {
        assert!(given(&["a", "--yolo"], "--yolo") && given(&["--yolo=true"], "--yolo"));
        assert!(!given(&["--yolo-not"], "--yolo"));
        for args in [&["--mode", "bypass"][..], &["--mode=bypass"]] {
            assert!(given(args, "--mode by*"), "{args:?}");
        }
        for args in [&["-s", "danger-full"][..], &["-s=danger-full"], &["-sdanger-full"]] {
            assert!(given(args, "-s danger*"), "{args:?}");
        }
        assert!(!given(&["--mode", "plan"], "--mode by*") && !given(&["--mode"], "--mode by*"));
        assert!(given(&["-c", "sandbox_mode=\"danger-full-access\""], "-c sandbox_mode*danger*"));
    }

    #[test]
    fn the_flag_of_a_value_is_the_one_that_the_template_puts_before_it() {
        let template: Template =
            toml::from_str("argv = [\"run\", [\"--model\", \"{model}\"]]\nprompt = \"argv\"").unwrap();
        assert_eq!(flag_of("{model}", &template), Some("--model"));
        assert_eq!(flag_of("{prompt}", &template), None);
    }
}
