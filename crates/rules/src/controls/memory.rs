//! `vm.*` sysctls and other settings of memory.

use super::Control;
use super::accepted::Accepted;
use crate::knobs::sources::{DAMON_STAT, KFENCE, KSM, OVERCOMMIT, SYSCTL_VM, TRANSPARENT_HUGEPAGES};
use model::setting::{Comparison, Risk};

/// A sysctl of `vm`.
const VM: Control =
    Control { accepts: Accepted::Number(0, i32::MAX as i64), source: SYSCTL_VM, ..Control::DEFAULT };

/// One of a pair of sysctls; writing it sets the other to 0.
const PAIRED: Control = Control {
    accepts: Accepted::Number(1, i64::MAX),
    risk: Risk::Medium,
    reason: "of the two files the one that was not written last is 0; writing 0 here is refused (EINVAL) or \
             has no effect: write the other one to restore it",
    ..VM
};

pub(super) const ALL: &[Control] = &[
    Control {
        pattern: "/proc/sys/vm/stat_interval",
        accepts: Accepted::Number(0, 2_000_000),
        reason: "seconds, stored in jiffies, which limits the range; 0 is accepted",
        ..VM
    },
    Control {
        pattern: "/proc/sys/vm/swappiness",
        accepts: Accepted::Number(0, 200),
        reason: "above 100 since 5.8",
        ..VM
    },
    Control { pattern: "/proc/sys/vm/laptop_mode", reason: "seconds", ..VM },
    Control {
        pattern: "/proc/sys/vm/dirty_writeback_centisecs",
        reason: "0 switches periodic writeback off",
        ..VM
    },
    Control {
        pattern: "/proc/sys/vm/dirty_expire_centisecs",
        reason: "the age from which data is written back",
        ..VM
    },
    Control {
        pattern: "/proc/sys/vm/dirty_bytes",
        accepts: Accepted::Number(8192, i64::MAX),
        partners: &["/proc/sys/vm/dirty_ratio"],
        ..PAIRED
    },
    Control {
        pattern: "/proc/sys/vm/dirty_ratio",
        accepts: Accepted::Number(0, 100),
        partners: &["/proc/sys/vm/dirty_bytes"],
        ..PAIRED
    },
    Control {
        pattern: "/proc/sys/vm/dirty_background_bytes",
        partners: &["/proc/sys/vm/dirty_background_ratio"],
        ..PAIRED
    },
    Control {
        pattern: "/proc/sys/vm/dirty_background_ratio",
        accepts: Accepted::Number(0, 100),
        partners: &["/proc/sys/vm/dirty_background_bytes"],
        ..PAIRED
    },
    Control {
        pattern: "/proc/sys/vm/overcommit_memory",
        accepts: Accepted::Number(0, 2),
        gives_up: &["2"],
        reason: "with 2, programs are refused memory that they do not need yet",
        source: OVERCOMMIT,
        ..VM
    },
    Control {
        pattern: "/proc/sys/vm/overcommit_ratio",
        accepts: Accepted::Number(0, i32::MAX as i64),
        partners: &["/proc/sys/vm/overcommit_kbytes"],
        source: OVERCOMMIT,
        ..PAIRED
    },
    Control {
        pattern: "/proc/sys/vm/overcommit_kbytes",
        partners: &["/proc/sys/vm/overcommit_ratio"],
        source: OVERCOMMIT,
        ..PAIRED
    },
    Control {
        pattern: "/proc/sys/vm/compact_unevictable_allowed",
        accepts: Accepted::SWITCH,
        reason: "2 is EINVAL",
        ..VM
    },
    Control {
        pattern: "/proc/sys/vm/compaction_proactiveness",
        accepts: Accepted::Number(0, 100),
        reason: "101 is EINVAL",
        ..VM
    },
    Control {
        pattern: "/proc/sys/vm/zone_reclaim_mode",
        accepts: Accepted::Number(0, 7),
        reason: "three bits",
        ..VM
    },
    Control {
        pattern: "/sys/kernel/mm/ksm/run",
        accepts: Accepted::Number(0, 2),
        risk: Risk::Medium,
        reason: "with 2, shared pages are copied, which needs memory; after a restore they are merged again \
                 over time",
        source: KSM,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/mm/transparent_hugepage/enabled",
        readback: Comparison::Choice,
        accepts: Accepted::Words(&["always", "madvise", "never"]),
        risk: Risk::Medium,
        reason: "does not change memory that programs already have; absent on PREEMPT_RT",
        source: TRANSPARENT_HUGEPAGES,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/module/kfence/parameters/sample_interval",
        accepts: Accepted::Number(0, i64::MAX),
        reason: "milliseconds; if the kernel was booted with 0, it can be switched on from 5.17 on",
        source: KFENCE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/module/damon_stat/parameters/enabled",
        readback: Comparison::Exact,
        accepts: Accepted::Words(&["N", "Y"]),
        reason: "stops or starts its thread; EINVAL if memory cannot be monitored",
        source: DAMON_STAT,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/module/damon_reclaim/parameters/enabled",
        readback: Comparison::Exact,
        accepts: Accepted::Words(&["N", "Y"]),
        reason: "reclaims memory that was not used for a long time",
        source: DAMON_STAT,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/module/damon_lru_sort/parameters/enabled",
        readback: Comparison::Exact,
        accepts: Accepted::Words(&["N", "Y"]),
        reason: "sorts the reclaim lists",
        source: DAMON_STAT,
        ..Control::DEFAULT
    },
];
