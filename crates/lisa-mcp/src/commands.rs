//! The sub-commands that are for people: doctor, replay, record.

use lisa_engine::{
    api::{DoctorResponse, ReplayRow},
    engine::{Cancel, Engine},
    error::{Error, Result},
};
use serde_json::json;
use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
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
    let mut input: Box<dyn Read> = match file {
        Some(path) => Box::new(File::open(path).map_err(|error| Error::io("read", path, &error))?),
        None => Box::new(io::stdin().lock()),
    };
    let rows = engine.replay(&mut input)?;
    let mut out = BufWriter::new(out);
    rows.iter()
        .try_for_each(|row| writeln!(out, "{}", line(row, full)))
        .and_then(|()| out.flush())
        .map_err(|error| Error::io("write", &PathBuf::from("standard output"), &error))
}

fn line(row: &ReplayRow, full: bool) -> serde_json::Value {
    if full {
        serde_json::to_value(row).unwrap_or_default()
    } else {
        json!({ "t": row.t, "status": row.status, "state": row.state, "reason": row.reason })
    }
}

/// Writes a live session as a recording; says how many frames it has.
pub fn record(engine: &Engine, name: &str, seconds: Option<u64>, out: &mut dyn Write) -> Result<u64> {
    engine.record(name, out, seconds.map(Duration::from_secs), &Cancel::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisa_engine::{
        api::Check,
        words::{Confidence, StateName, Status},
    };

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

    #[test]
    fn a_replayed_frame_is_one_line() {
        let row = ReplayRow {
            t: 250,
            status: Status::WaitingInput,
            state: StateName::Ready,
            reason: "turn_over".to_owned(),
            confidence: Confidence::Certain,
            source: "hook".to_owned(),
        };
        assert_eq!(
            line(&row, false).to_string(),
            r#"{"t":250,"status":"waiting_input","state":"ready","reason":"turn_over"}"#
        );
        assert!(line(&row, true).to_string().contains("certain"));
    }
}
