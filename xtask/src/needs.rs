//! The programs that the gate uses besides Rust: Debian's packages by name, and Python's in a
//! separate folder. As root on Debian all of it is installed, so that nothing is skipped.

use std::time::Duration;

use crate::debian::{self, Need};
use crate::tools::{Result, Tool, on_path, target};

const fn need(program: &'static str, package: &'static str) -> Need {
    Need { program, package }
}

/// Needs of each run of the gate. QEMU is installed by the machine that boots it (`live`).
const EACH: &[Need] = &[
    need("cc", "gcc"),
    need("chromedriver", "chromium-driver"),
    need("chromium", "chromium"),
    need("curl", "curl"),
    need("npm", "npm"),
    need("openssl", "openssl"),
    need("pg_ctlcluster", "postgresql"),
    need("pip3", "python3-pip"),
    need("time", "time"),
    need("valgrind", "valgrind"),
];

/// Needs of a run with `--night`.
const NIGHT: &[Need] = &[
    need("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross"),
    need("dpkg-shlibdeps", "dpkg-dev"),
    need("java", "default-jre-headless"),
    need("qemu-arm", "qemu-user"),
    need("strace", "strace"),
];

/// Python's modules, and their names for pip.
const MODULES: &[(&str, &str)] = &[("duckdb", "duckdb")];
const NIGHT_MODULES: &[(&str, &str)] = &[("pyspark", "pyspark")];

/// True if everything can be installed, so that a skipped test is a failure.
pub fn can_install() -> bool {
    rustix::process::getuid().is_root() && on_path("apt-get")
}

/// Installs missing ones, if that is permitted.
pub fn install(night: bool) -> Result<()> {
    if !can_install() {
        return Ok(());
    }
    let rest = if night { (NIGHT, NIGHT_MODULES) } else { (&[][..], &[][..]) };
    debian::ensure(&[EACH, rest.0].concat())?;
    MODULES.iter().chain(rest.1).try_for_each(|(module, package)| {
        let seen = Tool::new("python3").args(["-c", &format!("import {module}")]);
        let [(path, folder)] = python()?;
        if seen.env(path, &folder).quiet().capture()?.code == 0 {
            return Ok(());
        }
        let flags = ["-m", "pip", "install", "--quiet", "--no-input", "--target", &folder, package];
        Tool::new("python3").args(flags).within(Duration::from_secs(420)).text().map(drop)
    })
}

/// The place of these modules for Python: a variable of its environment, and its value.
pub fn python() -> Result<[(&'static str, String); 1]> {
    Ok([("PYTHONPATH", target("python")?.display().to_string())])
}
