//! A server in a separate process, and requests to it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Result of a measurement.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The server; it ends with this.
pub struct RunningServer {
    child: Child,
    pub address: String,
}

impl RunningServer {
    /// Starts a server on a free port.
    pub fn start(program: &str, store: &str, objects: &Path) -> Outcome<RunningServer> {
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--store", store, "--objects"])
            .arg(objects)
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(child.stderr.take().ok_or("the server has no standard error")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let address =
            line.split("//").nth(1).ok_or_else(|| line.clone())?.trim_end_matches(['/', '\n']).to_owned();
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::stderr()));
        Ok(RunningServer { child, address })
    }

    /// The most memory that it had.
    pub fn peak_mib(&self) -> Outcome<f64> {
        peak_mib(self.child.id())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The most memory that a process had so far.
pub fn peak_mib(pid: u32) -> Outcome<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1_024.0)
}
