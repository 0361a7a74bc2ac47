//! What the kernel must have been built with to keep CPUs apart.

use super::sources::ISOLATION;
use crate::rules::case::Case;
use crate::rules::judgement::{Judged, Judgement, Severity};
use crate::rules::{Evidence, Examples, Knob, Lasts, Slice, Source};

pub static KNOB: Knob = Knob {
    id: "isolation-support",
    title: "support for isolated CPUs",
    what: "CPUSETS gives partitions of CPUs at run time, CPU_ISOLATION the parameters isolcpus= and nohz_full=, RCU_NOCB_CPU the \
           parameter rcu_nocbs=, which takes the callbacks of RCU off a CPU.",
    why: "without them tasks are balanced onto the CPUs that matter, and unbound work and callbacks of RCU run there; the parameters are ignored",
    tell: "The kernel's configuration. Whether the features are used is judged by other rules.",
    cost: "Another kernel; the options cost nothing while nobody uses them.",
    wanted: "CPUSETS, CPU_ISOLATION and RCU_NOCB_CPU built in",
    fix: "boot a kernel built with CONFIG_CPUSETS, CONFIG_CPU_ISOLATION and CONFIG_RCU_NOCB_CPU",
    severity: Severity::High,
    evidence: Evidence::Documented,
    contested: "",
    lasts: Lasts::Build,
    sources: &[Source { title: "kernel: CPU isolation, requirements and interfaces", url: ISOLATION }],
    cures: &[Slice::Thread, Slice::Workqueue, Slice::Softirq, Slice::TimerSoftirq],
    after: &[],
    conflicts: &[],
    reads: &[],
    facts: &["/boot/config-RELEASE", "/sys/devices/system/cpu/isolated", "/sys/devices/system/cpu/online"],
    programs: &[],
    judge,
    examples: Examples {
        fires: "CONFIG_CPUSETS=n\n--cpus 2-3",
        silent: "--cpus 2-3",
        unknown: "/boot refused\n--cpus 2-3",
    },
};

fn judge(case: &Case) -> Judged {
    case.needs_isolation()?;
    let config = case.kconfig()?;
    let needed = ["CPUSETS", "CPU_ISOLATION", "RCU_NOCB_CPU"];
    let missing: Vec<&str> = needed.into_iter().filter(|name| !config.is_yes(name)).collect();
    if missing.is_empty() {
        return Ok(Judgement::pass("all built in"));
    }
    let missing = missing.join(", ");
    Ok(Judgement::fail(format!("without {missing}")).fix(format!("boot a kernel built with {missing}")))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::rules::fixture::check;

    #[test]
    fn only_where_cpus_are_set_apart() {
        check(&KNOB, "", "pass all built in");
        check(&KNOB, "CONFIG_RCU_NOCB_CPU=n\nCONFIG_CPUSETS=n", "fail high without CPUSETS, RCU_NOCB_CPU");
        check(&KNOB, "--cpus 0-3", "not-applicable");
        check(&KNOB, "/sys/devices/system/cpu/isolated: \nCONFIG_CPUSETS=n", "not-applicable");
        let hidden = "/sys/devices/system/cpu/isolated refused\n/sys/devices/system/cpu/nohz_full refused";
        check(&KNOB, hidden, "unknown");
        check(&KNOB, &format!("{hidden}\n--cpus 2"), "pass all built in");
    }
}
