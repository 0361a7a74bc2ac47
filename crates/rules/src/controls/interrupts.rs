//! Affinity of interrupts and unbound work.

use super::Control;
use super::accepted::Accepted;
use crate::knobs::sources::{IRQ_AFFINITY, WORKQUEUE};
use model::setting::{Comparison, Risk};

pub(super) const ALL: &[Control] = &[
    Control {
        pattern: "/proc/irq/#/smp_affinity_list",
        readback: Comparison::Pending,
        accepts: Accepted::Cpus,
        risk: Risk::Medium,
        optional: true,
        restored_first: &["/proc/irq/#/effective_affinity_list"],
        reason: "takes effect at the next interrupt, and does not move it if the new list contains its CPU; \
                 for interrupts that the kernel itself spreads, writes fail (EPERM, EIO on 6.1); their names \
                 or debugfs show which these are, but not always",
        source: IRQ_AFFINITY,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/irq/default_smp_affinity",
        readback: Comparison::Mask,
        accepts: Accepted::Mask,
        reason: "for interrupts that are requested from then on; 0 is EINVAL",
        source: IRQ_AFFINITY,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/devices/virtual/workqueue/cpumask",
        readback: Comparison::Mask,
        accepts: Accepted::Mask,
        risk: Risk::Medium,
        reason: "over all unbound workqueues; 0 is EINVAL, and an isolated partition changes it from 6.8 on",
        source: WORKQUEUE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/devices/virtual/workqueue/*/cpumask",
        readback: Comparison::Mask,
        accepts: Accepted::Mask,
        risk: Risk::Medium,
        reason: "of one unbound workqueue, within that over all",
        source: WORKQUEUE,
        ..Control::DEFAULT
    },
];
