//! The machine is left as it was found. Runs after every other check of the boot.

use super::super::frames::Reply;
use super::super::judge::{CheckResult, require};
use super::super::machine::Machine;
use super::Check;

pub fn checks() -> Vec<Check> {
    vec![Check::new(
        "as-found",
        "snapshot >/run/after\n\
         diff /run/before /run/after | grep '^[-+<>]' | grep -v '^+++\\|^---' >changes\n\
         send before /run/before\n\
         send changes changes\n\
         find / /tmp -xdev -type f -newer /run/before >files\n\
         send files files\n",
        as_found,
    )]
}

fn as_found(reply: &Reply, _: &Machine) -> CheckResult {
    // The two settings that the guest changed at boot show that the comparison sees settings at
    // all.
    let before = reply.file("before")?;
    for own in ["sched_rt_runtime_us 940000", "sched_rr_timeslice_ms 40"] {
        require(before.contains(own), || format!("the comparison does not cover {own}"))?;
    }
    let changes = reply.file("changes")?;
    require(changes.is_empty(), || format!("settings changed: {}", changes.trim().replace('\n', "; ")))?;
    let files = reply.file("files")?;
    require(files.is_empty(), || format!("files outside of -o: {}", files.trim().replace('\n', " ")))
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::MACHINES;
    use super::*;

    #[test]
    fn any_change_or_file_fails() {
        let judged = |before: &str, changes: &str, files: &str| {
            let mut reply = Reply::default();
            for (label, text) in [("before", before), ("changes", changes), ("files", files)] {
                reply.files.insert(label.into(), Some(text.into()));
            }
            as_found(&reply, &MACHINES[0])
        };
        let before =
            "/proc/sys/kernel/sched_rt_runtime_us 940000 \n/proc/sys/kernel/sched_rr_timeslice_ms 40 \n";
        assert_eq!(judged(before, "", ""), Ok(()));
        assert!(judged("", "", "").is_err());
        assert!(judged(before, "+/proc/sys/kernel/sched_rt_runtime_us -1\n", "").is_err());
        assert!(judged(before, "", "/root/.local/state/onbeat/x\n").is_err());
    }
}
