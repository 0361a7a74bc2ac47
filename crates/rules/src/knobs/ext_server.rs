//! The ext server: time that tasks of a BPF scheduler may take from real-time ones.

use super::fair_server::unthrottled;
use super::per_cpu::PerCpuSetting;
use super::sources::{DEADLINE, SCHED_DEBUG_C, SCHED_EXT};
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{cpu_list, group_by_value};
use facts::line::{parse_u64, parse_word};
use model::slice::SliceKind;
use model::units::Nanos;

pub static KNOB: Knob = Knob {
    id: "ext-server",
    title: "ext server",
    description: "From 7.0 on each CPU of a kernel with SCHED_CLASS_EXT has a second deadline server next to \
                  the fair server. It runs the tasks of a BPF scheduler ahead of real-time tasks when these \
                  leave no time: 50 ms in each second by default. It starts with the first such task on a \
                  CPU, so without a BPF scheduler it never runs.",
    rationale: "a BPF scheduler takes over the ordinary tasks; if they starve because of a real-time task, \
                this server takes up to its runtime from that task in one piece, even if the fair server is \
                off",
    detection: "The runtime of each audited CPU, in debugfs, which needs root, while \
                /sys/kernel/sched_ext/state shows that a BPF scheduler is loaded. Whether the program places \
                tasks on these CPUs is not known; the server costs nothing as long as the real-time tasks of \
                a CPU leave the others some time.",
    side_effects: "With 0 the tasks of a BPF scheduler can starve on a CPU with a real-time task that never \
                   sleeps; the kernel then ejects the BPF scheduler as stalled. Lowering it follows the same \
                   admission test as the fair server: 7.2 and 7.3 accept it at once.",
    wanted: "0 on CPUs with real-time tasks that hardly sleep, or no BPF scheduler",
    fix: Remedy::default,
    severity: Severity::High,
    evidence: EvidenceKind::Source,
    disputed: "the server also gives time to kernel threads of ordinary priority on a CPU with a busy \
               real-time task: `onbeat measure -D 1h` with and without it shows whether it ever ran",
    persistence: Persistence::Runtime,
    sets: RUNTIME,
    sources: &[
        Source {
            title: "kernel: extensible scheduler class, switching to and from sched_ext",
            url: SCHED_EXT,
        },
        Source { title: "kernel: kernel/sched/debug.c, the files of the servers", url: SCHED_DEBUG_C },
        Source { title: "kernel: deadline scheduling, bandwidth management", url: DEADLINE },
    ],
    cures: &[SliceKind::FairServer],
    after: &["rt-throttling"],
    reads: &[STATE, RUNTIME, PERIOD],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/osrelease"],
    judge,
    examples: Examples {
        fires: "/sys/kernel/sched_ext/state: enabled
                /sys/kernel/debug/sched/ext_server/cpu2/runtime: 50000000
                /sys/kernel/debug/sched/ext_server/cpu2/period: 1000000000
                /sys/kernel/debug/sched/ext_server/cpu3/runtime: 0",
        silent: "/sys/kernel/sched_ext/state: enabled
                 /sys/kernel/debug/sched/ext_server/cpu2/runtime: 0
                 /sys/kernel/debug/sched/ext_server/cpu3/runtime: 0",
        unknown: "/sys/kernel/sched_ext/state: enabled
                  /sys/kernel/debug/sched/ext_server refused",
    },
    ..Knob::DEFAULT
};

const STATE: &str = "/sys/kernel/sched_ext/state";
const RUNTIME: &str = "/sys/kernel/debug/sched/ext_server/cpu#/runtime";
const PERIOD: &str = "/sys/kernel/debug/sched/ext_server/cpu#/period";

/// First series that has it.
const SINCE: (u32, u32) = (7, 0);

