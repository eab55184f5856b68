//! Whatever is broken on disk or on the wire is named, and never breaks a look.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use flate2::Compression;
use flate2::write::GzEncoder;
use lisa_engine::api::words::Status;
use lisa_engine::classify::observation::{Line, Reading};
use lisa_engine::classify::profile::Profiles;
use lisa_engine::classify::recording::{Header, Mask, Timeline, Writer, replay};
use lisa_engine::session::profiles;
use serde_json::json;
use std::io::Write;
use support::{Session, With, blank, idle_screen, working_screen};

fn torn(at: i64) -> Line {
    Line {
        at: lisa_engine::classify::observation::At(at),
        payload: Err("EOF while parsing a string".to_owned()),
    }
}

#[test]
fn a_torn_hook_line_is_named_and_changes_nothing() {
    let mut session = Session::new("claude");
    session.look(&blank(1_000).hook(json!({"hook_event_name": "UserPromptSubmit", "session_id": "s"})));
    let mut look = blank(2_000);
    look.feeds.hook.lines.push(torn(2_000));
    let outcome = session.look(&look);
    assert_eq!(outcome.verdict.status(), Status::InProgress);
    assert_eq!(outcome.signals.hook_error.as_deref(), Some("EOF while parsing a string"));
    let after = session.look(&blank(3_000).hook(json!({"hook_event_name": "Stop", "session_id": "s"})));
    assert_eq!((after.verdict.status(), after.signals.hook_error), (Status::WaitingInput, None));
}

#[test]
fn a_torn_transcript_line_is_named_and_changes_nothing() {
    let mut look = blank(2_000).title("⠂ x").screen(&working_screen());
    look.feeds.transcript.lines.push(torn(2_000));
    let outcome = Session::new("claude").look(&look);
    assert_eq!(outcome.verdict.status(), Status::InProgress);
    assert!(outcome.signals.transcript_error.is_some());
}

#[test]
fn lines_of_other_shapes_are_no_events() {
    for line in
        [json!(null), json!(7), json!("text"), json!([]), json!({}), json!({"hook_event_name": {"a": 1}})]
    {
        let outcome = Session::new("claude").look(&blank(1_000).hook(line.clone()).transcript(line));
        assert_eq!(outcome.verdict.status(), Status::JustStarted);
    }
}

#[test]
fn a_state_file_that_can_not_be_read_is_named_and_the_screen_decides() {
    let mut session = Session::new("claude");
    let look = |at| {
        let mut look = blank(at).title("✳ x").screen(&idle_screen());
        look.native = Reading::Unavailable { why: "expected value at line 1".to_owned() };
        look
    };
    session.look(&look(1_000));
    let outcome = session.look(&look(4_000));
    assert_eq!(outcome.verdict.status(), Status::WaitingInput);
    assert!(outcome.signals.native_error.is_some());
    let odd =
        blank(5_000).title("✳ x").screen(&idle_screen()).native(json!({"status": "a word of tomorrow"}));
    assert_eq!(session.look(&odd).verdict.status(), Status::WaitingInput);
}

#[test]
fn a_stored_memory_without_some_fields_still_reads() {
    let memory: lisa_engine::classify::memory::Memory =
        serde_json::from_str(r#"{"schema": 1, "up": true}"#).expect("it reads");
    assert!(memory.up && memory.verdict.is_none());
}

fn directory(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("mine.toml"), text).expect("a profile is written");
    dir
}

fn fault(text: &str) -> String {
    let dir = directory(text);
    let error = profiles::load(dir.path()).expect_err("the profile is refused");
    error.to_string().replace(&dir.path().display().to_string(), "DIR")
}

#[test]
fn a_profile_that_is_cut_short_names_its_file_and_line() {
    let said = fault("id = \"mine\"\ntitle = \"Mine\"\n[screen\n");
    assert!(said.starts_with("profile DIR/mine.toml, line 3: "), "{said}");
}

#[test]
fn a_pattern_that_fails_its_example_names_both() {
    let head = "id = \"mine\"\ntitle = \"Mine\"\n[[terminal_title.on]]\nsays = \"working\"\n";
    let said = fault(&format!("{head}pattern = {{ regex = 'busy', matches = [\"idle\"] }}\n"));
    assert!(said.contains("line 5") && said.contains("`busy` does not match its example \"idle\""), "{said}");
    let said = fault(&format!(
        "{head}pattern = {{ regex = 'busy', matches = [\"busy\"], rejects = [\"not busy\"] }}\n"
    ));
    assert!(said.contains("matches \"not busy\", which it must reject"), "{said}");
    let said = fault(&format!("{head}pattern = {{ regex = 'busy', matches = [] }}\n"));
    assert!(said.contains("no example"), "{said}");
}

