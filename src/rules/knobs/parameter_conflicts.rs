//! Words on the command line that contradict each other.

use super::sources::{ISOLATION_C, PARAMETERS};
use crate::facts::boot_list::{parse_boot_list, parse_isolcpus};
use crate::facts::cmdline::Cmdline;
use crate::rules::case::{Case, absent};
use crate::rules::judgement::{Judged, Judgement, Severity};
use crate::rules::words::{few, short};
use crate::rules::{Evidence, Examples, Knob, Lasts, Slice, Source};
use crate::units::Cpu;

pub static KNOB: Knob = Knob {
    id: "parameter-conflicts",
    title: "contradictory kernel parameters",
    what: "A word that stands on the command line twice, with two values: of most the last one counts, of isolcpus= and nohz_full= the \
           first, as the kernel refuses a list that differs from the one it took. Up to 5.17 it also refused lists that differ between these two.",
    why: "one of the two values has no effect, and which of them depends on the word: CPUs stay unisolated that were thought to be",
    tell: "The command line that the kernel booted with. Words come from the boot loader, from what is built into the kernel, and from \
           drop-in files, so two of them often stand far apart.",
    cost: "Nothing but a boot; the value that wins may change with it.",
    wanted: "each word with one value",
    fix: "leave one of them in the boot loader's configuration, the one that is meant",
    severity: Severity::Medium,
    evidence: Evidence::Source,
    contested: "",
    lasts: Lasts::Boot,
    sources: &[
        Source { title: "kernel: command line", url: PARAMETERS },
        Source { title: "kernel source: kernel/sched/isolation.c, housekeeping_setup()", url: ISOLATION_C },
    ],
    cures: &[Slice::TimerIrq, Slice::Thread, Slice::Irq],
    after: &[],
    conflicts: &[],
    reads: &[POSSIBLE],
    facts: &["/proc/cmdline", "/proc/sys/kernel/osrelease"],
    programs: &[],
    judge,
    examples: Examples {
        fires: "cmdline + irqaffinity=0-1
                cmdline + irqaffinity=0-3",
        silent: "",
        unknown: "/proc/cmdline refused",
    },
};

const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// Words of one value that real-time machines are set up with; the last one counts.
const LAST_COUNTS: &[&str] = &[
    "clocksource",
    "cpufreq.default_governor",
    "idle",
    "intel_idle.max_cstate",
    "irqaffinity",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "rcupdate.rcu_expedited",
    "rcupdate.rcu_normal",
    "rcupdate.rcu_normal_after_boot",
    "rcutree.kthread_prio",
    "skew_tick",
    "threadirqs",
    "transparent_hugepage",
    "workqueue.unbound_cpus",
];

fn judge(case: &Case) -> Judged {
    let cmdline = case.cmdline()?;
    let mut found: Vec<String> = LAST_COUNTS.iter().filter_map(|name| twice(cmdline, name)).collect();
    let lists = lists(case, cmdline);
    found.extend(lists.clone().unwrap_or_default());
    if !found.is_empty() {
        return Ok(Judgement::fail(few_long(&found)));
    }
    lists?;
    Ok(Judgement::pass("none"))
}

/// Names with their values are longer than words: fewer of them fit.
fn few_long(found: &[String]) -> String {
    let shown = found.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
    if found.len() > 3 { format!("{shown}; {} more", found.len() - 3) } else { shown }
}

fn twice(cmdline: &Cmdline, name: &str) -> Option<String> {
    let last = cmdline.value(name)?;
    let mut others: Vec<&str> = cmdline.values(name).filter(|value| *value != last).collect();
    others.dedup();
    (!others.is_empty()).then(|| format!("{name}={} beats {}", short(last), few(&others[..1])))
}

