//! Parameters on the command line without effect: from recipes for other kernels, and misspelt.

use super::sources::PARAMETERS;
use super::takers::{
    HUGE_PAGES, MODELS, is_no_truth, is_not_x86, is_x86, lacks_idle, named_by_log, not_built, of_another,
    refused_model,
};
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::parameters::{idle_value, misspelt, spelling};
use crate::releases::outside_release;
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{truncate, truncate_words};
use facts::cmdline::{Cmdline, Param};
use model::slice::SliceKind;
use model::sort::CompactSort;

pub static KNOB: Knob = Knob {
    id: "unknown-parameters",
    title: "kernel parameters without effect",
    description: "The kernel passes unknown parameters to init and continues. Recipes contain some that no \
                  mainline kernel ever knew, such as kthread_cpus=, some that lack their module's name, and \
                  spelling mistakes.",
    rationale: "a parameter without effect does not do what it was added for",
    detection: "A list of parameters from recipes, compared with this kernel's release and architecture; the \
                models that preempt= can select on it; sysctls without the prefix sysctl.; parameters \
                without their module's name or with a wrong one; invalid values of parameters with fixed \
                values; and parameters that differ by one letter from one used on real-time machines. From \
                5.14 on the kernel's log names all unknown parameters without a dot: if available, it \
                decides about other parameters, about kthread_cpus=, which some vendor kernels know, and \
                adds parameters that start like those of recipes.",
    side_effects: "Only a reboot; the correct parameter then takes effect.",
    wanted: "only parameters that this kernel knows",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "correct or remove the parameter; dmesg | grep -i unknown shows the kernel's message",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Source,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[Source { title: "kernel: command line", url: PARAMETERS }],
    cures: &[SliceKind::Thread, SliceKind::TimerIrq, SliceKind::Irq],
    reads: &[MODELS, HUGE_PAGES],
    facts: &[
        "/boot/config-RELEASE",
        "/dev/kmsg",
        "/proc/cmdline",
        "/proc/sys/kernel/arch",
        "/proc/sys/kernel/osrelease",
        "/proc/sys/kernel/version",
    ],
    judge,
    examples: Examples {
        fires: "cmdline + kthread_cpus=0-1",
        silent: "cmdline - kthread_cpus=0-1",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// The latest release whose parameters were read.
const LATEST: (u32, u32) = (7, 3);

/// A word of recipes, and what to know of it.
struct Stray {
    /// The name of a parameter, or one with its value.
    word: &'static str,
    advice: &'static str,
    severity: Severity,
    /// True where the kernel does not know it.
    is_stray: fn(&MachineView) -> Result<bool, Judgement>,
}

const fn stray(word: &'static str, advice: &'static str, severity: Severity) -> Stray {
    Stray { word, advice, severity, is_stray: |_| Ok(true) }
}

const STRAY: &[Stray] = &[
    Stray {
        is_stray: |machine| Ok(named_by_log(machine, "kthread_cpus") != Some(false)),
        ..stray(
            "kthread_cpus",
            "not in mainline: kernel threads follow nohz_full= up to 6.12, from 7.0 on isolcpus=domain or \
             a cpuset partition",
            Severity::Info,
        )
    },
    stray("rcu_expedited", "spelt rcupdate.rcu_expedited, and better omitted", Severity::Low),
    stray("rcu_boost", "a build option: CONFIG_RCU_BOOST", Severity::Low),
    stray("workqueue.cpumask", "spelt workqueue.unbound_cpus (6.6 on)", Severity::Medium),
    stray("sched_rt_runtime_us", "a sysctl: sysctl.kernel.sched_rt_runtime_us= (5.8 on)", Severity::Medium),
    stray("idle=mwait", "removed: limit the idle states instead", Severity::Low),
    stray("noirqbalance", "removed in 2.6: stop the irqbalance program instead", Severity::Low),
    stray("noibrs", "only in RHEL 7: use nospectre_v2", Severity::Low),
    stray("noibpb", "only in RHEL 7: use nospectre_v2", Severity::Low),
    stray("art", "in no mainline kernel", Severity::Low),
    stray(
        "igb.blacklist",
        "not a parameter of igb: modprobe.blacklist=igb keeps the module from loading",
        Severity::Low,
    ),
    stray(
        "housekeeping",
        "never a parameter: isolcpus= and nohz_full= name the other CPUs",
        Severity::Medium,
    ),
    stray("noht", "removed in 2.6: use nosmt", Severity::Low),
    stray("nohalt", "only on ia64, which was removed: use idle=poll on x86, nohlt elsewhere", Severity::Low),
    stray("intel_pstate=enable", "invalid value: the driver is on by default", Severity::Low),
    stray(
        "intel_pstate=performance",
        "invalid value: use cpufreq.default_governor=performance",
        Severity::Low,
    ),
    Stray {
        is_stray: |machine| Ok(machine.series()? >= (5, 0)),
        ..stray("elevator", "removed in 5.0: use queue/scheduler of each disk", Severity::Low)
    },
    Stray {
        is_stray: |machine| Ok(machine.series()? >= (4, 16)),
        ..stray("i915.enable_rc6", "removed in 4.16: see gpu-runtime-power", Severity::Low)
    },
    Stray { is_stray: is_not_x86, ..stray("idle=poll", "only on x86: use nohlt here", Severity::Low) },
    Stray { is_stray: is_not_x86, ..stray("idle=halt", "only on x86: see idle-states", Severity::Low) },
    Stray { is_stray: is_not_x86, ..stray("idle=nomwait", "only on x86: see idle-states", Severity::Low) },
    Stray { is_stray: is_x86, ..stray("nohlt", "not known on x86: use idle=poll", Severity::Low) },
    Stray { is_stray: lacks_idle, ..stray("idle=nop", "only on arm64, from 7.3 on", Severity::Low) },
    Stray { is_stray: lacks_idle, ..stray("idle=wfi", "only on arm64, from 7.3 on", Severity::Low) },
    Stray { is_stray: lacks_idle, ..stray("idle=yield", "only on arm64, from 7.3 on", Severity::Low) },
    Stray { is_stray: is_gone, ..stray("rcupdate.rcu_task_ipi_delay", "gone by 7.2", Severity::Low) },
];

/// Beginnings of parameters that recipes for real-time machines have. Of what else the kernel's log
/// names, boot loaders and init systems have the most.
const RECIPES: &[&str] = &[
    "amd_",
    "clocksource",
    "cpufreq",
    "cpuidle",
    "hpet",
    "idle",
    "intel_",
    "irq",
    "isol",
    "kthread",
    "lapic",
    "mitigations",
    "nmi",
    "nohz",
    "nosoft",
    "nowatchdog",
    "preempt",
    "rcu",
    "sched",
    "skew",
    "threadirq",
    "timer",
    "tsc",
    "workqueue",
];

/// True of a sysctl's name, which is no module's: those of the network have a folder between, and
/// systemd-udevd takes words without one (net.ifnames=, systemd.net-naming-scheme(7)).
fn is_sysctl(name: &str) -> bool {
    ["kernel.", "vm.", "fs."].iter().any(|start| name.starts_with(start))
        || name.strip_prefix("net.").is_some_and(|rest| rest.contains('.'))
}

/// True of kernels without the parameters of RCU that 6.12 still has and 7.2 no longer.
fn is_gone(machine: &MachineView) -> Result<bool, Judgement> {
    let series = machine.series()?;
    if series > (6, 12) && series < (7, 2) {
        return Err(Judgement::unknown("it is not known whether this kernel still has a parameter"));
    }
    Ok(series >= (7, 2))
}

fn judge(machine: &MachineView) -> Judged {
    let (found, undecided) = idle_parameters(machine, machine.cmdline()?);
    let Some(worst) = found.iter().map(|found| found.severity).max() else {
        return match undecided {
            Some(why) => Err(why),
            None => Ok(Judgement::pass("none known to be without effect")),
        };
    };
    let names: Vec<&str> = found.iter().map(|found| found.word.as_str()).collect();
    let advice: Vec<_> = found.iter().take(8).map(|one| format!("{}: {}", one.word, one.advice)).collect();
    Ok(Judgement::fail(truncate_words(&names))
        .severity(worst)
        .fix(Remedy::advice(AdviceReason::Choice, advice.join("; "))))
}

/// A word without effect.
#[derive(PartialEq)]
struct Idle {
    word: String,
    advice: String,
    severity: Severity,
}

/// The words without effect, the worst first, each once; and why it is not known of one.
fn idle_parameters(machine: &MachineView, cmdline: &Cmdline) -> (Vec<Idle>, Option<Judgement>) {
    let (mut found, mut undecided): (Vec<Idle>, Option<Judgement>) = (Vec::new(), None);
    for param in &cmdline.params {
        match without_effect(machine, param) {
            Err(why) => drop(undecided.get_or_insert(why)),
            Ok(Some(one)) if !found.contains(&one) && found.len() < 64 => found.push(one),
            Ok(_) => {}
        }
    }
    found.compact_sort_by_key(|found| std::cmp::Reverse(found.severity));
    (found, undecided)
}

fn without_effect(machine: &MachineView, param: &Param) -> Result<Option<Idle>, Judgement> {
    let name = param.name.replace('-', "_");
    let value = param.value.as_deref().unwrap_or_default();
    let whole = format!("{name}={value}");
    if let Some(known) = STRAY.iter().find(|known| known.word == name || known.word == whole) {
        let idle = Idle { word: known.word.into(), advice: known.advice.into(), severity: known.severity };
        // A value of a parameter may be taken in silence.
        let logged = named_by_log(machine, &name).filter(|named| *named || known.word == name);
        let is_stray = (known.is_stray)(machine).or_else(|why| logged.ok_or(why))?;
        return Ok(is_stray.then_some(idle));
    }
    if is_sysctl(&name) {
        let advice = format!("a sysctl: sysctl.{}= (5.8 on)", truncate(&param.name));
        return Ok(Some(Idle { word: truncate(&param.name), advice, severity: Severity::Medium }));
    }
    if name == "preempt" {
        let idle = |advice| Idle { word: truncate(&whole), advice, severity: Severity::Low };
        let logged = || "the kernel's log shows that it does not accept this model".to_owned();
        return match (refused_model(machine, value), named_by_log(machine, &name)) {
            (Ok(Some(why)), _) => Ok(Some(idle(why))),
            (_, Some(true)) => Ok(Some(idle(logged()))),
            (Err(_), Some(false)) => Ok(None),
            (judged, _) => judged.map(|_| None),
        };
    }
    if let Some((part, advice)) = outside_release(&whole, || machine.series())? {
        return Ok(Some(Idle { word: truncate(part), advice, severity: Severity::Low }));
    }
    if let Some(advice) = not_built(machine, &name) {
        return Ok(Some(Idle { word: truncate(&whole), advice, severity: Severity::Info }));
    }
    if let Some(advice) = of_another(machine, &name) {
        return Ok(Some(Idle { word: truncate(&name), advice, severity: Severity::Low }));
    }
    if let Some(advice) = spelling(&name) {
        return Ok(Some(Idle { word: truncate(&name), advice, severity: Severity::Medium }));
    }
    let by_class = name == "mitigations" && !matches!(value, "off" | "auto" | "auto,nosmt");
    if by_class && idle_value(&name, value).is_none() {
        let advice = if machine.series()? < (6, 17) {
            Some("attack classes are known from 6.17 on: this kernel ignores the whole value")
        } else if is_not_x86(machine)? {
            // ARCH_HAS_CPU_ATTACK_VECTORS.
            Some("attack classes are known only on x86: only the value before them counts")
        } else {
            None
        };
        let idle = |advice: &str| Idle {
            word: truncate(&whole),
            advice: advice.to_owned(),
            severity: Severity::Low,
        };
        return Ok(advice.map(idle));
    }
    if let Some(idle) = of_no_value(machine, &name, value)? {
        return Ok(Some(idle));
    }
    let meant = misspelt(&name).map(|meant| Idle {
        word: truncate(&name),
        advice: format!("probably meant to be {meant}"),
        severity: Severity::Medium,
    });
    Ok(meant.or_else(|| {
        let of_recipes = RECIPES.iter().any(|begin| name.starts_with(begin));
        (of_recipes && named_by_log(machine, &name) == Some(true)).then(|| Idle {
            word: truncate(&name),
            advice: "the kernel's log shows that it is unknown".to_owned(),
            severity: Severity::Low,
        })
    }))
}

/// A parameter whose value this kernel refuses.
fn of_no_value(machine: &MachineView, name: &str, value: &str) -> Result<Option<Idle>, Judgement> {
    let whole = format!("{name}={value}");
    let idle = |advice| Idle { word: truncate(&whole), advice, severity: Severity::Medium };
    if is_no_truth(machine, name, value)? {
        return Ok(Some(idle("not a boolean for this kernel: use on or off".to_owned())));
    }
    let Some((advice, is_near)) = idle_value(name, value) else { return Ok(None) };
    // A kernel newer than those looked at may have words of its own.
    let is_idle = is_near || machine.series()? <= LATEST;
    Ok(is_idle.then(|| idle(advice)))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    #[test]
    fn words_of_recipes_are_known() {
        check(&KNOB, "", "pass none known to be without effect");
        check(&KNOB, "cmdline + kthread-cpus=0-1", "fail info kthread_cpus");
        check(
            &KNOB,
            "cmdline + tsc=perfect\ncmdline + kthread_cpus=0",
            "fail medium tsc=perfect, kthread_cpus",
        );
        check(
            &KNOB,
            "cmdline + rcupdate.rcu_normal=1\ncmdline + idle=poll",
            "pass none known to be without \
                                                                              effect",
        );
        let near = "cmdline + intel_pstate=disabled\ncmdline + processor_idle.max_cstate=1\n\
                    cmdline + rcu.kthread_prio=80";
        let words = "intel_pstate=disabled, processor_idle.max_cstate, rcu.kthread_prio";
        check(&KNOB, near, &format!("fail medium {words}"));
        let mut machine = Machine::base();
        machine.edit(near);
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.contains("intel_pstate=disable;") && fix.contains("rcutree.kthread_prio"), "{fix}");
        let release = |number| format!("/proc/sys/kernel/osrelease: {number}\ncmdline + tsc=");
        check(&KNOB, &(release("7.9.1") + "exact"), "pass none known to be without effect");
        check(&KNOB, &(release("7.9.1") + "relable"), "fail medium tsc=relable");
        let strays = "cmdline + intel.max_cstate=0\ncmdline + art=virtallow";
        check(&KNOB, strays, "fail medium intel.max_cstate, art");
        // A line of a public report.
        check(
            &KNOB,
            "cmdline + noirqbalance\ncmdline + workqueue.cpumask=1\ncmdline + elevator=noop\n\
             cmdline + kthread_prio=5",
            "fail medium workqueue.cpumask, kthread_prio, noirqbalance, elevator",
        );
        for name in ["vm.swappiness", "net.core.busy_poll"] {
            check(&KNOB, &format!("cmdline + {name}=10"), &format!("fail medium {name}"));
        }
        for word in ["net.ifnames=0", "net.naming-scheme=v240"] {
            check(&KNOB, &format!("cmdline + {word}"), "pass none known to be without effect");
        }
        check(&KNOB, "cmdline + sysctl.vm.swappiness=10", "pass none known to be without effect");
    }

    #[test]
    fn words_are_held_against_the_build() {
        let huge = "cmdline + transparent_hugepage=never";
        check(&KNOB, huge, "fail info transparent_hugepage=never");
        let other = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\nCONFIG_PREEMPT_RT=n";
        check(&KNOB, &format!("{huge}\n{other}\nCONFIG_TRANSPARENT_HUGEPAGE=y"), "pass");
        check(&KNOB, &format!("{huge}\n{other}\nCONFIG_TRANSPARENT_HUGEPAGE=n"), "fail info");
        let normal = "cmdline + rcupdate.rcu_normal_after_boot=1\nCONFIG_NO_HZ_FULL";
        check(&KNOB, &format!("{normal}=y"), "pass");
        check(&KNOB, &format!("{normal}=n"), "fail info rcupdate.rcu_normal_after_boot=1");
        check(&KNOB, &format!("{normal}=n\n{other}"), "pass");
    }

    #[test]
    fn words_are_held_against_release_and_architecture() {
        // The well-set machine has a word of x86.
        let of = |arch: &str, release: &str, word: &str| {
            format!(
                "cmdline - tsc=nowatchdog\n/proc/sys/kernel/arch: {arch}\n\
                 /proc/sys/kernel/osrelease: {release}\ncmdline + {word}"
            )
        };
        let pass = "pass none known to be without effect";
        check(&KNOB, &of("x86_64", "6.12.9", "idle=poll"), pass);
        check(&KNOB, &of("riscv64", "6.12.9", "idle=poll"), "fail low idle=poll");
        check(&KNOB, &of("x86_64", "6.12.9", "nohlt"), "fail low nohlt");
        check(&KNOB, &of("aarch64", "6.12.9", "nohlt"), pass);
        check(&KNOB, &of("riscv64", "7.3.4", "idle=nop"), "fail low idle=nop");
        check(&KNOB, &of("aarch64", "7.3.4", "idle=nop"), pass);
        check(&KNOB, &of("aarch64", "6.12.9", "idle=yield"), "fail low idle=yield");
        check(&KNOB, &of("aarch64", "7.2.13", "idle=yield"), "fail low idle=yield");
        check(&KNOB, &of("aarch64", "7.3.4", "idle=wfi"), "pass");
        for word in ["tsc=reliable", "mce=off", "retbleed=off", "nopti", "i915.enable_dc=0"] {
            check(&KNOB, &of("aarch64", "6.12.9", word), "fail low");
            check(&KNOB, &of("x86_64", "6.12.9", word), "pass");
        }
        for word in ["kpti=off", "nospectre_bhb", "arm64.nomte", "irqchip.gicv3_pseudo_nmi=1"] {
            ["aarch64", "armv8l"].iter().for_each(|arch| check(&KNOB, &of(arch, "6.12.9", word), "pass"));
            check(&KNOB, &of("x86_64", "6.12.9", word), "fail low");
        }
        check(&KNOB, &of("riscv64", "6.12.9", "no_stf_barrier"), "fail low");
        check(&KNOB, &of("aarch64", "7.3.4", "tlbi=ipi"), "fail low tlbi");
        check(&KNOB, &of("x86_64", "7.3.4", "idle=wfi"), "fail low idle=wfi");
        check(&KNOB, &of("riscv64", "7.3.4", "idle=halt"), "fail low idle=halt");
        let gone = "rcupdate.rcu_task_ipi_delay=500";
        check(&KNOB, &of("x86_64", "6.12.9", gone), "pass");
        check(&KNOB, &of("x86_64", "7.2.13", gone), "fail low rcupdate.rcu_task_ipi_delay");
        check(&KNOB, &of("x86_64", "6.18.1", gone), "unknown");
        check(&KNOB, "cmdline + nohlt\n/proc/sys/kernel/arch refused", "unknown");
        check(&KNOB, "cmdline + nohlt\ncmdline + isolcpu=1\n/proc/sys/kernel/arch refused", "fail medium");
        check(&KNOB, &of("x86_64", "4.19.1", "elevator=noop"), pass);
        for (word, old, new) in [
            ("workqueue.unbound_cpus=0-1", "6.1.9", "6.6.9"),
            ("rcutree.enable_rcu_lazy=0", "6.8.9", "6.9.1"),
            ("slab_debug=FZ", "6.8.9", "6.9.1"),
            ("rcutree.nohz_full_patience_delay=1000", "6.1.9", "6.12.9"),
            ("rt_group_sched=0", "6.12.9", "6.16.1"),
            ("mitigations=auto,no_user_user", "6.1.9", "6.17.1"),
            ("check_pages=1", "6.12.9", "7.3.4"),
            ("mempool_debug", "7.2.9", "7.3.4"),
            ("page_table_check=on", "5.10.9", "5.17.1"),
            ("cpufreq.default_governor=performance", "5.4.9", "5.10.1"),
            ("damon_stat.enabled=N", "6.12.9", "7.3.4"),
            ("irqhandler.duration_warn_us=50", "6.12.9", "7.3.4"),
            ("sysctl.vm.swappiness=10", "5.4.9", "5.10.1"),
            ("tlbi=ipi", "6.12.9", "7.3.4"),
            ("tsc=nowatchdog", "4.19.9", "5.10.1"),
            ("tsc=recalibrate", "6.1.9", "6.12.9"),
            ("tsc=watchdog", "6.1.9", "6.12.9"),
            ("workqueue.disable_numa", "6.12.9", "6.1.9"),
        ] {
            let by_value = ["mitigations", "tsc"].iter().any(|name| word.starts_with(name));
            let text = if by_value { word } else { word.split('=').next().unwrap() };
            check(&KNOB, &of("x86_64", old, word), &format!("fail low {text}"));
            check(&KNOB, &of("x86_64", new, word), pass);
        }
        let vectors = "mitigations=auto,no_user_kernel";
        check(&KNOB, &of("aarch64", "6.17.1", vectors), &format!("fail low {vectors}"));
        check(
            &KNOB,
            &of("x86_64", "6.1.9", "rcutree.rcu_idle_gp_delay=1"),
            "fail low rcutree.rcu_idle_gp_delay",
        );
    }

    #[test]
    fn values_are_held_against_the_release() {
        let of =
            |release: &str, word: &str| format!("/proc/sys/kernel/osrelease: {release}\ncmdline + {word}");
        for (word, old, new) in [("highres=disable", "6.12.9", "7.3.4"), ("nohz=true", "5.10.9", "6.1.9")] {
            check(&KNOB, &of(old, word), &format!("fail medium {word}"));
            check(&KNOB, &of(new, word), "pass none known to be without effect");
        }
        check(&KNOB, &of("5.10.9", "psi=on"), "pass none known to be without effect");
        check(&KNOB, &of("6.12.9", "spectre_v2=none"), "fail medium spectre_v2=none");
        check(&KNOB, &of("6.12.9", "spectre_v2=eibrs,lfence"), "pass none known to be without effect");
        check(&KNOB, &of("6.1.9", "trace_instance=a"), "fail low trace_instance");
    }

    #[test]
    fn preempt_chooses_what_the_kernel_offers() {
        let of = |release: &str, version: &str, offered: &str, word: &str| {
            format!(
                "/proc/sys/kernel/osrelease: {release}\n/proc/sys/kernel/version: #1 SMP {version}\n\
                 /sys/kernel/realtime absent\n/sys/kernel/debug/sched/preempt{offered}\n\
                 cmdline - tsc=nowatchdog\ncmdline + preempt={word}"
            )
        };
        let pass = "pass none known to be without effect";
        let check = |edits: String, expected: &str| check(&KNOB, &edits, expected);
        check(of("7.3.4", "PREEMPT_DYNAMIC", ": full (lazy)", "voluntary"), "fail low preempt=voluntary");
        check(of("7.3.4", "PREEMPT_DYNAMIC", " absent", "none"), "fail low preempt=none");
        check(of("7.3.4", "PREEMPT_DYNAMIC", " absent", "full"), pass);
        check(of("6.12.9", "PREEMPT_DYNAMIC", ": none (voluntary) full", "none"), pass);
        check(of("6.12.9", "PREEMPT_DYNAMIC", ": none (voluntary) full", "lazy"), "fail low preempt=lazy");
        check(of("6.12.9", "PREEMPT_DYNAMIC", " refused", "lazy"), "fail low preempt=lazy");
        check(of("6.12.9", "PREEMPT_DYNAMIC", " refused", "rt"), "fail low preempt=rt");
        check(of("6.12.9", "PREEMPT_RT", " absent", "full"), "unknown");
        check(of("6.12.9", "PREEMPT_RT", " absent", "voluntary"), "fail low preempt=voluntary");
        check(of("6.8.0", "PREEMPT", " absent", "full"), "fail low preempt=full");
        check(of("5.15.0", "PREEMPT", " absent", "full"), pass);
        check(of("7.3.4\n/proc/sys/kernel/arch: loongarch64", "PREEMPT_DYNAMIC", " absent", "none"), pass);
    }

    #[test]
    fn the_kernels_log_decides_where_nothing_else_does() {
        let log = |words: &str| {
            format!(
                "/dev/kmsg: Unknown kernel command line parameters \"{words}\", will be passed to user space."
            )
        };
        let pass = "pass none known to be without effect";
        let known = format!("cmdline + kthread_cpus=0-1\n{}", log("BOOT_IMAGE=/vmlinuz"));
        check(&KNOB, &known, pass);
        let unknown = format!("cmdline + kthread_cpus=0-1\n{}", log("kthread_cpus=0-1"));
        check(&KNOB, &unknown, "fail info kthread_cpus");
        let model = |named: &str| {
            format!(
                "cmdline + preempt=full\n/proc/sys/kernel/version refused\n/sys/kernel/realtime absent\n\
                 /sys/kernel/debug/sched/preempt refused\n{}",
                log(named)
            )
        };
        check(&KNOB, &model("preempt=full"), "fail low preempt=full");
        check(&KNOB, &model("splash"), pass);
        let others = "cmdline + isolcpu_managed=2\ncmdline + splash\ncmdline + nohlt\n";
        let named = format!("{others}/proc/sys/kernel/arch refused\n{}", log("isolcpu_managed=2 splash"));
        check(&KNOB, &named, "fail low isolcpu_managed");
    }

    #[test]
    fn a_letter_too_many_is_seen() {
        check(&KNOB, "cmdline + isolcpu=2-3", "fail medium isolcpu");
        check(
            &KNOB,
            "cmdline + rcu_nocbs_poll\ncmdline + irq_affinity=0",
            "fail medium rcu_nocbs_poll, irq_affinity",
        );
        check(
            &KNOB,
            "cmdline + nohz=on\ncmdline + nosmt\ncmdline + debug\ncmdline + watchdog_thresh=0",
            "pass none known to be without effect",
        );
        let mut machine = Machine::base();
        machine.edit("cmdline + nohzfull=2-3");
        assert_eq!(machine.finding(&KNOB).fix, "nohzfull: probably meant to be nohz_full");
    }

    #[test]
    fn hostile_lines_stay_short() {
        let many: String =
            (0..200).map(|n| format!("cmdline + isolcpus{}=\n", (b'a' + n % 26) as char)).collect();
        check(&KNOB, &many, "fail medium");
        let mut machine = Machine::base();
        machine.edit(&many);
        let value = machine.finding(&KNOB).value;
        assert!(value.starts_with("isolcpusa, isolcpusb, ") && value.ends_with(" and 12 more"), "{value}");
    }
}