#[test]
fn patterns_that_match_nothing_or_grow_without_bound_are_refused() {
    let head = "id = \"mine\"\ntitle = \"Mine\"\n[screen]\nrule = ";
    assert!(fault(&format!("{head}'x*'\n")).contains("matches an empty line"));
    assert!(fault(&format!("{head}''\n")).contains("must not be empty"));
    assert!(fault(&format!("{head}'(((a{{1,200}}){{1,200}}){{1,200}})+b'\n")).contains("does not compile"));
    assert!(fault(&format!("{head}'{}'\n", "a".repeat(3_000))).contains("the limit is"));
    assert!(fault("id = \"mine\"\ntitle = \"Mine\"\nunknown = 1\n").contains("unknown field"));
    assert!(fault("id = \"../x\"\ntitle = \"Mine\"\n").contains("letters, digits"));
}

#[test]
fn a_profile_of_the_user_wins_over_one_that_ships() {
    let dir = directory("id = \"codex\"\ntitle = \"My own Codex\"\n");
    let profiles = profiles::load(dir.path()).expect("it loads");
    assert_eq!(profiles.get("codex").map(|profile| profile.title.clone()).as_deref(), Some("My own Codex"));
    assert!(profiles.get("claude").is_some());
    assert!(profiles::load(&dir.path().join("nowhere")).is_ok());
}

const HEADER: &str =
    r#"{"format":"lisa-recording/1","agent":"claude","version":"1","size":[80,24],"args":[]}"#;

fn run(input: &[u8]) -> (Result<(), String>, String, String) {
    let profiles = Profiles::shipped();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = replay::run(&profiles, input, &mut out, &mut err, false);
    (done, String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
}

#[test]
fn lines_of_a_recording_that_do_not_read_are_named_and_left_out() {
    let text = format!(
        "{HEADER}\n{{\"t\":1,\"pane\":{{}}}}\nnonsense\n{{\"t\":\"late\",\"pane\":{{}}}}\n\n{{\"t\":5,\"pane\":{{\"pane_pid\":\"x\"}}}}\n{{\"t\":9,\"pane\":{{\"pane_dead\":\"1\"}}}}\n{{\"t\":10,\"pa"
    );
    let (done, out, err) = run(text.as_bytes());
    assert_eq!(done, Ok(()));
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(out.lines().all(|line| line.starts_with("{\"t\":")));
    for line in ["line 3:", "line 4:", "line 6:", "line 8:"] {
        assert!(err.contains(line), "{err}");
    }
}

#[test]
fn a_recording_without_a_header_is_refused_with_a_sentence() {
    assert!(run(b"").0.is_err_and(|why| why.contains("header")));
    assert!(run(b"{\"format\":\"other/2\",\"agent\":\"x\"}\n").0.is_err_and(|why| why.contains("other/2")));
    assert!(run(&[0x1f, 0x8b, 1, 2, 3]).0.is_err_and(|why| why.contains("could not read")));
}

#[test]
fn an_agent_without_a_profile_is_read_as_any_command() {
    let text = HEADER.replace("claude", "nobody knows") + "\n{\"t\":1,\"pane\":{}}\n";
    assert_eq!(run(text.as_bytes()).1.lines().count(), 1);
}

#[test]
fn a_gzip_that_was_cut_short_still_gives_its_beginning() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    writeln!(packed, "{HEADER}").expect("it packs");
    for t in 0..2_000 {
        writeln!(packed, "{{\"t\":{t},\"pane\":{{\"pane_title\":\"{}\"}}}}", t * 7_919 % 1_013)
            .expect("it packs");
    }
    let mut bytes = packed.finish().expect("it packs");
    bytes.truncate(bytes.len() / 2);
    let timeline = Timeline::read(bytes.as_slice()).expect("the beginning reads");
    assert!(timeline.rows.len() > 100 && !timeline.skipped.is_empty());
}

#[test]
fn what_is_recorded_replays_and_holds_no_secret() {
    let mask = Mask::new(Some("/home/me"));
    let header: Header = serde_json::from_str(HEADER).expect("a header");
    let mut writer = Writer::start(Vec::new(), &header, mask).expect("it starts");
    let secret =
        "export API_KEY=abcdef123456\nsk-ant-REDACTED\nAuthorization: Bearer abc.def.ghi-jkl\n/home/me/x";
    let look = blank(1_000)
        .title("⠂ x")
        .screen(secret)
        .hook(json!({"hook_event_name": "Stop", "token": "t0ps3cret", "note": "ghp_abcdefghijklmnop"}));
    writer.look(&look).expect("it writes");
    writer.look(&blank(1_250).title("⠂ x").screen(secret)).expect("it writes");
    writer.keys(1_300, &["hunter2 password=hunter22".to_owned()], true).expect("it writes");
    let bytes = writer.finish().expect("it ends");
    let text = String::from_utf8(bytes.clone()).expect("it is text");
    for secret in ["abcdef123456", "sk-ant", "abc.def", "t0ps3cret", "ghp_", "/home/me", "hunter22"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let timeline = Timeline::read(bytes.as_slice()).expect("it reads");
    assert_eq!((timeline.rows.len(), timeline.skipped.len()), (4, 0));
    assert!(timeline.rows[2].screen.is_none(), "an unchanged screen is not written again");
    assert_eq!(run(&bytes).1.lines().count(), 2);
}
