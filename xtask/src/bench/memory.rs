//! Peak memory: resident, as the kernel reports it to a parent at the end of a child, and of the
//! control group that a program was started in, including its children and the kernel's memory for
//! them.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::Duration;

use super::program::{Form, Onbeat, timed};
use super::{Row, Rows};
use crate::tools::{Result, read, write};

/// Far more than any run needs.
const LIMIT: Duration = Duration::from_secs(60);

const DEFAULT_KIB: u64 = 5 * 1024;
/// Limit of the static build.
pub const RESIDENT_KIB: u64 = 2380;

pub fn measure(default: &Onbeat, fixed: &Onbeat, quick: bool) -> Rows {
    // Past the first checkpoint, which is the largest thing a run writes.
    let flags = flags(if quick { 3 } else { 13 });
    let peers = [Form::Threads, Form::Smp]
        .map(|form| peak(&form.line(&flags)).map(|peak| format!("{} ({})", peak.show(), form.name())));
    let peers: Vec<String> = peers.into_iter().collect::<Result<_>>()?;
    let row = |name: &str, ours: &Peak, limit: u64| Row {
        what: format!("peak KiB, {name} build: resident, group's"),
        ours: ours.show(),
        peer: peers.join(", "),
        limit: limit.to_string(),
        holds: Some(ours.resident_kib <= limit),
    };
    Ok(vec![
        row("default", &peak(&default.line(&flags)?)?, DEFAULT_KIB),
        row("static", &peak(&fixed.line(&flags)?)?, RESIDENT_KIB),
    ])
}

/// Peak resident KiB of a run past its first checkpoint.
pub fn resident(onbeat: &Onbeat) -> Result<u64> {
    timed(&[], &onbeat.line(&flags(13))?, LIMIT).map(|(_, peak)| peak)
}

fn flags(seconds: u32) -> String {
    format!("-i 1000 -D {seconds}")
}

/// The most memory that a program took.
struct Peak {
    resident_kib: u64,
    /// `None` if no control group counts memory.
    group_kib: Option<u64>,
}

impl Peak {
    fn show(&self) -> String {
        let group = self.group_kib.map_or("?".to_string(), |kib| kib.to_string());
        format!("{}, {group}", self.resident_kib)
    }
}

fn peak(line: &[String]) -> Result<Peak> {
    let Some(group) = Group::new() else {
        return Ok(Peak { resident_kib: timed(&[], line, LIMIT)?.1, group_kib: None });
    };
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let enter = [this.display().to_string(), "in-group".into(), group.0.display().to_string()];
    let (_, resident_kib) = timed(&enter, line, LIMIT)?;
    Ok(Peak { resident_kib, group_kib: Some(group.peak_kib()?) })
}

/// A control group that is removed again.
struct Group(PathBuf);

/// The folders below which groups count memory, and the files of their peak.
///
/// Source: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.peak"), ("/sys/fs/cgroup/memory", "memory.max_usage_in_bytes")];

impl Group {
    fn new() -> Option<Group> {
        GROUPS.iter().find_map(|(parent, peak)| {
            let path = PathBuf::from(parent).join(format!("onbeat-bench-{}", std::process::id()));
            std::fs::create_dir(&path).ok()?;
            let group = Group(path);
            group.0.join(peak).exists().then_some(group)
        })
    }

    fn peak_kib(&self) -> Result<u64> {
        let texts = GROUPS.iter().filter_map(|(_, peak)| read(&self.0.join(peak)).ok());
        let bytes = texts.filter_map(|text| String::from_utf8_lossy(&text).trim().parse::<u64>().ok()).next();
        bytes.map(|bytes| bytes / 1024).ok_or_else(|| format!("{} has no peak", self.0.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0); // an empty group does no harm
    }
}

/// Replaces this process by a program, in the control group of this path.
pub fn run_in_group(group: &str, line: &[String]) -> Result<()> {
    write(&PathBuf::from(group).join("cgroup.procs"), std::process::id().to_string())?;
    let (program, args) = line.split_first().ok_or("no program is named")?;
    Err(format!("{program}: {}", std::process::Command::new(program).args(args).exec()))
}
