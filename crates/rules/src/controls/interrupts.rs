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
        reason: "an interrupt goes elsewhere with its next one, and stays where it is if a new list has \
                 that CPU; those that the kernel spreads itself are \
                 refused (EPERM, EIO on 6.1), which shows by their names or debugfs, and not always",
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
