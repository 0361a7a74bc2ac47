//! Quotas of control groups: CPU time that runs out.

use super::sources::CGROUP_V2;
use crate::balance::told_all;
use crate::case::{Case, unread};
use crate::change::Because;
use crate::judgement::{Judged, Judgement, Severity};
use crate::remedy::Remedy;
use crate::words::some_of;
use crate::{Evidence, Examples, Knob, Lasts, Slice, Source};
use facts::Fact;

pub static KNOB: Knob = Knob {
    id: "cpu-quota",
    title: "quotas of CPU time",
    what: "cpu.max gives a control group so much CPU time in each period; once it is used up, the ordinary tasks of the group \
           stop until the next one. It affects ordinary tasks alone: those of real-time policy run on.",
    why: "an ordinary thread whose group ran out stands still for tens of milliseconds, with whatever a real-time thread waits for: a lock, a pipe, a file",
    tell: "cpu.max of the groups down to two levels below the root; those of pods can be deeper. Which of them holds a helper of \
           a real-time program is not known here, and `onbeat measure` says so when the quota of its own group ran out.",
    cost: "Without a quota a group can take all the time that other ordinary tasks leave or share.",
    wanted: "no quota on groups whose threads real-time ones wait for",
    fix: || {
        Remedy::advice(
            Because::Program,
            "echo max >cpu.max in the groups of the real-time program and its helpers, or CPUQuota= (empty) in the unit; others may keep theirs",
        )
    },
    severity: Severity::Info,
    evidence: Evidence::Documented,
    contested: "on PREEMPT_RT a thread that holds a lock with priority inheritance runs on at the waiter's priority; other things to \
                wait for have no owner: `onbeat measure` in the group, with the helpers at work, tells whether it matters",
    lasts: Lasts::Runtime,
    sources: &[Source { title: "kernel: control groups v2, cpu.max", url: CGROUP_V2 }],
    cures: &[Slice::Throttled, Slice::PriorityInversion],
    facts: &["/sys/fs/cgroup/GROUP/cpu.max"],
    judge,
    examples: Examples {
        fires: "/sys/fs/cgroup/cgroup.controllers: cpu
                /sys/fs/cgroup/app.slice/cpu.max: 50000 100000",
        silent: "/sys/fs/cgroup absent
                /sys/fs/cgroup/cgroup.controllers: cpu
                /sys/fs/cgroup/app.slice/cpu.max: max 100000",
        unknown: "/sys/fs/cgroup refused",
    },
    ..Knob::DEFAULT
};

fn judge(case: &Case) -> Judged {
    let groups = match &case.survey.groups {
        Fact::Absent => {
            return Err(Judgement::unknown("no control groups are mounted at /sys/fs/cgroup"));
        }
        groups => case.known(groups, "/sys/fs/cgroup")?,
    };
    let limited = groups.groups.iter().filter_map(|group| match &group.quota {
        Fact::Known(Some((quota, period))) => {
            Some(format!("{} {quota} of {period} us", group.path.trim_start_matches('/')))
        }
        _ => None,
    });
    let limited = some_of(limited);
    if !limited.is_empty() {
        return Ok(Judgement::fail(limited));
    }
    for group in &groups.groups {
        if !matches!(group.quota, Fact::Known(_) | Fact::Absent) {
            return Err(unread(&format!("{}{}/cpu.max", groups.root, group.path), &group.quota));
        }
    }
    told_all(groups)?;
    if groups.groups.iter().all(|group| group.quota == Fact::Absent) {
        return Err(Judgement::not_applicable("no control group of version 2 has a quota to set"));
    }
    Ok(Judgement::pass("none"))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn quotas_are_named() {
        check(&KNOB, "", "pass none");
        check(
            &KNOB,
            "/sys/fs/cgroup/user.slice/cpu.max: 50000 100000\n/sys/fs/cgroup/init.scope/cpu.max refused",
            "fail info user.slice 50000 of 100000 us",
        );
        check(&KNOB, "/sys/fs/cgroup/user.slice/cpu.max: much", "unknown");
        check(
            &KNOB,
            "/sys/fs/cgroup absent\n/sys/fs/cgroup/cgroup.controllers: io",
            "not-applicable no control group of version 2 has a quota to set",
        );
    }
}
