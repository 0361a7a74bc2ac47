//! Control groups that throttle a program.

use super::rule::{CheckJudge, CheckRule};
use super::sources::CGROUP_V2;
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::unknown::unknown_from;
use facts::Fact;

pub static CHECK: CheckRule = CheckRule {
    id: "group-budget",
    title: "a CPU quota on the program's control group",
    description: "The control group of the process, or one above it, has a CPU quota (cpu.max, or \
                  cpu.cfs_quota_us in cgroup v1): when it is used up, threads without a real-time policy are \
                  stopped until the next period.",
    rationale: "a stopped thread that holds a lock, or has to send a message, keeps the real-time threads \
                waiting for up to one period, 100 ms by default",
    detection: "By the quotas of the group and its ancestors, and nr_throttled in their cpu.stat; in a \
                container, groups above the container's root group are not visible.",
    wanted: "groups with real-time work have no quota",
    fix: "run the program in a group where neither it nor an ancestor has a quota (CPUQuota= of systemd \
          units)",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[Source { title: "kernel: control groups, CPU interface files", url: CGROUP_V2 }],
    reads: &[
        "/proc/PID/cgroup",
        "/sys/fs/cgroup/GROUP/cpu.max",
        "/sys/fs/cgroup/GROUP/cpu.cfs_quota_us",
        "/sys/fs/cgroup/GROUP/cpu.stat",
    ],
    judge: CheckJudge::Process(judge),
    examples: Examples {
        fires: "group throttled=3 quota=50000/100000",
        silent: "group throttled=0",
        unknown: "group refused",
    },
};

fn judge(program: &ProgramView) -> Judged {
    let process = program.process;
    let quota = match &process.quota {
        Fact::Known(quota) => *quota,
        Fact::Absent => None,
        other => return Err(unknown_from("the quota of its control group", other)),
    };
    let throttled = match &process.throttled {
        Fact::Known(times) => *times,
        Fact::Absent => 0,
        other => return Err(unknown_from("cpu.stat of its control group", other)),
    };
    Ok(match (quota, throttled) {
        (None, 0) => Judgement::pass("its control group and the groups above it have no quota"),
        (_, times @ 1..) => Judgement::fail(format!(
            "its control group, or one above it, was stopped {times} times in {}",
            program.span()
        ))
        .severity(Severity::High),
        (Some((quota, period)), _) => {
            Judgement::fail(format!("{quota} us in each {period} us, not used up in {}", program.span()))
                .severity(Severity::Low)
        }
    })
}