fn judge(machine: &MachineView) -> Judged {
    match machine.parsed(STATE, parse_word)?.as_deref() {
        Some("disabled") => return Err(Judgement::not_applicable("no BPF scheduler is loaded")),
        Some("enabled" | "enabling" | "disabling") => {}
        Some(_) => {
            return Err(Judgement::unknown(format!("{STATE} holds an unknown state")));
        }
        None => return Err(without_schedulers(machine)),
    }
    let runtimes = PerCpuSetting::of(machine, RUNTIME, parse_u64);
    if runtimes.is_absent() {
        return Err(if machine.series()? < SINCE {
            Judgement::not_applicable("kernels before 7.0 do not have it")
        } else {
            Judgement::unknown(
                "/sys/kernel/debug/sched/ext_server is missing: mount -t debugfs none /sys/kernel/debug",
            )
        });
    }
    let on = runtimes.that(|&runtime| runtime > 0);
    if on.is_empty() {
        runtimes.all_known()?;
        return Ok(Judgement::pass(format!("0 on {}", cpu_list(machine.cpus()))));
    }
    // A period only sets the frequency: without it the server runs anyway.
    let periods = PerCpuSetting::of(machine, PERIOD, parse_u64);
    let span = |ns: u64| Nanos(i64::try_from(ns).unwrap_or(i64::MAX)).spaced();
    let budgets = runtimes.known.iter().filter(|&(_, &runtime)| runtime > 0).map(|(&cpu, &runtime)| {
        let of = periods.known.get(&cpu).map(|&period| format!(" of {}", span(period)));
        (cpu, span(runtime) + &of.unwrap_or_default())
    });
    let loops = machine.has_profile(Profile::ControlLoop) || machine.has_profile(Profile::Audio);
    let severity = if loops { Severity::Medium } else { Severity::High };
    Ok(Judgement::fail(group_by_value(budgets)).severity(severity).fix(
        Remedy::advice(AdviceReason::Program, "end the BPF scheduler")
            .or(unthrottled(machine).and(Change::each_cpu(RUNTIME, &on, 0))),
    ))
}

/// Judgement without a state of BPF schedulers.
fn without_schedulers(machine: &MachineView) -> Judgement {
    match (machine.kconfig().map(|config| config.is_yes("SCHED_CLASS_EXT")), machine.series()) {
        (_, Ok(series)) if series < SINCE => Judgement::not_applicable("kernels before 7.0 do not have it"),
        (Ok(true), _) => {
            Judgement::unknown(format!("{STATE} is missing, although the kernel has SCHED_CLASS_EXT"))
        }
        (Ok(false), _) => Judgement::not_applicable("the kernel has no SCHED_CLASS_EXT"),
        (Err(unknown), _) => unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const OFF: &str = KNOB.examples.silent;
    const NEW: &str = "/proc/sys/kernel/osrelease: 7.0.1";

    #[test]
    fn a_server_that_is_on_counts_where_tasks_of_a_bpf_scheduler_can_be() {
        check(&KNOB, OFF, "pass 0 on CPUs 2-3");
        check(&KNOB, KNOB.examples.fires, "fail medium 50 ms of 1 s on CPU 2");
        check(
            &KNOB,
            &format!(
                "{OFF}\n/sys/kernel/debug/sched/ext_server/cpu3/runtime: 25000000\n--profile \
                 busy-poll"
            ),
            "fail high 25 ms on CPU 3",
        );
        check(
            &KNOB,
            &format!("{}\n/sys/kernel/sched_ext/state: disabled", KNOB.examples.fires),
            "not-applicable no BPF scheduler is loaded",
        );
        check(&KNOB, &format!("{OFF}\n/sys/kernel/debug/sched/ext_server/cpu0/runtime: 50000000"), "pass");
    }

    #[test]
    fn a_pass_takes_the_runtime_of_each_cpu() {
        check(&KNOB, &format!("{OFF}\n/sys/kernel/debug/sched/ext_server/cpu3 absent"), "unknown");
        check(&KNOB, &format!("{OFF}\n/sys/kernel/debug/sched/ext_server/cpu3/runtime refused"), "unknown");
        check(&KNOB, &format!("{OFF}\n/sys/kernel/debug/sched/ext_server/cpu3/runtime: -1"), "unknown");
        check(&KNOB, &format!("{OFF}\n/sys/kernel/sched_ext/state: bypassed"), "unknown");
    }

    #[test]
    fn old_kernels_have_none() {
        let loaded = "/sys/kernel/sched_ext/state: enabled";
        check(&KNOB, "", "not-applicable kernels before 7.0 do not have it");
        check(&KNOB, loaded, "not-applicable kernels before 7.0 do not have it");
        check(
            &KNOB,
            &format!("{NEW}\n{loaded}"),
            "unknown /sys/kernel/debug/sched/ext_server is missing: mount -t debugfs none /sys/kernel/debug",
        );
        check(
            &KNOB,
            &format!(
                "{NEW}\n/boot/config-7.0.1:\n| # Automatically generated\n| \
                 CONFIG_SCHED_CLASS_EXT=y\n| # Kernel hacking"
            ),
            "unknown",
        );
        check(
            &KNOB,
            &format!(
                "{NEW}\n/boot/config-7.0.1:\n| # Automatically generated\n| # \
                 CONFIG_SCHED_CLASS_EXT is not set\n| # Kernel hacking"
            ),
            "not-applicable the kernel has no SCHED_CLASS_EXT",
        );
        check(&KNOB, &format!("{NEW}\n/boot refused"), "unknown");
    }
}
