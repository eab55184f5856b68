//! A place to run Nushell in, with sessions to look at.

use lisa_engine::{
    config::{Environment, Socket},
    tmux::Tmux,
};
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

/// The plugin under test.
pub(crate) const PLUGIN: &str = env!("CARGO_BIN_EXE_nu_plugin_lisa");

/// The version of Nushell that the plugin is built for.
const NUSHELL: &str = "0.115.1";

/// How long any one script may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// The program of a real Nushell: `XTASK_NU`, which `cargo xtask test` sets, `LISA_TEST_NU`, or the one below
/// `target/tools`, where it is installed if it is not there yet. Without one the tests fail: there is nothing to skip
/// to, and a pass would say nothing.
pub(crate) fn nushell() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let given = ["XTASK_NU", "LISA_TEST_NU"].into_iter().find_map(std::env::var_os);
        given.map(PathBuf::from).unwrap_or_else(install)
    })
}

fn install() -> PathBuf {
    // The same folder, stamp and lock as those of `cargo xtask setup nu`.
    let tools = Path::new(PLUGIN).parent().and_then(Path::parent).unwrap().join("tools");
    let home = tools.join(format!("nushell-{NUSHELL}"));
    fs::create_dir_all(&home).unwrap();
    let lock = fs::File::create(tools.join(format!("nushell-{NUSHELL}.lock"))).unwrap();
    lock.lock().unwrap();
    let stamp = home.join(".installed");
    if let (true, Some(found)) = (stamp.is_file(), installed(&home)) {
        return found;
    }
    let package = format!("nushell@{NUSHELL}");
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--prefix"]).arg(&home).arg(package);
    let npm = npm.output().expect("npm is needed to install Nushell; or set LISA_TEST_NU to one");
    let found = installed(&home).unwrap_or_else(|| {
        panic!("Nushell could not be installed: {}", String::from_utf8_lossy(&npm.stderr))
    });
    fs::write(stamp, NUSHELL).unwrap();
    found
}

fn installed(home: &Path) -> Option<PathBuf> {
    let platforms = fs::read_dir(home.join("node_modules/@nushell")).ok()?;
    platforms.flatten().map(|platform| platform.path().join("bin/nu")).find(|nu| nu.is_file())
}

/// Builds the demo agent beside the plugin, where its profile finds it on the stage's `PATH`.
pub(crate) fn demo_agent() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let target = Path::new(PLUGIN).parent().and_then(Path::parent).unwrap();
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "-p", "demo-agent", "--target-dir"]).arg(target);
        if PLUGIN.contains("/release/") {
            build.arg("--release");
        }
        let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    });
}

/// Folders and a tmux server that belong to one test.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
}

/// What a script printed, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Stage {
    /// An empty stage.
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("lisa-nu-").tempdir().unwrap();
        for folder in ["work", "home"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    /// A stage with the two sessions that the examples are about: `fix-login` asks whether it may run `rm -rf build`,
    /// and `docs` has finished its turn. `task.md` is a prompt.
    pub(crate) fn with_sessions() -> Self {
        let stage = Self::new();
        demo_agent();
        fs::write(stage.work().join("task.md"), "!say Thanks.").unwrap();
        stage.value(
            "lisa session spawn demo --name fix-login --prompt '!permission Bash rm -rf build' | ignore
             lisa session spawn demo --name docs --prompt '!say All done.' | ignore
             lisa session monitor fix-login --until awaiting_permission --timeout 30sec | ignore
             lisa session monitor docs --until ready --timeout 30sec | get name",
        );
        stage
    }

    /// The folder that scripts run in.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// The socket of the sessions' own tmux server.
    fn socket(&self) -> PathBuf {
        self.dir.path().join("tmux")
    }

    /// The environment of everything that runs on this stage.
    pub(crate) fn env(&self) -> Vec<(&'static str, OsString)> {
        let path = |below: &str| self.dir.path().join(below).into_os_string();
        // The demo agent is built beside the plugin.
        let beside = Path::new(PLUGIN).parent().unwrap().to_path_buf();
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let search =
            std::env::join_paths(std::iter::once(beside).chain(std::env::split_paths(&inherited))).unwrap();
        vec![
            ("PATH", search),
            ("HOME", path("home")),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "xterm-256color".into()),
            ("LISA_STATE_DIR", path("state")),
            ("LISA_CONFIG_DIR", path("config")),
            ("LISA_TMUX_SOCKET", self.socket().into_os_string()),
        ]
    }

    /// The arguments that make Nushell load the plugin and nothing else.
    pub(crate) fn nu_args() -> [String; 3] {
        ["-n".to_owned(), "--plugins".to_owned(), format!("[{PLUGIN}]")]
    }

    /// Runs a script.
    pub(crate) fn run(&self, script: &str) -> Ran {
        let mut child = Command::new(nushell())
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
            if began.elapsed() > PATIENCE {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("`{script}` took longer than {PATIENCE:?}");
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

impl Drop for Stage {
    fn drop(&mut self) {
        // With the sessions' own server goes everything that a test has started.
        end_server(&self.socket());
    }
}

/// Ends the tmux server behind a socket, if there is one, and waits until it is gone.
pub(crate) fn end_server(socket: &Path) {
    let tmux = Tmux::new(Socket::Path(socket.to_owned()), &Environment::of_this_process());
    let gone = tmux.and_then(|tmux| tmux.end_server(Duration::from_secs(10)));
    if !std::thread::panicking() {
        assert!(matches!(gone, Ok(true)), "the tmux server of this test did not end: {gone:?}");
    }
}
