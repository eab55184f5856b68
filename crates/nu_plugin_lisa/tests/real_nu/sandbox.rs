//! A sandbox to run Nushell in, with sessions.

use serde_json::Value as Json;
use std::{
    ffi::OsString,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};
use test_support::{
    place::{end_server, environment},
    programs::demo_agent,
};

/// The plugin under test.
pub(crate) const PLUGIN: &str = env!("CARGO_BIN_EXE_nu_plugin_lisa");

/// How long any one script may take.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The program of a real Nushell: `LISA_TEST_NU` if it is set, or the pinned one.
pub(crate) fn nushell() -> Result<&'static Path, String> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| match std::env::var_os("LISA_TEST_NU") {
        Some(given) => Ok(given.into()),
        None => test_support::tools::program("nu"),
    });
    found.as_deref().map_err(Clone::clone)
}

/// The directories and tmux server of one test.
pub(crate) struct Sandbox {
    dir: tempfile::TempDir,
}

/// The output of a script, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Sandbox {
    /// An empty sandbox; the reason where there is no Nushell.
    pub(crate) fn new() -> Result<Self, String> {
        nushell()?;
        let dir = tempfile::Builder::new().prefix("lisa-nu-").tempdir().unwrap();
        for name in ["work", "home"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Ok(Self { dir })
    }

    /// A sandbox with the two sessions that the examples are about: `fix-login` asks whether it may run `rm -rf build`,
    /// and `docs` has finished its turn. `task.md` is a prompt.
    pub(crate) fn with_sessions() -> Result<Self, String> {
        let sandbox = Self::new()?;
        demo_agent();
        fs::write(sandbox.work().join("task.md"), "!say Thanks.").unwrap();
        sandbox.value(
            "lisa session spawn demo --name fix-login --prompt '!permission Bash rm -rf build' | ignore
             lisa session spawn demo --name docs --prompt '!say All done.' | ignore
             lisa session monitor fix-login --until awaiting_permission --timeout 30sec | ignore
             lisa session monitor docs --until ready --timeout 30sec | get name",
        );
        Ok(sandbox)
    }

    /// The directory that scripts run in.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// The socket of the sandbox's tmux server.
    fn socket(&self) -> PathBuf {
        self.dir.path().join("tmux")
    }

    /// Kills the sandbox's tmux server as a crash would.
    pub(crate) fn kill_server(&self) {
        let ask = ["display-message", "-p", "#{pid}"];
        let said = Command::new("tmux").arg("-S").arg(self.socket()).args(ask).output().unwrap();
        let pid = String::from_utf8(said.stdout).unwrap().trim().to_owned();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success(), "no server: {pid:?}");
        while Path::new("/proc").join(&pid).exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// The environment of everything that runs on this sandbox.
    pub(crate) fn env(&self) -> Vec<(OsString, OsString)> {
        // The demo agent is built beside the plugin.
        let beside = Path::new(PLUGIN).parent().unwrap().to_path_buf();
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let search =
            std::env::join_paths(std::iter::once(beside).chain(std::env::split_paths(&inherited))).unwrap();
        let mut env = environment(self.dir.path());
        env.extend([
            ("PATH".into(), search),
            ("HOME".into(), self.dir.path().join("home").into()),
            ("TERM".into(), "xterm-256color".into()),
        ]);
        env
    }

    /// Arguments to start Nushell with only the plugin.
    pub(crate) fn nu_args() -> [String; 3] {
        ["-n".to_owned(), "--plugins".to_owned(), format!("[{PLUGIN}]")]
    }

    /// Runs a script.
    pub(crate) fn run(&self, script: &str) -> Ran {
        let mut child = Command::new(nushell().unwrap())
            .args(Self::nu_args())
            .args(["--no-newline", "-c", script])
            .env_clear()
            .envs(self.env())
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let drain = |mut from: Box<dyn Read + Send>| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = from.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        };
        let out = drain(Box::new(child.stdout.take().unwrap()));
        let err = drain(Box::new(child.stderr.take().unwrap()));
        let began = Instant::now();
        let ok = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.success();
            }
            if began.elapsed() > TIMEOUT {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("`{script}` took longer than {TIMEOUT:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Ran { ok, out: out.join().unwrap(), err: err.join().unwrap() }
    }

    /// The value of a script's last expression.
    #[track_caller]
    pub(crate) fn value(&self, script: &str) -> Json {
        let ran = self.run(&format!("{script} | to json --raw"));
        assert!(ran.ok, "`{script}` failed:\n{}\n{}", ran.out, ran.err);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("`{script}`: {error}: {}", ran.out))
    }

    /// The code of the error that a script fails with.
    #[track_caller]
    pub(crate) fn code(&self, script: &str) -> String {
        let caught = format!("try {{ {script} | ignore; 'no error' }} catch {{|e| $e.details.code }}");
        self.value(&caught).as_str().unwrap_or("no code").to_owned()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // Stopping the tmux server ends everything that the test has started.
        end_server(&self.socket());
    }
}
