//! Real-time throttling: the share of each period that is withheld from real-time tasks.

use super::sources::{RT_GROUP, SYSCTL_KERNEL};
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::view::MachineView;
use facts::Fact;
use facts::sched::FairServer;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "rt-throttling",
    title: "real-time throttling",
    description: "The kernel stops all real-time tasks of a CPU for the rest of sched_rt_period_us once they \
                  have run for sched_rt_runtime_us of it: 50 ms in each second by default. From 6.12 on the \
                  fair server replaces it, and the sysctl only limits admission, unless the kernel has \
                  RT_GROUP_SCHED.",
    rationale: "real-time tasks that run for 95 % of a second are stopped for the rest of it, whatever their \
                priority",
    detection: "The sysctl, and whether this kernel throttles at all: one with a fair server and \
                without RT_GROUP_SCHED does not.",
    side_effects: "With -1 a real-time task that never sleeps blocks its CPU forever: only a task of higher \
                   priority or a hardware watchdog recovers it. If the kernel has fair servers, write this \
                   before them and restore it after them.",
    wanted: "-1, no throttling",
    fix: || Change::sysctl("kernel.sched_rt_runtime_us", -1).into(),
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    disputed: "throttling also protects a machine from a runaway real-time task: a loop that leaves 5 % of \
               its CPU is never throttled; `onbeat measure` reports throttling during a run",
    persistence: Persistence::Runtime,
    sets: "/proc/sys/kernel/sched_rt_runtime_us",
    sources: &[
        Source { title: "kernel: real-time group scheduling, the system wide settings", url: RT_GROUP },
        Source { title: "kernel: /proc/sys/kernel, sched_rt_runtime_us", url: SYSCTL_KERNEL },
    ],
    cures: &[SliceKind::Throttled],
    facts: &[
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/proc/sys/kernel/sched_rt_period_us",
        "/sys/kernel/debug/sched/fair_server",
        "/boot/config-RELEASE",
    ],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/osrelease: 6.1.0-50-rt-amd64
                /sys/kernel/debug/sched/fair_server absent
                /proc/sys/kernel/sched_rt_runtime_us: 950000",
        silent: "",
        unknown: "/proc/sys/kernel/sched_rt_runtime_us refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let facts = machine.facts();
    let runtime = *machine.known(&facts.rt_runtime_us, "/proc/sys/kernel/sched_rt_runtime_us")?;
    if runtime == -1 {
        return Ok(Judgement::pass("-1"));
    }
    let period = *machine.known(&facts.rt_period_us, "/proc/sys/kernel/sched_rt_period_us")?;
    let value = format!("{runtime} of {period} us");
    if runtime > period {
        return Err(Judgement::unknown(format!(
            "invalid value {value}: the kernel accepts no runtime above the period"
        )));
    }
    if runtime == period {
        return Ok(Judgement::pass(value));
    }
    throttles(machine)?;
    // `sched_rt_runtime_exceeded()` throttles no group without a runtime; with groups of real-time
    // tasks it admits none of them instead.
    if runtime == 0 && machine.kconfig().is_ok_and(|config| !config.is_yes("RT_GROUP_SCHED")) {
        return Ok(Judgement::pass(format!("{value}: with 0 the kernel never throttles")));
    }
    // A loop that always leaves some time is never throttled.
    let loops = machine.has_profile(Profile::ControlLoop) || machine.has_profile(Profile::Audio);
    let severity = if loops { Severity::Medium } else { Severity::High };
    let share = 100 * runtime.max(0) / period.max(1);
    Ok(Judgement::fail(value).severity(severity).because(format!(
        "real-time tasks that run for {share} % of a period are stopped for the rest of it, whatever their \
         priority"
    )))
}

/// Returns early unless this kernel throttles.
fn throttles(machine: &MachineView) -> Result<(), Judgement> {
    let groups = || machine.kconfig().map(|config| config.is_yes("RT_GROUP_SCHED"));
    if is_replaced(&machine.facts().fair_servers, || machine.series(), groups)? {
        return Err(Judgement::not_applicable(
            "this kernel has a fair server instead: the sysctl only limits admission",
        ));
    }
    Ok(())
}

/// True if a kernel has fair servers in place of the throttle: the files decide, or its version if
/// debugfs is closed.
pub fn is_replaced(
    servers: &Fact<Vec<FairServer>>,
    series: impl FnOnce() -> Result<(u32, u32), Judgement>,
    groups: impl FnOnce() -> Result<bool, Judgement>,
) -> Result<bool, Judgement> {
    let has_servers = match servers {
        Fact::Known(servers) => !servers.is_empty(),
        _ => series()? >= (6, 12),
    };
    Ok(has_servers && !groups()?)
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const STOCK: &str = "/proc/sys/kernel/sched_rt_runtime_us: 950000";

    #[test]
    fn a_runtime_of_zero_throttles_nothing() {
        let old = "/proc/sys/kernel/sched_rt_runtime_us: 0
            /sys/kernel/debug/sched/fair_server refused
            /proc/sys/kernel/osrelease: 6.1.100
            /boot/config-6.1.100:
            | # Automatically generated file; DO NOT EDIT.
            | # Linux/x86 6.1.100 Kernel Configuration
            | CONFIG_PREEMPT_RT=y";
        let never = "pass 0 of 1000000 us: with 0 the kernel never throttles";
        check(&KNOB, &format!("{old}\n| # Kernel hacking"), never);
        // With groups of real-time tasks it admits none of them instead.
        check(
            &KNOB,
            &format!("{old}\n| CONFIG_RT_GROUP_SCHED=y\n| # Kernel hacking"),
            "fail medium 0 of 1000000 us",
        );
    }

    #[test]
    fn kernels_with_a_fair_server_do_not_throttle() {
        check(
            &KNOB,
            STOCK,
            "not-applicable this kernel has a fair server instead: the sysctl only limits admission",
        );
        check(&KNOB, &format!("{STOCK}\nCONFIG_RT_GROUP_SCHED=y"), "fail medium 950000 of 1000000 us");
        check(&KNOB, &format!("{STOCK}\n/boot/config-6.12.9-rt-amd64 absent"), "unknown");
        check(
            &KNOB,
            &format!(
                "{STOCK}\n/sys/kernel/debug/sched/fair_server refused\n\
                 /proc/sys/kernel/osrelease: 6.1.0\n--profile busy-poll"
            ),
            "fail high 950000 of 1000000 us",
        );
        check(&KNOB, "/proc/sys/kernel/sched_rt_runtime_us: 1000000", "pass 1000000 of 1000000 us");
    }
}
