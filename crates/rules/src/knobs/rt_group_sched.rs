//! Group scheduling of real-time tasks: a budget for each control group.

use super::sources::{CGROUP_V2, PARAMETERS, RT_GROUP};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::view::MachineView;
use facts::Fact;
use facts::kconfig::OptionValue;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "rt-group-sched",
    title: "group scheduling of real-time tasks",
    description: "With RT_GROUP_SCHED each control group has a budget of real-time execution, 0 \
                  for a new one. Newer kernels can have it built in and leave it off \
                  (RT_GROUP_SCHED_DEFAULT_DISABLED, rt_group_sched=0).",
    rationale: "a task in a group without a budget is refused a real-time policy, one that has \
                used up its group's budget is stopped for the rest of the period, and throttling \
                stays where a fair server took its place",
    detection: "The kernel's configuration and rt_group_sched= on its command line; where the \
                configuration cannot be read, the budget of this process's own control group, \
                which only such kernels have.",
    side_effects: "Without it there is no share of real-time execution by group: what containers \
                   may take is only bounded by RLIMIT_RTPRIO and the capabilities they are given.",
    wanted: "not built in, or disabled",
    fix: || Change::kconfig("RT_GROUP_SCHED", "n").into(),
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[
        Source { title: "kernel: real-time group scheduling, the interface", url: RT_GROUP },
        Source { title: "kernel: cgroup v2, the cpu controller's warning", url: CGROUP_V2 },
        Source { title: "kernel: command line, rt_group_sched=", url: PARAMETERS },
    ],
    cures: &[SliceKind::Throttled],
    facts: &["/boot/config-RELEASE", "/proc/cmdline", "/sys/fs/cgroup/cpu/GROUP/cpu.rt_runtime_us"],
    judge,
    examples: Examples { fires: "CONFIG_RT_GROUP_SCHED=y", silent: "", unknown: "/boot refused" },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let config = match (machine.kconfig(), &machine.facts().cgroup_rt_runtime_us) {
        (Ok(config), _) => config,
        (Err(_), Fact::Known(budget)) => {
            let judged = Judgement::fail(format!("on: {budget} us for this group"));
            // The parameter came with 6.16.
            let by_word = machine.series().is_ok_and(|series| series >= (6, 16));
            return Ok(if by_word { judged.fix(Change::cmdline_add("rt_group_sched=0")) } else { judged });
        }
        (Err(unknown), _) => return Err(unknown),
    };
    if !config.is_yes("RT_GROUP_SCHED") {
        return Ok(Judgement::pass("not built in"));
    }
    // A kernel that knows the parameter mentions this option whenever the other is set.
    let default = config.get("RT_GROUP_SCHED_DEFAULT_DISABLED");
    if default == OptionValue::Absent {
        return Ok(Judgement::fail("built in"));
    }
    let asked = machine.cmdline_or_none()?.values("rt_group_sched").rfind(|value| ["0", "1"].contains(value));
    let enabled = asked.map_or(default == OptionValue::No, |value| value == "1");
    if enabled {
        return Ok(Judgement::fail("enabled").fix(Change::cmdline_add("rt_group_sched=0")));
    }
    Ok(Judgement::pass("disabled").persistence(Persistence::Boot))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const NEW: &str = "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=";

    #[test]
    fn newer_kernels_can_have_it_and_leave_it_off() {
        check(&KNOB, "", "pass not built in");
        check(&KNOB, "CONFIG_RT_GROUP_SCHED=y\ncmdline + rt_group_sched=0", "fail high built in");
        check(&KNOB, &format!("{NEW}y"), "pass disabled");
        check(&KNOB, &format!("{NEW}y\ncmdline + rt_group_sched=1"), "fail high enabled");
        check(&KNOB, &format!("{NEW}n\ncmdline + rt_group_sched=0"), "pass disabled");
        check(&KNOB, &format!("{NEW}n\ncmdline + rt_group_sched=no"), "fail high enabled");
        check(&KNOB, &format!("{NEW}y\n/proc/cmdline refused"), "unknown");
    }

    #[test]
    fn a_budget_shows_it_without_a_configuration() {
        let group = "/boot refused\n/proc/self/cgroup: 4:cpu,cpuacct:/a\n\
                     /sys/fs/cgroup/cpu,cpuacct/a/cpu.rt_runtime_us: 0";
        check(&KNOB, group, "fail high on: 0 us for this group");
    }
}
