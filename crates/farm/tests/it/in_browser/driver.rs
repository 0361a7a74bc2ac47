//! The program that drives a browser, and both their ends.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::TempDir;

/// Names under which the browser is installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// chromedriver, and the browser that it starts; they end with this.
pub struct Driver {
    child: Child,
    /// Address on which it listens.
    pub address: String,
    /// Removed after the browser was ended.
    _profiles: TempDir,
}

impl Driver {
    /// Starts a driver; `None`, with a message, if it is not installed.
    pub fn start() -> Option<Driver> {
        let profiles = tempfile::tempdir().unwrap();
        let runs = |name: &str| Command::new(name).arg("--version").output().is_ok();
        let missing = if !runs("chromedriver") {
            "chromedriver"
        } else if !BROWSERS.into_iter().any(runs) {
            "Chromium"
        } else {
            return Some(Driver::with(profiles));
        };
        eprintln!("left out: WebDriver (there is no {missing})");
        None
    }

    /// Starts it with a folder for the browser's files.
    fn with(profiles: TempDir) -> Driver {
        let child = Command::new("chromedriver")
            .arg("--port=0")
            .env("TMPDIR", profiles.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut driver = Driver { child, address: String::new(), _profiles: profiles };
        let mut said = BufReader::new(driver.child.stdout.take().unwrap());
        let mut line = String::new();
        while driver.address.is_empty() {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "chromedriver ended before it had a port");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                driver.address = format!("http://127.0.0.1:{}/", port.trim_end_matches(['.', '\n']));
            }
        }
        // Later output must not fill the pipe.
        thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        driver
    }
}

impl Drop for Driver {
    /// Ends its process group, of which the browser is, whatever state both are in.
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}
