//! Reading /proc/slabinfo: a long walk under the allocator's locks.

use super::sources::{RT_DIFFERENCES, SLUB_SOURCE};
use crate::facts::preempt::Preempt;
use crate::rules::case::Case;
use crate::rules::judgement::{Judged, Judgement, Severity};
use crate::rules::{Evidence, Examples, Knob, Lasts, Slice, Source};

pub static KNOB: Knob = Knob {
    id: "slabinfo-readers",
    title: "/proc/slabinfo",
    what: "SLUB_DEBUG, on in nearly every kernel, brings /proc/slabinfo. Whoever reads it makes the kernel count the free objects of every \
           slab cache, one list after the other, each under the lock that allocations of that cache need.",
    why: "each list is walked under its lock: with interrupts off on an ordinary kernel; on PREEMPT_RT a task whose allocation needs that list waits for the walk to end",
    tell: "Whether the kernel has the file, from its configuration. The file is not read, for reading it is the trouble, \
           and who reads it is not seen: slabtop, vmstat -m, and monitoring agents with a plugin for slabs do. \
           From some version on, 6.12 at the latest, a walk ends after 10,000 slabs.",
    cost: "A kernel without SLUB_DEBUG has no slab_debug= to find memory corruption with. Keeping readers away costs nothing but their \
           figures; the sums in /proc/meminfo remain.",
    wanted: "no reader while it matters",
    fix: "keep slabtop and the slab plugins of monitoring agents off while it matters (only root can read the file); in a product, build without CONFIG_SLUB_DEBUG",
    severity: Severity::Low,
    evidence: Evidence::Source,
    contested: "with few slabs in a list the walk is short: `onbeat measure` while a shell reads /proc/slabinfo in a loop tells what it costs here",
    lasts: Lasts::Build,
    sources: &[
        Source {
            title: "kernel: mm/slub.c, get_slabinfo() and count_partial_free_approx()",
            url: SLUB_SOURCE,
        },
        Source { title: "kernel: how realtime kernels differ, locking", url: RT_DIFFERENCES },
    ],
    cures: &[Slice::IrqsOff, Slice::LockContention],
    after: &[],
    conflicts: &[],
    reads: &[],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/version"],
    programs: &[],
    judge,
    examples: Examples {
        fires: "CONFIG_SLUB_DEBUG=y",
        silent: "CONFIG_SLUB_DEBUG=n",
        unknown: "/boot refused",
    },
};

fn judge(case: &Case) -> Judged {
    let config = case.kconfig()?;
    // Before 6.8 a kernel could have the SLAB allocator instead, whose file is there without the option.
    if config.is_yes("SLAB") && !config.is_yes("SLUB") {
        return Err(Judgement::not_applicable("this kernel has the SLAB allocator, which 6.8 removed"));
    }
    if !config.is_yes("SLUB_DEBUG") {
        return Ok(Judgement::pass("no /proc/slabinfo"));
    }
    let severity = if case.facts().preempt == Preempt::Rt { Severity::Info } else { Severity::Low };
    Ok(Judgement::fail("/proc/slabinfo can be read").severity(severity))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::rules::fixture::check;

    #[test]
    fn it_is_worse_where_interrupts_are_off() {
        check(&KNOB, "", "pass no /proc/slabinfo");
        check(&KNOB, "CONFIG_SLUB_DEBUG=y", "fail info /proc/slabinfo can be read");
        check(
            &KNOB,
            "CONFIG_SLUB_DEBUG=y\nCONFIG_PREEMPT_RT=n\n/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC",
            "fail low /proc/slabinfo can be read",
        );
        check(&KNOB, "CONFIG_SLAB=y", "not-applicable");
    }
}
