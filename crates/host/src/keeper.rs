//! Processes that outlive the command that starts them, its terminal and its login.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use model::units::Nanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::clock;
use crate::process::process_start;

/// How often a process is looked for where the kernel has no pidfd_open (before Linux 5.3).
const PERIOD: Nanos = Nanos(100_000_000);

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

/// Becomes independent as [`keep_alive`] has it, and waits until the process of that number and
/// start has ended.
pub fn outlive((pid, start): (u32, u64)) -> io::Result<()> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let watched = number.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    keep_alive()?;
    // What was opened may be a later process of that number.
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