/// Lists of CPUs that keep house: what the kernel has taken it does not take back.
fn lists(case: &Case, cmdline: &Cmdline) -> Result<Vec<String>, Judgement> {
    if !cmdline.has("isolcpus") && !cmdline.has("nohz_full") {
        return Ok(Vec::new());
    }
    let possible = case.cpu_list_if_there(POSSIBLE)?.ok_or_else(|| absent(POSSIBLE))?;
    let last = possible.iter().last().ok_or_else(|| absent("the last CPU"))?;
    let lists = housekeeping(cmdline, last)?;
    let old = lists.len() > 1 && case.series()? < (5, 18);
    let mut found = Vec::new();
    for (at, (name, kinds, cpus)) in lists.iter().enumerate() {
        let first = lists[..at].iter().find(|(_, taken, other)| {
            (old || kinds.iter().any(|kind| taken.contains(kind))) && other != cpus
        });
        if let Some((taken, _, other)) = first {
            found.push(format!(
                "{taken}={} beats {name}={}",
                short(&other.to_string()),
                short(&cpus.to_string())
            ));
        }
    }
    Ok(found)
}

type List = (&'static str, Vec<String>, crate::units::CpuSet);

/// Each list with what it keeps away, in the order of the command line.
fn housekeeping(cmdline: &Cmdline, last: Cpu) -> Result<Vec<List>, Judgement> {
    let mut lists = Vec::new();
    for param in &cmdline.params {
        let value = param.value.as_deref().unwrap_or_default();
        let wrong = |why| Judgement::unknown(format!("{} is not understood: {why}", short(&param.name)));
        match param.name.as_str() {
            "nohz_full" => {
                lists.push((
                    "nohz_full",
                    vec!["nohz".to_owned()],
                    parse_boot_list(value, last).map_err(wrong)?,
                ));
            }
            "isolcpus" => {
                let (mut kinds, cpus) = parse_isolcpus(value, last).map_err(wrong)?;
                if kinds.is_empty() {
                    kinds.push("domain");
                }
                lists.push(("isolcpus", kinds.into_iter().map(str::to_owned).collect(), cpus));
            }
            _ => {}
        }
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::rules::fixture::check;

    #[test]
    fn the_last_value_counts_of_most() {
        check(&KNOB, "", "pass none");
        check(&KNOB, "cmdline + rcu_nocbs=2-3", "pass none");
        check(&KNOB, "cmdline + rcu_nocbs=3", "fail medium rcu_nocbs=3 beats 2-3");
        check(
            &KNOB,
            "cmdline + preempt=full\ncmdline + preempt=none\ncmdline + idle=halt\ncmdline + idle=poll",
            "fail medium idle=poll beats halt; preempt=none beats full",
        );
        // These add up.
        check(&KNOB, "cmdline + tsc=reliable\ncmdline + console=tty0\ncmdline + console=ttyS0", "pass none");
    }

    #[test]
    fn lists_of_isolated_cpus_are_taken_once() {
        check(&KNOB, "cmdline + isolcpus=domain,2-3", "pass none");
        check(&KNOB, "cmdline + isolcpus=nohz,3", "pass none");
        check(&KNOB, "cmdline + isolcpus=3", "fail medium isolcpus=2-3 beats isolcpus=3");
        check(
            &KNOB,
            "cmdline + nohz_full=3\ncmdline + isolcpus=nohz,2",
            "fail medium nohz_full=3 beats isolcpus=2",
        );
        check(&KNOB, "cmdline + nohz_full=3", "pass none");
        let old = "/proc/sys/kernel/osrelease: 5.10.1";
        check(&KNOB, &format!("{old}\ncmdline + nohz_full=3"), "fail medium isolcpus=2-3 beats nohz_full=3");
        check(&KNOB, &format!("{old}\ncmdline + nohz_full=2-N"), "pass none");
    }

    #[test]
    fn what_is_not_understood_is_no_pass() {
        check(&KNOB, "cmdline + isolcpus=2-x", "unknown");
        check(&KNOB, "/sys/devices/system/cpu/possible refused", "unknown");
        check(
            &KNOB,
            "/sys/devices/system/cpu/possible refused\ncmdline + nohz=off\ncmdline + nohz=on",
            "fail medium nohz=on beats off",
        );
        let long = "x".repeat(500);
        check(
            &KNOB,
            &format!("cmdline + idle={long}\ncmdline + idle=poll"),
            &format!("fail medium idle=poll beats {}...", "x".repeat(40)),
        );
    }
}
