//! Processes that outlive the command that starts them, its terminal and its login.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// What the process writes when it is on its own.
const READY: &str = "ready\n";

/// Starts this program's own file with these arguments, and waits until nothing that happens to
/// this process reaches it.
pub fn start(args: &[&str]) -> io::Result<()> {
    let mut child = Command::new("/proc/self/exe")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/")
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    match line == READY {
        true => Ok(()),
        false => Err(io::Error::other("it ended at once")),
    }
}

/// Makes this process independent of the one that started it: a session of its own, so that no
/// terminal's end reaches it, and the root control group, because service managers end all that is
/// left in the group of a login (logind.conf(5), KillUserProcesses=). Then tells the starter.
pub fn keep_alive() -> io::Result<()> {
    // That of the starter has the stop signals blocked, which a service manager waits for.
    crate::rt::clear_signal_mask();
    // It leads a session already if a shell started it by hand.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"onbeat-keeper");
    // Without control groups there is none that could be ended.
    let _ = crate::settings::leave_group();
    let mut out = io::stdout();
    out.write_all(READY.as_bytes())?;
    out.flush()
}
