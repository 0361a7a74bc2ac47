//! Receive packet steering: the CPUs that process packets instead of the interrupted one.

use super::sources::{NET_SCALING, PER_CPU_KTHREADS};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::{cpu_list, cpu_mask, truncate_list};
use facts::Fact;
use facts::kconfig::OptionValue;
use facts::line::parse_mask;
use facts::texts::Text;
use model::slice::SliceKind;
use model::units::CpuSet;

pub static KNOB: Knob = Knob {
    id: "network-queues",
    title: "receive packet steering",
    description: "rps_cpus of a receive queue names the CPUs that take over packets from the interrupted \
                  CPU: each gets its share by an interrupt from that CPU, and processes it in a softirq, or \
                  in its backlog_napi thread. 0, the default, switches it off. New queues start with \
                  net.core.rps_default_mask, on kernels that have it.",
    rationale: "packets for other tasks reach the audited CPUs as interrupts and softirqs, at a rate that \
                the sender controls",
    detection: "The mask of each receive queue. xps_cpus is not judged: it only selects the send queue of a \
                CPU. A kernel booted with isolcpus= or nohz_full= removes their CPUs from a written mask; \
                partitions do not do that. Interfaces of other network namespaces are not seen.",
    side_effects: "Fewer CPUs receive: with a single fast interface this can reduce throughput.",
    wanted: "0, or none of the audited CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "echo 0 >/sys/class/net/NAME/queues/rx-N/rps_cpus for each, or the mask of the other \
             CPUs instead of 0",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: QUEUES,
    sources: &[
        Source { title: "kernel: scaling in the networking stack, RPS", url: NET_SCALING },
        Source { title: "kernel: OS jitter due to per-CPU kthreads, NET_RX_SOFTIRQ", url: PER_CPU_KTHREADS },
    ],
    cures: &[SliceKind::Softirq, SliceKind::Ipi],
    reads: &[QUEUES, INTERFACES],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/class/net/lo/queues/rx-0/rps_cpus: f",
        silent: "--cpus 2-3
                /sys/class/net/lo/queues/rx-0/rps_cpus: 3",
        unknown: "--cpus 2-3
                /sys/class/net/lo/queues/rx-0/rps_cpus refused",
    },
    ..Knob::DEFAULT
};

const QUEUES: &str = "/sys/class/net/*/queues/rx-#/rps_cpus";
const INTERFACES: &str = "/sys/class/net/";
const ANY_QUEUE: &str = "rps_cpus of any queue below /sys/class/net";

fn without_steering() -> Judgement {
    Judgement::not_applicable("this kernel has no packet steering (CONFIG_RPS is not set)")
}

/// Stops steering packets, or steers them among the other CPUs.
fn steered(machine: &MachineView, queues: &[&Text], names: &str) -> Result<Remedy, Judgement> {
    let to = |mask: &str| {
        let paths = queues.iter().map(|text| text.path.clone()).collect();
        Change::each(paths, "/sys/class/net/NAME/queues/rx-N/rps_cpus", names, mask)
    };
    Ok(Remedy::from(to("0")).or(to(&cpu_mask(&machine.housekeeping_cpus()?))))
}

fn mask_of(text: &Text) -> Option<CpuSet> {
    text.content.clone().parse(|content| parse_mask(&content)).known().cloned()
}

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let queues = machine.texts(QUEUES)?;
    if queues.is_empty() {
        let option = machine.kconfig().map(|config| config.get("RPS"));
        return Err(match (option, machine.survey.texts.one(INTERFACES)) {
            (Ok(OptionValue::No), _) => without_steering(),
            (Ok(OptionValue::Yes), _) => unknown_absent(ANY_QUEUE),
            (_, Fact::Known(names)) if !names.is_empty() => without_steering(),
            _ => unknown_absent(ANY_QUEUE),
        });
    }
    let cpus = machine.cpus();
    let touching =
        queues.iter().filter(|text| mask_of(text).is_some_and(|steered| !steered.and(cpus).is_empty()));
    let touching: Vec<_> = touching.collect();
    let reached = touching.iter().filter_map(|text| mask_of(text));
    let reached: CpuSet = reached.flat_map(|steered| steered.and(cpus).0).collect();
    let names = truncate_list(touching.iter().map(|text| text.names.join(" rx-")));
    if !names.is_empty() {
        return Ok(Judgement::fail(format!("{names} to {}", cpu_list(&reached)))
            .fix(steered(machine, &touching, &names)?));
    }
    machine.each(QUEUES, parse_mask)?;
    Ok(Judgement::pass(format!("none to {}", cpu_list(cpus))))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    #[test]
    fn each_queue_counts() {
        check(&KNOB, "", "pass none to CPUs 2-3");
        check(&KNOB, "/sys/class/net/eth0/queues/rx-0/rps_cpus: 00000000,00000003", "pass");
        let two = "/sys/class/net/eth0/queues/rx-0/rps_cpus: 8\n\
                   /sys/class/net/eth0/queues/rx-10/rps_cpus: f";
        check(&KNOB, two, "fail medium eth0 rx-0, eth0 rx-10 to CPUs 2-3");
        check(&KNOB, "/sys/class/net/eth0/queues/rx-0/rps_cpus: 4", "fail medium eth0 rx-0 to CPU 2");
        check(&KNOB, &format!("{two}\n/sys/class/net/lo/queues/rx-0/rps_cpus refused"), "fail medium");
        check(&KNOB, "/sys/class/net/lo/queues/rx-0/rps_cpus: x", "unknown");
        // A masked name cannot be typed in.
        let fix = |name: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("/sys/class/net/{name}/queues/rx-0/rps_cpus: 8"));
            machine.finding(&KNOB).fix
        };
        assert!(fix("enx-address-1").contains("`ip link` shows") && !fix("eth0").contains("ip link"));
        let none = "/sys/class/net/lo/queues absent\n/sys/class/net/eth0/queues absent\n\
                    /sys/class/net/lo/mtu: 1";
        let without = "not-applicable this kernel has no packet steering (CONFIG_RPS is not set)";
        for edits in ["/boot refused", "CONFIG_RPS=n"] {
            check(&KNOB, &format!("{none}\n{edits}"), without);
        }
        check(&KNOB, &format!("{none}\nCONFIG_RPS=y"), "unknown");
        check(&KNOB, "/sys/class/net absent", "unknown");
    }
}
