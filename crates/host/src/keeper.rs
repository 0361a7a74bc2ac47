//! Processes that outlive the command that starts them, its terminal and its login session.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use model::units::Nanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::clock;
use crate::process::{ProcessId, process_start};

/// Polling interval where the kernel has no pidfd_open (before Linux 5.3).
const PERIOD: Nanos = Nanos(100_000_000);

/// Line that the process writes once it is independent.
const READY: &str = "ready\n";

/// Starts this program's executable with these arguments, and waits until the new process is
/// independent of this one.
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
    if line == READY { Ok(()) } else { Err(io::Error::other("it ended at once")) }
}

/// Makes this process independent of its starter: a new session, so that a hang-up of the terminal
/// does not reach it, and the root control group, because service managers end all processes left
/// in a login's group (logind.conf(5), KillUserProcesses=). Then notifies the starter.
pub fn keep_alive() -> io::Result<()> {
    // The mask is the starter's, with stop signals blocked, which a service manager sends.
    crate::rt::clear_signal_mask();
    // Started from a shell, it leads a session already.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"onbeat-keeper");
    // Without control groups there is no group that could be ended.
    let _ = crate::settings::leave_group();
    let mut out = io::stdout();
    out.write_all(READY.as_bytes())?;
    out.flush()
}

/// Becomes independent like [`keep_alive`], and waits until the process with that PID and start
/// time has ended.
pub fn outlive(ProcessId { pid, start }: ProcessId) -> io::Result<()> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let watched = number.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    keep_alive()?;
    // The descriptor may be that of a later process with the same PID.
    match watched.filter(|_| process_start(pid) == Some(start)) {
        Some(pidfd) => while poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None) != Ok(1) {},
        None => {
            while process_start(pid) == Some(start) {
                clock::sleep_for(PERIOD);
            }
        }
    }
    Ok(())
}
