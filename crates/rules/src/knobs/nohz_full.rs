//! CPUs without a tick while they run one task: for those that poll, not for periodic loops.

use super::parameter_conflicts::{POSSIBLE, PRESENT, refused_ticks};
use super::rcu_lazy::{PARAMETER, offloading_word, prompt_callbacks};
use super::sources::{ISOLATION, NO_HZ, RT_CONFIG};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing::{isolcpus, released_first};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::cmdline::Cmdline;
use facts::kconfig::OptionValue;
use model::slice::SliceKind;
use model::units::{CpuSet, named_cpus};

pub static KNOB: Knob = Knob {
    id: "nohz-full",
    title: "full dynticks",
    description: "CPUs in nohz_full= stop their tick while they run a single task. In return each kernel \
                  entry and exit does the accounting of the tick, and all their RCU callbacks run on other \
                  CPUs.",
    rationale: "a loop that sleeps and wakes enters the kernel in each cycle and pays for the accounting \
                each time; one that never enters it is only disturbed by the tick",
    detection: "/sys/devices/system/cpu/nohz_full. A kernel built with NO_HZ_FULL whose list is \
                empty behaves like one without. Whether the tick really stops is not seen here: a \
                second task, a POSIX CPU timer or an unstable clocksource keeps it.",
    side_effects: "With it system calls, page faults and interrupts on these CPUs cost more, there must be \
                   one task per CPU, and on most kernels the boot CPU cannot be among them. Without it a \
                   tick interrupts a polling task for a few microseconds 100 to 1000 times a second.",
    wanted: "none of the CPUs for a loop that sleeps, all of them for a loop that polls",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "remove the audited CPUs from nohz_full= on the kernel's command line, and name them in \
             rcu_nocbs=",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    disputed: "the kernel's guide advises against it for periodic loops, tuned's profile cpu-partitioning \
               sets it for all isolated CPUs: `onbeat measure` the loop with and without it, and `onbeat \
               compare` the two",
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_NO_HZ_FULL", url: RT_CONFIG },
        Source { title: "kernel: CPU isolation, full dynticks", url: ISOLATION },
        Source { title: "kernel: reducing scheduling-clock ticks", url: NO_HZ },
    ],
    cures: &[SliceKind::TimerIrq, SliceKind::TimerSoftirq, SliceKind::ReturnToUser],
    reads: &[PARAMETER, POSSIBLE, PRESENT],
    facts: &[LIST, "/sys/devices/system/cpu/online", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/nohz_full: 2-3
                cmdline + nohz_full=2-3",
        silent: "/sys/devices/system/cpu/nohz_full:   (null)",
        unknown: "/sys/devices/system/cpu/nohz_full refused",
    },
    ..Knob::DEFAULT
};

const LIST: &str = "/sys/devices/system/cpu/nohz_full";

fn judge(machine: &MachineView) -> Judged {
    if machine.has_profile(Profile::Guest) {
        return Err(Judgement::not_applicable(
            "in a guest it depends on the work: use --profile control-loop or --profile busy-poll",
        ));
    }
    if machine.has_profile(Profile::KvmHost) {
        return Err(Judgement::not_applicable(
            "on a host it depends on the guests: use --profile busy-poll for guests that never sleep",
        ));
    }
    let facts = machine.facts();
    let online = machine.known(&facts.online, "/sys/devices/system/cpu/online")?;
    // The file comes with the option; next to it is that of the CPUs online, which could be read.
    let (list, built) = match machine.nohz_full()? {
        None => (Default::default(), false),
        Some(list) => (list.and(online), true),
    };
    let found = match (built, list.is_empty()) {
        (false, _) => "not built in".to_owned(),
        (true, true) => "none".to_owned(),
        (true, false) => cpu_list(&list),
    };
    if !machine.has_profile(Profile::BusyPoll) {
        return Ok(Judgement::fail_if(!list.and(machine.cpus()).is_empty(), found)
            .wanted("none of the audited CPUs")
            .fix(without(machine, &list.without(machine.cpus()))));
    }
    machine.require_isolation()?;
    let missing = machine.cpus().without(&list);
    let boot = Change::cmdline_add(format!("nohz_full={}", list.or(machine.cpus())));
    let lacks = facts.kconfig.known().is_some_and(|config| config.get("NO_HZ_FULL") == OptionValue::No);
    let refused = if list.is_empty() { refused_ticks(machine) } else { None };
    let fix = match refused {
        Some((_, fix)) => fix,
        None if built && !lacks => boot.into(),
        None => Remedy::of([Change::kconfig("NO_HZ_FULL", "y"), boot]),
    };
    Ok(Judgement::fail_if(!missing.is_empty(), found)
        .wanted(named_cpus(machine.cpus()))
        .fix(prompt_callbacks(machine, fix)))
}

