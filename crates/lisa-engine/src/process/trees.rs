//! Process trees, read again only if something in them has run.
//!
//! Reading a tree costs two files of `/proc` per process. A process that forks, execs, exits, stops or changes the
//! foreground of its terminal runs to do so, and so does the parent of a new process: while no CPU clock in a tree has
//! moved, the tree is the same.

use super::{Tree, platform};
use std::{
    collections::HashMap,
    io,
    sync::{Mutex, PoisonError},
};

/// More trees than this are not remembered.
const REMEMBERED: usize = 4_000;

/// The trees that this process has read.
#[derive(Debug, Default)]
pub struct Trees(Mutex<HashMap<u32, Tree>>);

impl Trees {
    /// `root` and all its descendants, parents before children.
    pub fn read(&self, root: u32) -> io::Result<Tree> {
        let known = self.known(|trees| trees.get(&root).cloned());
        if let Some(tree) = known.filter(Tree::is_current) {
            return Ok(tree);
        }
        let tree = platform::tree(root)?;
        self.known(|trees| {
            if trees.len() >= REMEMBERED {
                trees.clear();
            }
            trees.insert(root, tree.clone());
        });
        Ok(tree)
    }

    fn known<T>(&self, with: impl FnOnce(&mut HashMap<u32, Tree>) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::{
        io::Write,
        process::{Child, Command, Stdio},
        time::{Duration, Instant},
    };

    /// A shell that runs what it is told line by line.
    fn shell() -> Child {
        Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    fn tell(shell: &mut Child, line: &str) {
        writeln!(shell.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn until(mut holds: impl FnMut() -> bool) -> bool {
        let began = Instant::now();
        std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(2));
            holds()
        })
        .take_while(|_| began.elapsed() < Duration::from_secs(10))
        .any(|held| held)
    }

    #[test]
    fn a_remembered_tree_is_what_a_new_look_would_find() {
        let mut shell = shell();
        let (pid, trees) = (shell.id(), Trees::default());
        let alive = || -> Vec<String> {
            let procs = trees.read(pid).unwrap().procs.into_iter();
            procs.filter(|proc| !proc.zombie).map(|proc| proc.name).collect()
        };
        assert!(until(|| alive() == ["sh"]));
        tell(&mut shell, "sleep 60 & first=$!; sleep 61 &");
        assert!(until(|| alive() == ["sh", "sleep", "sleep"]), "children that were started: {:?}", alive());
        tell(&mut shell, "kill $!");
        assert!(until(|| alive() == ["sh", "sleep"]), "a child that ended: {:?}", alive());
        tell(&mut shell, "kill -STOP $first");
        let stopped = || trees.read(pid).unwrap().procs.iter().any(|proc| proc.stopped);
        assert!(until(stopped), "a child that was stopped");
        tell(&mut shell, "kill -CONT $first; kill $first; exit");
        shell.wait().unwrap();
        assert!(alive().is_empty(), "a tree that is gone");
    }

    #[test]
    fn a_tree_in_which_nothing_runs_is_not_read_again() {
        let mut shell = shell();
        let trees = Trees::default();
        let current = || trees.read(shell.id()).is_ok_and(|tree| tree.is_current());
        assert!(until(current), "a shell that waits for input rests");
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
