//! The subcommands `doctor`, `replay` and `record`.

use lisa_engine::{
    api::DoctorResponse,
    engine::Engine,
    error::{Error, Kind, Result},
    watch::Cancel,
};
use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::Path,
    time::Duration,
};

/// Prints the checks as a table, or a text for a bug report. Returns whether everything required is there.
pub fn doctor(engine: &Engine, trace: bool, out: &mut dyn Write) -> io::Result<bool> {
    if trace {
        out.write_all(engine.trace().as_bytes())?;
        return out.flush().map(|()| true);
    }
    let answer = engine.doctor();
    out.write_all(table(&answer).as_bytes())?;
    out.flush()?;
    Ok(answer.ok)
}

fn table(answer: &DoctorResponse) -> String {
    let width = answer.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for check in &answer.checks {
        let word = match (check.ok, check.required) {
            (true, _) => "ok",
            (false, true) => "MISSING",
            (false, false) => "-",
        };
        text.push_str(&format!("{word:<8}{:<width$}  {}\n", check.name, check.detail));
        if let Some(fix) = check.fix.as_deref().filter(|_| !check.ok) {
            text.push_str(&format!("{:<8}{:<width$}  -> {fix}\n", "", ""));
        }
    }
    text.push_str(if answer.ok {
        "Everything required is there.\n"
    } else {
        "Something required is missing.\n"
    });
    text
}

/// Prints the verdict on each frame of a recording, one JSON line each.
pub fn replay(engine: &Engine, file: Option<&Path>, full: bool, out: &mut dyn Write) -> Result<()> {
    let input: Box<dyn Read> = match file {
        Some(path) => Box::new(File::open(path).map_err(|error| Error::io("read", path, &error))?),
        None => Box::new(io::stdin().lock()),
    };
    lisa_engine::classify::recording::replay::run(
        engine.profiles(),
        input,
        BufWriter::new(out),
        io::stderr(),
        full,
    )
    .map_err(|why| Error::new(Kind::CorruptFile, why, "pass a recording, plain or gzip"))
}

/// Records a live session. Returns the number of frames.
pub fn record(engine: &Engine, name: &str, seconds: Option<u64>, out: &mut dyn Write) -> Result<u64> {
    engine.record(name, out, seconds.map(Duration::from_secs), &Cancel::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisa_engine::api::Check;

    #[test]
    fn doctor_prints_what_is_missing_and_how_to_fix_it() {
        let check = |name: &str, ok, required, fix: Option<&str>| Check {
            name: name.to_owned(),
            ok,
            required,
            detail: "seen".to_owned(),
            fix: fix.map(str::to_owned),
        };
        let checks = vec![
            check("tmux", false, true, Some("install tmux")),
            check("agent claude", true, false, None),
            check("agent codex", false, false, Some("npm")),
        ];
        expect_test::expect![[r#"
            MISSING tmux          seen
                                  -> install tmux
            ok      agent claude  seen
            -       agent codex   seen
                                  -> npm
            Something required is missing.
        "#]]
        .assert_eq(&table(&DoctorResponse { ok: false, checks }));
    }
}
