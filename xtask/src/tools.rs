//! Execution of other programs: announced in one line, limited in time, never through a shell.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Errors here are for readers of a log.
pub type Result<T> = std::result::Result<T, String>;

/// A program about to run.
pub struct Tool {
    command: Command,
    line: String,
    limit: Option<Duration>,
    quiet: bool,
}

/// Results of a captured program.
pub struct Output {
    /// Exit code, or 128 + the signal that ended it.
    pub code: i32,
    /// Standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
    /// True if the time limit ended it.
    pub timed_out: bool,
}

/// A background program, killed when dropped so that no error path leaves it running.
pub struct Running {
    child: Child,
    line: String,
}

impl Tool {
    /// A program by name or path.
    pub fn new(program: impl AsRef<Path>) -> Tool {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        Tool { command, line: program.display().to_string(), limit: None, quiet: false }
    }

    /// Appends arguments.
    pub fn args<S: AsRef<str>>(mut self, args: impl IntoIterator<Item = S>) -> Tool {
        for arg in args {
            self.command.arg(arg.as_ref());
            self.line.push(' ');
            self.line.push_str(arg.as_ref());
        }
        self
    }

    /// Sets a variable of the program's environment.
    pub fn env(mut self, key: &str, value: impl AsRef<str>) -> Tool {
        self.command.env(key, value.as_ref());
        self
    }

    /// Removes a variable from the program's environment.
    pub fn env_remove(mut self, key: &str) -> Tool {
        self.command.env_remove(key);
        self
    }

    /// Sets variables of the program's environment.
    pub fn envs(mut self, all: impl IntoIterator<Item = (&'static str, String)>) -> Tool {
        self.command.envs(all);
        self
    }

    /// Runs in another directory.
    pub fn dir(mut self, dir: &Path) -> Tool {
        self.command.current_dir(dir);
        self
    }

    /// Ends it, with all that it started, after this time.
    pub fn within(mut self, limit: Duration) -> Tool {
        self.limit = Some(limit);
        self
    }

    /// Leaves out the announcement: for questions that change nothing.
    pub fn quiet(mut self) -> Tool {
        self.quiet = true;
        self
    }

    /// Runs with our own output; a failure is an error.
    pub fn show(mut self) -> Result<()> {
        self.announce();
        let mut child = self.command.spawn().map_err(|error| format!("{}: {error}", self.line))?;
        let (status, timed_out) = wait(&mut child, self.limit.take(), false)?;
        match (timed_out, code_of(status)) {
            (true, _) => Err(format!("{}: not done in time", self.line)),
            (false, 0) => Ok(()),
            (false, code) => Err(format!("{}: exit {code}", self.line)),
        }
    }

    /// Runs and keeps the output; only a program that cannot start is an error.
    pub fn capture(mut self) -> Result<Output> {
        self.announce();
        // A separate group, so that the limit reaches the program's children. Without a limit it
        // stays in ours, which the terminal's interrupt reaches.
        if self.limit.is_some() {
            self.command.process_group(0);
        }
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().map_err(|error| format!("{}: {error}", self.line))?;
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let (status, timed_out) = wait(&mut child, self.limit, true)?;
        let (stdout, stderr) = (joined(stdout), joined(stderr));
        Ok(Output { code: code_of(status), stdout, stderr, timed_out })
    }

    /// Like `capture`, but an exit code other than 0 is an error with the end of standard error.
    pub fn text(self) -> Result<String> {
        let line = self.line.clone();
        let output = self.capture()?;
        if output.timed_out {
            return Err(format!("{line}: not done in time"));
        }
        if output.code != 0 {
            let last = output.stderr.lines().last().unwrap_or_default();
            return Err(format!("{line}: exit {}: {last}", output.code));
        }
        Ok(output.stdout)
    }

    /// Starts it in the background; both outputs are written to `log`, or nowhere.
    pub fn start(mut self, log: Option<&Path>) -> Result<Running> {
        self.announce();
        let (out, err) = match log {
            None => (Stdio::null(), Stdio::null()),
            Some(path) => {
                let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
                let again = file.try_clone().map_err(|error| format!("{}: {error}", path.display()))?;
                (Stdio::from(file), Stdio::from(again))
            }
        };
        let child = self.command.stdout(out).stderr(err).spawn();
        let child = child.map_err(|error| format!("{}: {error}", self.line))?;
        Ok(Running { child, line: self.line })
    }

    fn announce(&self) {
        if !self.quiet {
            println!("  $ {}", self.line);
        }
    }
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(pid_of(&self.child), signal).map_err(|error| format!("{}: {error}", self.line))
    }

    /// The exit code, once it has ended.
    pub fn poll(&mut self) -> Result<Option<i32>> {
        let status = self.child.try_wait().map_err(|error| format!("{}: {error}", self.line))?;
        Ok(status.map(code_of))
    }

    /// Waits for its end; a program that outlives the limit is killed and is an error.
    pub fn finish(mut self, limit: Duration) -> Result<i32> {
        match wait(&mut self.child, Some(limit), false)? {
            (_, true) => Err(format!("{}: not done in time", self.line)),
            (status, false) => Ok(code_of(status)),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail on a process that has ended, which is the usual case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait(child: &mut Child, limit: Option<Duration>, group: bool) -> Result<(ExitStatus, bool)> {
    let fault = |error: std::io::Error| format!("waiting for a program: {error}");
    let Some(limit) = limit else { return Ok((child.wait().map_err(fault)?, false)) };
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(fault)? {
            return Ok((status, false));
        }
        if start.elapsed() > limit {
            // The program may end in between; then there is nothing to kill.
            let _ = if group {
                kill_process_group(pid_of(child), Signal::KILL)
            } else {
                kill_process(pid_of(child), Signal::KILL)
            };
            return Ok((child.wait().map_err(fault)?, true));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A broken pipe ends the output; the bytes before it count.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn joined(reader: thread::JoinHandle<Vec<u8>>) -> String {
    let bytes = reader.join().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// True if a program is on the PATH.
pub fn on_path(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// The workspace's folder.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask lies one folder below the workspace").to_path_buf()
}

/// A folder below `target/`, made if need be.
pub fn target(below: &str) -> Result<PathBuf> {
    let dir = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    };
    let dir = dir.join(below);
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

/// Reads a file, naming it in the error.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file, naming it in the error.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_captured() {
        let output =
            Tool::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]).quiet().capture().unwrap();
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (3, "out\n", "err\n"));
        assert!(!output.timed_out);
    }

    #[test]
    fn the_limit_reaches_what_the_program_started() {
        // The background sleep holds the pipe: without the group's end, reading it lasts a minute.
        let start = Instant::now();
        let tool = Tool::new("sh").args(["-c", "sleep 60 & sleep 60"]).quiet();
        let output = tool.within(Duration::from_millis(100)).capture().unwrap();
        assert!(output.timed_out);
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_failure_quotes_the_last_line() {
        let why = Tool::new("sh").args(["-c", "echo first >&2; echo last >&2; exit 2"]).quiet().text();
        assert!(why.unwrap_err().ends_with("exit 2: last"));
    }
}
