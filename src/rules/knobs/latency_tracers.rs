//! The tracers of sections without interrupts or preemption, built into the kernel.

use super::sources::{FTRACE, RT_CONFIG};
use crate::facts::line::parse_words;
use crate::rules::case::Case;
use crate::rules::judgement::{Judged, Judgement, Severity};
use crate::rules::{Evidence, Examples, Knob, Lasts, Slice, Source};

pub static KNOB: Knob = Knob {
    id: "latency-tracers",
    title: "irqsoff and preemptoff tracers",
    what: "IRQSOFF_TRACER and PREEMPT_TRACER put a hook where the kernel switches interrupts or preemption off and on again, \
           to find the longest such section. The other tracers do nothing while they are off; these hooks do.",
    why: "each switching of interrupts or preemption goes through a hook, even while nothing is traced",
    tell: "The kernel's configuration, or else the list of tracers in tracefs. Whether a tracer runs is the affair of the rule tracing-left-on.",
    cost: "Another kernel, and without them only guesses which section kept interrupts off: keep a kernel with them for the search. \
           `onbeat hunt` does without.",
    wanted: "not built in",
    fix: "boot a kernel built without CONFIG_IRQSOFF_TRACER and CONFIG_PREEMPT_TRACER",
    severity: Severity::High,
    evidence: Evidence::Documented,
    contested: "",
    lasts: Lasts::Build,
    sources: &[
        Source {
            title: "kernel: real-time kernel configuration, CONFIG_IRQSOFF_TRACER and CONFIG_PREEMPT_TRACER",
            url: RT_CONFIG,
        },
        Source { title: "kernel: ftrace, the tracers", url: FTRACE },
    ],
    cures: &[Slice::IrqsOff, Slice::PreemptOff],
    after: &[],
    conflicts: &[],
    reads: &[AVAILABLE],
    facts: &["/boot/config-RELEASE"],
    programs: &[],
    judge,
    examples: Examples {
        fires: "CONFIG_IRQSOFF_TRACER=y
                /sys/kernel/tracing/available_tracers: irqsoff nop",
        silent: "",
        unknown: "/boot refused
                  /sys/kernel/tracing refused",
    },
};

const AVAILABLE: &str = "/sys/kernel/tracing/available_tracers";

fn judge(case: &Case) -> Judged {
    let config = case.kconfig();
    let on: Vec<&str> = match &config {
        Ok(config) => {
            let built = ["IRQSOFF_TRACER", "PREEMPT_TRACER"];
            built.into_iter().filter(|name| config.is_yes(name)).collect()
        }
        // A kernel with tracefs lists all tracers that it was built with, nop at least.
        Err(unknown) => {
            let listed = case.parsed(AVAILABLE, parse_words).ok().flatten().filter(|all| !all.is_empty());
            let listed = listed.ok_or_else(|| unknown.clone())?;
            let has = |name: &str| listed.iter().any(|tracer| tracer == name);
            let built = [("irqsoff", "IRQSOFF_TRACER"), ("preemptoff", "PREEMPT_TRACER")];
            built.into_iter().filter(|(tracer, _)| has(tracer)).map(|(_, option)| option).collect()
        }
    };
    Ok(if on.is_empty() { Judgement::pass("none") } else { Judgement::fail(on.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::rules::fixture::check;

    #[test]
    fn the_configuration_or_the_list_of_tracers_decides() {
        check(&KNOB, "", "pass none");
        check(&KNOB, "CONFIG_PREEMPT_TRACER=y", "fail high PREEMPT_TRACER");
        let list = "/boot refused\n/sys/kernel/tracing/available_tracers:";
        check(
            &KNOB,
            &format!("{list} preemptirqsoff preemptoff irqsoff nop"),
            "fail high IRQSOFF_TRACER, PREEMPT_TRACER",
        );
        check(&KNOB, &format!("{list} hwlat nop"), "pass none");
        check(&KNOB, list, "unknown");
    }
}
