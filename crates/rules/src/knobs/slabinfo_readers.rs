//! Reading /proc/slabinfo: a long traversal under the allocator's locks.

use super::sources::{RT_DIFFERENCES, SLUB_SOURCE};
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::competing_tuners;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate_words;
use model::slice::SliceKind;
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "slabinfo-readers",
    title: "/proc/slabinfo",
    description: "SLUB_DEBUG, on in nearly every kernel, provides /proc/slabinfo. Each read makes the kernel \
                  count the free objects of every slab cache, one list after the other, under the lock that \
                  allocations of that cache need.",
    rationale: "each list is walked under its lock: with interrupts off on an ordinary kernel; on PREEMPT_RT \
                a task that allocates from that list waits until the walk ends",
    detection: "Whether the kernel has the file, from its configuration, and whether slabtop or Netdata's \
                slabinfo.plugin runs. The file is not read, because reading it is the problem. Occasional \
                readers, such as vmstat -m, are not seen, nor are agents such as Telegraf that read it only \
                if configured so. From 6.10 on the walk of one list ends after 10,000 slabs.",
    side_effects: "A kernel without SLUB_DEBUG has no slab_debug= to find memory corruption. Without readers \
                   only their figures are lost; the sums in /proc/meminfo remain.",
    wanted: "no reader while the real-time task runs",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "end it, or switch the plugin off (slabinfo = no in netdata.conf); only root can read \
             the file; in a product, build without CONFIG_SLUB_DEBUG",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Source,
    disputed: "with few slabs in a list the walk is short: `onbeat measure` while a shell reads \
               /proc/slabinfo in a loop shows what it costs here",
    persistence: Persistence::Runtime,
    unsettable: unsettable::PROGRAM,
    sources: &[
        Source {
            title: "kernel: mm/slub.c, get_slabinfo() and count_partial_free_approx()",
            url: SLUB_SOURCE,
        },
        Source { title: "kernel: how realtime kernels differ, locking", url: RT_DIFFERENCES },
        Source { title: "slabtop(1), files", url: "https://man7.org/linux/man-pages/man1/slabtop.1.html" },
        Source {
            title: "Netdata: slabinfo.plugin",
            url: "https://learn.netdata.cloud/docs/agent/collectors/slabinfo.plugin/",
        },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::LockContention],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/version", "/proc/PID/stat"],
    programs: PROGRAMS,
    judge,
    examples: Examples {
        fires: "CONFIG_SLUB_DEBUG=y\nprogram + slabtop",
        silent: "CONFIG_SLUB_DEBUG=y",
        unknown: "/proc refused",
    },
    ..Knob::DEFAULT
};

/// Programs that read it repeatedly while they run.
const PROGRAMS: &[&str] = &["slabinfo.plugin", "slabtop"];

fn judge(machine: &MachineView) -> Judged {
    if let Ok(config) = machine.kconfig() {
        // Before 6.8 a kernel could have the SLAB allocator instead, whose file is there without
        // the option, and whose lists count themselves (get_slabinfo() in mm/slab.c of 6.1).
        if config.is_yes("SLAB") && !config.is_yes("SLUB") {
            return Err(Judgement::not_applicable(
                "only SLUB has this walk; this kernel has the SLAB allocator",
            ));
        }
        if !config.is_yes("SLUB_DEBUG") {
            return Ok(Judgement::pass("no /proc/slabinfo"));
        }
    }
    let readers = competing_tuners::running_programs(machine.survey, PROGRAMS);
    if readers.found.is_empty() {
        readers.and_no_more()?;
        return Ok(Judgement::pass("neither slabtop nor slabinfo.plugin runs"));
    }
    let severity = if machine.facts().preempt == Preempt::Rt { Severity::Low } else { Severity::Medium };
    Ok(Judgement::fail(format!("read by {}", truncate_words(&readers.found))).severity(severity))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const READ: &str = "CONFIG_SLUB_DEBUG=y\nprogram + slabtop";

    #[test]
    fn it_is_worse_where_interrupts_are_off() {
        check(&KNOB, "", "pass no /proc/slabinfo");
        check(&KNOB, "CONFIG_SLUB_DEBUG=y", "pass neither slabtop nor slabinfo.plugin runs");
        check(&KNOB, READ, "fail low read by slabtop");
        check(
            &KNOB,
            &format!(
                "{READ}\nprogram + slabinfo.plugin\nCONFIG_PREEMPT_RT=n\n\
                 /proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC"
            ),
            "fail medium read by slabinfo.plugin, slabtop",
        );
        check(&KNOB, "CONFIG_SLAB=y\nprogram + slabtop", "not-applicable");
    }

    #[test]
    fn a_reader_needs_a_file_and_a_pass_needs_all_processes() {
        check(&KNOB, "program + slabtop", "pass no /proc/slabinfo");
        check(&KNOB, "program + slabtop\n/boot refused", "fail low");
        check(&KNOB, "/boot refused", "pass neither slabtop nor slabinfo.plugin runs");
        check(&KNOB, "CONFIG_SLUB_DEBUG=y\n/proc/1/stat refused", "unknown");
    }
}
