//! The interval of writeback: how often the kernel looks for dirty data to write to disk.

use super::sources::SYSCTL_VM;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "writeback-interval",
    title: "interval of writeback",
    description: "Every vm.dirty_writeback_centisecs hundredths of a second, 500 by default, a worker writes \
                  file data to disk that was changed long enough ago. 0 stops that.",
    rationale: "each interval wakes a worker, and its writes keep disks, their interrupts and memory busy; \
                the workers run wherever the writeback workqueue may",
    detection: "The sysctl. The CPUs of the workers are a separate rule; if the workers cannot run on the \
                audited CPUs, this setting hardly matters.",
    side_effects: "Changed data stays in memory longer and is lost if power fails; and each write is \
                   larger.",
    wanted: "15 s or more",
    fix: || {
        Remedy::from(Change::sysctl("vm.dirty_writeback_centisecs", 1500))
            .note("before that, keep writeback off the audited CPUs by the workqueue's cpumask")
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Practice,
    disputed: "rarer writes are longer: small and frequent writes may be better; `onbeat compare` of two \
               runs under a load that writes, with 500 and with 1500, decides it",
    persistence: Persistence::Runtime,
    sets: PATH,
    sources: &[Source { title: "kernel: /proc/sys/vm, dirty_writeback_centisecs", url: SYSCTL_VM }],
    cures: &[SliceKind::Workqueue],
    reads: &[PATH],
    judge,
    examples: Examples {
        fires: "/proc/sys/vm/dirty_writeback_centisecs: 500",
        silent: "/proc/sys/vm/dirty_writeback_centisecs: 1500",
        unknown: "/proc/sys/vm/dirty_writeback_centisecs refused",
    },
    ..Knob::DEFAULT
};

const PATH: &str = "/proc/sys/vm/dirty_writeback_centisecs";

fn judge(machine: &MachineView) -> Judged {
    let hundredths = machine.number(PATH)?;
    if hundredths == 0 {
        return Ok(Judgement::pass("never"));
    }
    let value = match (hundredths / 100, hundredths % 100) {
        (seconds, 0) => format!("{seconds} s"),
        (seconds, rest) => format!("{seconds}.{rest:02} s"),
    };
    Ok(Judgement::fail_if(hundredths < 1500, value))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn seconds_are_shown() {
        check(&KNOB, "", "pass 15 s");
        check(&KNOB, "/proc/sys/vm/dirty_writeback_centisecs: 0", "pass never");
        check(&KNOB, "/proc/sys/vm/dirty_writeback_centisecs: 1499", "fail info 14.99 s");
        check(&KNOB, "/proc/sys/vm/dirty_writeback_centisecs absent", "unknown");
        check(&KNOB, "/proc/sys/vm/dirty_writeback_centisecs: 5 s", "unknown");
    }
}
