//! Settings that last while a descriptor is open: a limit on wake-up latency from idle
//! (Documentation/power/pm_qos_interface.rst, `/dev/cpu_dma_latency`).
//!
//! A separate process holds it, started by [`crate::keeper`]. The holders are listed in
//! `/run/onbeat`, which only root may write to; an entry is valid while its process lives.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use model::fact::Fact;
use model::units::Nanos;

use crate::clock;
use crate::keeper::{self, keep_alive};
use crate::process::process_start;
use crate::pseudo_file::write_and_hold;
use crate::rt;

const FOLDER: &str = "/run/onbeat";

/// Devices that can be held.
pub const DEVICES: [&str; 1] = ["cpu_dma_latency"];

/// Longest wait for a holder that was sent SIGTERM.
const END: Nanos = Nanos(2_000_000_000);

struct Holder {
    pid: u32,
    start: u64,
    value: String,
}

/// Value that a holder keeps; absent if no holder is running.
pub fn held_value(name: &str) -> Fact<String> {
    match holder(name) {
        Some(holder) => Fact::Known(holder.value),
        None => Fact::Absent,
    }
}

fn holder(name: &str) -> Option<Holder> {
    let text = fs::read_to_string(file_of(name)).ok()?;
    let mut words = text.split_whitespace();
    let (pid, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let value = words.next()?.to_owned();
    (process_start(pid) == Some(start)).then_some(Holder { pid, start, value })
}

fn file_of(name: &str) -> PathBuf {
    PathBuf::from(FOLDER).join(format!("hold-{name}"))
}

/// Starts a holder of a value, or with none, removes it; a running holder is ended first.
pub fn set(name: &str, value: Option<&str>) -> io::Result<()> {
    let refused = || io::Error::from_raw_os_error(libc::EINVAL);
    if !DEVICES.contains(&name) || value.is_some_and(|value| value.parse::<i32>().is_err()) {
        return Err(refused());
    }
    if let Some(holder) = holder(name) {
        end(&holder)?;
    }
    match value {
        Some(value) => keeper::start(&["tune", "hold", "--device", name, "--value", value]),
        None => Ok(()),
    }
}

fn end(holder: &Holder) -> io::Result<()> {
    let pid = i32::try_from(holder.pid).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    let until = clock::monotonic() + END;
    while process_start(holder.pid) == Some(holder.start) && !has_ended(holder.pid) {
        if clock::monotonic() > until {
            return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
        }
        clock::sleep_for(Nanos(1_000_000));
    }
    Ok(())
}

/// True if it has closed its files, and waits to be reaped by its parent.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['Z', 'X']))
}

/// Opens the device, writes the value, and keeps it open until a stop signal; the main function of
/// the process that [`set`] starts.
pub fn hold(name: &str, value: &str) -> io::Result<()> {
    let us: i32 = value.parse().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    if !DEVICES.contains(&name) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let _held = write_and_hold(&format!("/dev/{name}"), &us.to_ne_bytes())?;
    let pid = std::process::id();
    let start = process_start(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    publish(name, &format!("{pid} {start} {value}\n"))?;
    keep_alive()?;
    rt::block_signals()?;
    while !matches!(rt::wait_until(clock::monotonic() + Nanos(3_600_000_000_000)), rt::Woken::Stop) {}
    let _ = fs::remove_file(file_of(name));
    Ok(())
}

/// Writes the holder's entry, by rename: a reader sees a whole line or none.
fn publish(name: &str, line: &str) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(FOLDER) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(FOLDER)?;
    if !found.is_dir() || found.uid() != 0 || found.mode() & 0o022 != 0 {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    let new = PathBuf::from(FOLDER).join(format!(".hold-{name}"));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(line.as_bytes())?;
    fs::rename(new, file_of(name))
}
