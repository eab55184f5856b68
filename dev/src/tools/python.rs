//! Packages from PyPI, each in a virtual environment of its own.

use super::{Ready, download::Download, stamp};
use crate::{context::Context, failure::Result, run};
use std::{path::Path, process::Command, time::Duration};

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Makes sure that a package is there; the program is the Python that finds it.
pub(super) fn ensure(context: &Context, name: &'static str, package: &str, version: &str) -> Result<Ready> {
    let directory = format!("python-{package}-{version}");
    let python = |directory: &Path| Some(directory.join("bin/python")).filter(|python| python.is_file());
    stamp::once(context, name, &directory, python, |directory| {
        let mut environment = Command::new("python3");
        environment.args(["-m", "venv"]).arg(directory);
        let doing = format!("installing {name} (PyPI {package} {version})");
        run::through(context, environment, LIMIT, &doing)?;
        Download::new(context, doing).run(None, || {
            let mut pip = Command::new(directory.join("bin/pip"));
            pip.args(["install", "--quiet", &format!("{package}=={version}")]);
            pip
        })?;
        Ok(version.to_owned())
    })
}
