//! Nushell in a terminal: Ctrl-C, completions, attach, explore. The terminal is a separate tmux server.

use crate::{
    examples::ATTACH,
    sandbox::{PLUGIN, Sandbox, nushell},
};
use std::{
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};
use test_support::{needs, place::end_server, until};

/// An interactive Nushell.
struct Terminal<'a> {
    sandbox: &'a Sandbox,
    socket: PathBuf,
}

const TIMEOUT: Duration = Duration::from_secs(20);

impl<'a> Terminal<'a> {
    /// Starts Nushell with only the plugin.
    fn open(sandbox: &'a Sandbox) -> Self {
        Self::open_as(sandbox, &Sandbox::nu_args())
    }

    /// One that is started with these arguments: without any, with what is installed in its home.
    fn open_as(sandbox: &'a Sandbox, args: &[String]) -> Self {
        let terminal = Self { sandbox, socket: sandbox.work().with_file_name("terminal") };
        let mut nu = vec![nushell().unwrap().display().to_string()];
        nu.extend_from_slice(args);
        nu.extend([
            "-e".into(),
            "$env.config.show_banner = false; $env.PROMPT_COMMAND = {|| 'ready'}; \
            $env.PROMPT_INDICATOR = '> '; $env.PROMPT_COMMAND_RIGHT = ''"
                .into(),
        ]);
        let quoted: Vec<String> =
            nu.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
        let out = terminal.tmux(&["new-session", "-d", "-x", "120", "-y", "40", &quoted.join(" ")]);
        assert!(out.1, "{}", out.0);
        terminal.shows("ready>");
        terminal
    }

    fn tmux(&self, args: &[&str]) -> (String, bool) {
        let out = Command::new("tmux")
            .args(["-f", "/dev/null", "-S"])
            .arg(&self.socket)
            .args(args)
            .env_clear()
            .envs(self.sandbox.env())
            .current_dir(self.sandbox.work())
            .output()
            .unwrap();
        (String::from_utf8_lossy(&out.stdout).into_owned(), out.status.success())
    }

    fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    fn presses(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn enters(&self, line: &str) {
        self.types(line);
        self.presses(&["Enter"]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).0
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        let began = Instant::now();
        while !self.screen().contains(text) {
            assert!(began.elapsed() < TIMEOUT, "`{text}` never came:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until the shell runs commands again. Returns how long that took.
    #[track_caller]
    fn comes_back(&self, word: &str) -> Duration {
        let began = Instant::now();
        self.enters(&format!("print ('back' + '{word}')"));
        self.shows(&format!("back{word}"));
        began.elapsed()
    }

    /// The /proc directories of the plugin processes started by this terminal's shell.
    fn plugins(&self) -> Vec<PathBuf> {
        let pid = self.tmux(&["display-message", "-p", "#{pane_pid}"]).0;
        let needle = format!("/nu.{}.", pid.trim());
        let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
        all.flatten()
            .map(|entry| entry.path())
            .filter(|dir| {
                std::fs::read(dir.join("cmdline")).is_ok_and(|line| {
                    let line = String::from_utf8_lossy(&line);
                    line.starts_with(PLUGIN) && line.contains(&needle)
                })
            })
            .collect()
    }

    /// The plugin's threads that belong to unfinished calls.
    fn busy(&self) -> Vec<String> {
        let tasks = self.plugins().into_iter().filter_map(|dir| std::fs::read_dir(dir.join("task")).ok());
        tasks
            .flat_map(|tasks| tasks.flatten())
            .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
            .filter(|name| name.starts_with("lisa-"))
            .collect()
    }

    /// Waits until a call of the plugin is running.
    #[track_caller]
    fn runs(&self, line: &str) {
        if !cfg!(target_os = "linux") {
            // Only /proc tells; this is longer than a call takes to begin.
            return std::thread::sleep(Duration::from_secs(1));
        }
        let began = Instant::now();
        while self.busy().is_empty() {
            assert!(began.elapsed() < TIMEOUT, "`{line}` never began: {}", self.screen());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until no call of the plugin is running, so that the next one is the one that [`Terminal::runs`] sees.
    #[track_caller]
    fn rests(&self) {
        let began = Instant::now();
        while !self.busy().is_empty() {
            assert!(began.elapsed() < TIMEOUT, "a call never ended: {:?}", self.busy());
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        end_server(&self.socket);
    }
}

#[test]
fn ctrl_c_ends_a_watch_and_a_monitor() {
    let sandbox = needs!(Sandbox::with_sessions());
    let terminal = Terminal::open(&sandbox);
    for (word, line) in [
        ("one", "lisa watch"),
        ("two", "lisa session monitor docs --until crashed"),
        ("three", "lisa session monitor docs --until crashed --stream"),
    ] {
        terminal.rests();
        terminal.enters(line);
        terminal.runs(line);
        terminal.presses(&["C-c"]);
        let took = terminal.comes_back(word);
        assert!(took < Duration::from_secs(3), "`{line}` took {took:?} to end");
    }
}

#[test]
fn ctrl_c_ends_the_wait_of_an_action_and_reports_what_was_done() {
    let sandbox = needs!(Sandbox::with_sessions());
    let terminal = Terminal::open(&sandbox);
    // A plain program never shows that it is ready.
    for (word, line, said) in [
        (
            "one",
            "lisa session spawn generic sleep 300 --name slow --wait 60sec",
            "`slow` was started and keeps running",
        ),
        ("two", "lisa session send slow hello --wait 60sec", "nothing was sent"),
    ] {
        terminal.rests();
        terminal.enters(line);
        terminal.runs(line);
        if word == "one" {
            assert!(until(TIMEOUT, || sandbox.value("lisa session exists slow") == true));
        }
        terminal.presses(&["C-c"]);
        terminal.shows(said);
        let took = terminal.comes_back(word);
        assert!(took < Duration::from_secs(3), "`{line}` took {took:?} to end");
    }
    assert_eq!(sandbox.value("lisa session exists slow"), true);
    assert_eq!(sandbox.value("lisa watch slow --since 0 --event spawned | first | get session"), "slow");
}

#[test]
fn a_watch_shows_events_live_and_runs_in_a_job() {
    let sandbox = needs!(Sandbox::with_sessions());
    let terminal = Terminal::open(&sandbox);
    let line = "job spawn { lisa watch --event answer | each {|e| $e.session | save --append seen.txt } }";
    terminal.enters(line);
    terminal.comes_back("job");
    terminal.runs(line);
    sandbox.value("lisa session answer fix-login --choice deny | get name");
    let began = Instant::now();
    while !std::fs::read_to_string(sandbox.work().join("seen.txt"))
        .is_ok_and(|seen| seen.contains("fix-login"))
    {
        assert!(began.elapsed() < TIMEOUT, "{}", terminal.screen());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn finished_calls_leave_no_threads_behind() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let sandbox = needs!(Sandbox::with_sessions());
    let terminal = Terminal::open(&sandbox);
    let gone = |after: &str| {
        let began = Instant::now();
        while !terminal.busy().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(5), "{after}: {:?}", terminal.busy());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    terminal.enters("lisa watch --since 0 | first 2 | length");
    terminal.comes_back("first");
    gone("first");
    for (job, line) in [
        (1, "lisa watch | each { ignore }"),
        (2, "lisa session monitor docs --until crashed"),
        (3, "lisa session monitor --until crashed --stream | each { ignore }"),
        (4, "lisa session spawn generic sleep 300 --wait 60sec"),
    ] {
        terminal.enters(&format!("job spawn {{ {line} }}"));
        terminal.comes_back(&format!("job{job}"));
        terminal.runs(line);
        terminal.enters(&format!("job kill {job}"));
        gone(line);
    }
}

#[test]
fn a_killed_shell_leaves_no_plugin_behind() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let sandbox = needs!(Sandbox::with_sessions());
    for line in ["lisa watch", "lisa session monitor docs --until crashed"] {
        let terminal = Terminal::open(&sandbox);
        terminal.rests();
        terminal.enters(line);
        terminal.runs(line);
        assert_eq!(terminal.plugins().len(), 1, "{}", terminal.screen());
        let pid = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]).0;
        let needle = format!("/nu.{}.", pid.trim());
        Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
        let began = Instant::now();
        let left = || {
            std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
                std::fs::read(entry.path().join("cmdline"))
                    .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&needle))
            })
        };
        while left() {
            assert!(began.elapsed() < Duration::from_secs(5), "`{line}` outlives its shell");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn names_agents_statuses_and_options_complete() {
    let sandbox = needs!(Sandbox::with_sessions());
    let terminal = Terminal::open(&sandbox);
    for (typed, want) in [
        ("lisa session status fix", "fix-login"),
        ("lisa session spawn dem", "spawn demo"),
        ("lisa session list --status waiting", "waiting_input"),
        ("lisa session answer fix-login --choice allow_o", "allow_once"),
        ("lisa session monitor docs --until awaiting_perm", "awaiting_permission"),
        ("lisa session kill docs fix", "docs fix-login"),
        // Suggestions describe what each session is doing. `answer` suggests only blocked sessions, also in a pipeline.
        ("lisa session status ", "awaiting_permission: rm -rf build"),
        ("lisa session answer ", "answer fix-login"),
        ("lisa session list | lisa session answer --choice allow_o", "allow_once"),
    ] {
        terminal.presses(&["C-l"]);
        terminal.types(typed);
        terminal.presses(&["Tab"]);
        terminal.shows(want);
        terminal.presses(&["C-c"]);
        terminal.presses(&["C-u"]);
        terminal.comes_back(&want.replace(' ', ""));
    }
}

#[test]
fn attach_shows_the_session_and_detach_returns_to_the_shell() {
    let sandbox = needs!(Sandbox::with_sessions());
    let terminal = Terminal::open(&sandbox);
    terminal.enters(ATTACH);
    terminal.shows("rm -rf build");
    terminal.presses(&["C-b", "d"]);
    terminal.comes_back("again");
    assert_eq!(sandbox.value("lisa session exists fix-login"), true);
}

#[test]
fn a_list_opens_in_explore() {
    let sandbox = needs!(Sandbox::with_sessions());
    let terminal = Terminal::open(&sandbox);
    terminal.enters("lisa session list | explore");
    terminal.shows("fix-login");
    terminal.shows("waiting_input");
    terminal.presses(&["q"]);
    terminal.comes_back("explored");
}

#[test]
fn an_error_is_shown_with_its_label_and_help() {
    let sandbox = needs!(Sandbox::with_sessions());
    let terminal = Terminal::open(&sandbox);
    terminal.enters("lisa session kill fix-logn");
    terminal.shows("lisa::session_not_found");
    terminal.shows("did you mean fix-login?");
}

#[test]
fn the_dashboard_fits_updates_and_quits() {
    let sandbox = needs!(Sandbox::with_sessions());
    sandbox.value("1..12 | each {|i| lisa session spawn demo --tag $'long-($i)' | get name }");
    let terminal = Terminal::open(&sandbox);
    terminal.tmux(&["resize-window", "-x", "80", "-y", "16"]);
    terminal.enters(&format!("use {} *", concat!(env!("CARGO_MANIFEST_DIR"), "/lisa.nu")));
    for (word, key) in [("quit", "q"), ("interrupted", "C-c")] {
        terminal.enters("lisa dashboard --interval 200ms");
        terminal.shows("and 4 more; q ends");
        let screen = terminal.screen();
        assert!(screen.starts_with("Lisa  "), "nothing has scrolled away:\n{screen}");
        assert!(screen.contains("Bash: rm -rf build"), "the prompt fits next to long names:\n{screen}");
        assert!(!screen.contains("│ ..."), "no column is cut off:\n{screen}");
        terminal.presses(&[key]);
        terminal.comes_back(word);
        assert!(!terminal.screen().contains("q ends"), "the previous screen is restored");
        assert_eq!(terminal.tmux(&["display-message", "-p", "#{cursor_flag}#{alternate_on}"]).0.trim(), "10");
    }
    terminal.enters("lisa dashboard --interval 200ms");
    terminal.shows("q ends");
    sandbox.value("lisa session list | lisa session kill --force | length");
    terminal.shows("No sessions.");
}

/// Runs the commands of the documentation verbatim, like somebody who has just cloned the repository.
#[test]
fn the_documented_commands_install_the_plugin_and_the_module() {
    let sandbox = needs!(Sandbox::with_sessions());
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let nu = |args: &[&str]| {
        let ran = std::process::Command::new(nushell().unwrap())
            .args(args)
            .env_clear()
            .envs(sandbox.env())
            .current_dir(root)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    let home = sandbox.work().with_file_name("home");
    std::fs::create_dir_all(home.join(".cargo/bin")).unwrap();
    // Replaces `cargo install`, without a second build.
    std::os::unix::fs::symlink(PLUGIN, home.join(".cargo/bin/nu_plugin_lisa")).unwrap();
    let pages = [format!("{root}/README.md"), concat!(env!("CARGO_MANIFEST_DIR"), "/README.md").to_owned()];
    for page in pages {
        let page = std::fs::read_to_string(page).unwrap();
        let line = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap();
        assert!(page.lines().any(|line| line == "cargo install --path crates/nu_plugin_lisa"));
        nu(&["-c", line("plugin add ")]);
        nu(&["-c", line("mkdir (")]);
        nu(&["-c", &format!("{}\nlisa session list | length", line("plugin use "))]);
        let terminal = Terminal::open_as(&sandbox, &[]);
        terminal.enters("print $'segment: (lisa prompt-segment --plain)'");
        terminal.shows("segment: 1 waiting, 1 done");
        std::fs::remove_dir_all(home.join(".config")).unwrap();
    }
}
