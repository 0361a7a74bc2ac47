//! Idle states, and power management of devices and links.

use super::Control;
use super::accepted::Accepted;
use crate::knobs::sources::{ABI, CPUIDLE, DEVFREQ, PARAMETERS, RUNTIME_PM};
use model::setting::{Comparison, Risk};

pub(super) const ALL: &[Control] = &[
    Control {
        pattern: "/sys/devices/system/cpu/cpu#/power/pm_qos_resume_latency_us",
        readback: Comparison::Exact,
        accepts: Accepted::WordsOrNumber(&["n/a"], 0, i32::MAX as i64),
        reason: "n/a forbids any latency, 0 means no limit; both read back as written",
        source: ABI,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/devices/system/cpu/cpu#/cpuidle/state#/disable",
        reason: "of one CPU; a state that the driver switched off stays off",
        source: CPUIDLE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/class/devfreq/*/governor",
        readback: Comparison::Exact,
        accepts: Accepted::Name,
        risk: Risk::Medium,
        reason: "of one device",
        source: DEVFREQ,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/module/pcie_aspm/parameters/policy",
        readback: Comparison::Choice,
        accepts: Accepted::Words(&["default", "performance", "powersave", "powersupersave"]),
        risk: Risk::Medium,
        optional: true,
        reason: "the active one is in brackets; EPERM if the firmware controls the links",
        source: PARAMETERS,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/class/drm/card#/device/power/control",
        readback: Comparison::Exact,
        accepts: Accepted::Words(&["on", "auto"]),
        risk: Risk::Medium,
        reason: "of one device; `on` resumes it at once",
        source: RUNTIME_PM,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/bus/pci/devices/*/link/l0s_aspm",
        risk: Risk::Medium,
        reason: "of one link",
        source: ABI,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/bus/pci/devices/*/link/l1_aspm",
        risk: Risk::Medium,
        reason: "of one link",
        source: ABI,
        ..Control::DEFAULT
    },
];
