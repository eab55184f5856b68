//! Disks that are full or take no writes: a small file system of the test's own, in a mount namespace of its own.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

const INSIDE: &str = "LAB_OWN_MOUNTS";

/// Runs the test of this name again where it may mount; says whether this is that run. The outer one does nothing else.
pub fn in_own_mounts(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--map-root-user", "--propagation", "private", "--"]);
    unshare.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
    let output = unshare.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// A small file system, mounted on a directory. Unmounted when dropped.
pub struct Disk {
    path: PathBuf,
}

impl Disk {
    pub fn mount(path: &Path) -> Self {
        fs::create_dir_all(path).unwrap();
        run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m,mode=700", "lisa-test"]).arg(path));
        Self { path: path.to_owned() }
    }

    /// Takes all the room there is.
    pub fn fill(&self) {
        let mut file =
            fs::OpenOptions::new().create(true).append(true).open(self.path.join("filler")).unwrap();
        while file.write_all(&[b'x'; 4096]).is_ok() {}
        while file.write_all(b"x").is_ok() {}
    }

    /// Gives it back.
    pub fn free(&self) {
        fs::remove_file(self.path.join("filler")).unwrap();
    }

    /// As soon as nobody has a file open for writing.
    pub fn read_only(&self) {
        let remount = || Command::new("mount").args(["-o", "remount,ro"]).arg(&self.path).output().unwrap();
        assert!(super::until(super::driving::SHORT, || remount().status.success()), "{:?}", remount());
    }

    pub fn writable(&self) {
        run(Command::new("mount").args(["-o", "remount,rw"]).arg(&self.path));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