/// The list with these CPUs alone. Callbacks stay off the others: `nohz_full=` offloaded them as
/// `rcu_nocbs=` does.
fn without(machine: &MachineView, rest: &CpuSet) -> Remedy {
    let list = if rest.is_empty() {
        Change::cmdline_remove("nohz_full")
    } else {
        Change::cmdline_add(format!("nohz_full={rest}"))
    };
    let cmdline = machine.facts().cmdline.known();
    let offloaded = cmdline.is_some_and(|cmdline| cmdline.has("rcu_nocbs"));
    let of_isolcpus = cmdline.and_then(|cmdline| without_flag(machine, cmdline));
    // The flag gives the CPUs alone, or the same ones as nohz_full= does.
    let named = cmdline.is_some_and(|cmdline| cmdline.has("nohz_full"));
    let both = match of_isolcpus {
        Some(change) if named => Remedy::of([list, change]),
        Some(change) => Remedy::from(change),
        None => Remedy::from(list),
    };
    if offloaded || machine.require_isolation().is_err() {
        return both;
    }
    both.and(offloading_word(machine))
}

/// The parameter isolcpus= without its flag nohz, by which it does what nohz_full= does
/// (`housekeeping_isolcpus_setup()` of kernel/sched/isolation.c); none without that flag.
fn without_flag(machine: &MachineView, cmdline: &Cmdline) -> Option<Change> {
    let given = cmdline.values("isolcpus").next()?;
    let is_flag = |part: &&str| part.starts_with(|c: char| c.is_ascii_alphabetic());
    let flags: Vec<&str> = given.split(',').take_while(is_flag).collect();
    if !flags.contains(&"nohz") {
        return None;
    }
    Some(if flags.iter().any(|flag| *flag != "nohz") {
        Change::cmdline_add(isolcpus(machine, released_first(machine).is_none()))
    } else {
        Change::cmdline_remove("isolcpus")
    })
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const BOTH: &str = "/sys/devices/system/cpu/nohz_full: 2-3";

    #[test]
    fn what_it_is_for_decides() {
        check(&KNOB, "", "pass none");
        check(&KNOB, BOTH, "fail medium CPUs 2-3");
        check(&KNOB, &format!("{BOTH}\n--profile audio\n--cpus 0-1"), "pass CPUs 2-3");
        check(&KNOB, &format!("{BOTH}\n--profile busy-poll"), "pass CPUs 2-3");
        check(&KNOB, &format!("{BOTH}\n--profile guest"), "not-applicable");
        check(
            &KNOB,
            "/sys/devices/system/cpu/nohz_full: 3\n--profile busy-poll\n--cpus 2-3",
            "fail medium CPU 3",
        );
        check(&KNOB, "--profile busy-poll\n--cpus 0-3", "not-applicable");
    }

    #[test]
    fn the_flag_of_isolcpus_is_taken_off() {
        let fix = |word: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{BOTH}\ncmdline - isolcpus=managed_irq,domain,2-3\ncmdline + {word}"));
            machine.finding(&KNOB).fix
        };
        let replaced = "replace isolcpus=nohz,domain,2-3 by isolcpus=managed_irq,domain,2-3";
        assert!(fix("isolcpus=nohz,domain,2-3").contains(replaced), "{}", fix("isolcpus=nohz,domain,2-3"));
        let alone = fix("isolcpus=nohz,2-3");
        assert!(alone.contains("remove isolcpus=nohz,2-3 from"), "{alone}");
    }

    #[test]
    fn a_kernel_without_it_has_no_list() {
        let missing = "/sys/devices/system/cpu/nohz_full absent";
        check(&KNOB, missing, &format!("unknown {} is not there", super::LIST));
        let absent = format!("{missing}\nCONFIG_NO_HZ_FULL=n");
        check(&KNOB, &absent, "pass not built in");
        check(&KNOB, &format!("{absent}\n--profile busy-poll"), "fail medium not built in");
        check(&KNOB, &format!("{absent}\n/sys/devices/system/cpu/online absent"), "unknown");
    }
}
