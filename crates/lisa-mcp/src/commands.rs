//! The sub-commands that are for people: doctor, replay, record.

use lisa_engine::{
    api::DoctorResponse,
    engine::{Cancel, Engine},
    error::{Error, Kind, Result},
};
use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::Path,
    time::Duration,
};

/// Prints what was checked as a table; whether everything needed is there.
pub fn doctor(engine: &Engine, out: &mut dyn Write) -> io::Result<bool> {
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
        "Everything that Lisa needs is there.\n"
    } else {
        "Something that Lisa needs is missing.\n"
    });
    text
}

/// Prints the verdict on each frame of a recording, one JSON line each.
pub fn replay(engine: &Engine, file: Option<&Path>, full: bool, out: &mut dyn Write) -> Result<()> {
    let input: Box<dyn Read> = match file {
        Some(path) => Box::new(File::open(path).map_err(|error| Error::io("read", path, &error))?),
        None => Box::new(io::stdin().lock()),
    };
    lisa_engine::recording::replay::run(engine.profiles(), input, BufWriter::new(out), io::stderr(), full)
        .map_err(|why| Error::new(Kind::CorruptFile, why, "give a recording, plain or compressed"))
}

/// Writes a live session as a recording; says how many frames it has.
pub fn record(engine: &Engine, name: &str, seconds: Option<u64>, out: &mut dyn Write) -> Result<u64> {
    engine.record(name, out, seconds.map(Duration::from_secs), &Cancel::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisa_engine::api::Check;

    #[test]
    fn the_doctors_table_names_what_is_missing_and_how_to_mend_it() {
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
            Something that Lisa needs is missing.
        "#]]
        .assert_eq(&table(&DoctorResponse { ok: false, checks }));
    }
}
