//! CPUs: on and off, frequency, and error reporting.

use super::Control;
use super::accepted::Accepted;
use crate::knobs::sources::{ABI, CPUFREQ, INTEL_PSTATE, SYSFS_MCE};
use model::setting::{Comparison, Risk};

/// A file of a frequency policy, which several CPUs can share.
const POLICY: Control = Control {
    accepts: Accepted::Number(1, i64::MAX),
    reason: "shared by the CPUs of a policy: a value set for one of them appears for all",
    source: CPUFREQ,
    ..Control::DEFAULT
};

pub(super) const ALL: &[Control] = &[
    Control {
        pattern: "/sys/devices/system/cpu/cpu#/online",
        gives_up: &["0"],
        moves_threads: true,
        reason: "threads and interrupts move to other CPUs; those that may run nowhere else lose their \
                 masks; on most machines the boot CPU has no such file",
        source: ABI,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/devices/system/cpu/cpu#/cpufreq/scaling_governor",
        readback: Comparison::Exact,
        accepts: Accepted::Name,
        risk: Risk::Medium,
        ..POLICY
    },
    Control {
        pattern: "/sys/devices/system/cpu/cpu#/cpufreq/scaling_min_freq",
        risk: Risk::Medium,
        ..POLICY
    },
    Control {
        pattern: "/sys/devices/system/cpu/cpu#/cpufreq/scaling_max_freq",
        risk: Risk::Medium,
        ..POLICY
    },
    Control {
        pattern: "/sys/devices/system/cpu/cpu#/cpufreq/auto_select",
        reason: "of one policy (cppc_cpufreq)",
        source: ABI,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/devices/system/cpu/cpufreq/boost",
        risk: Risk::Medium,
        reason: "for all CPUs",
        source: CPUFREQ,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/devices/system/cpu/intel_pstate/no_turbo",
        risk: Risk::Medium,
        reason: "for all CPUs; EPERM where the firmware switched turbo off",
        source: INTEL_PSTATE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/devices/system/machinecheck/machinecheck#/check_interval",
        accepts: Accepted::Number(0, i32::MAX as i64),
        risk: Risk::Medium,
        reason: "one file per CPU, and each of them sets all CPUs; corrected errors may be missed",
        source: SYSFS_MCE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/devices/system/machinecheck/machinecheck#/ignore_ce",
        risk: Risk::Medium,
        reason: "one file per CPU, and each of them sets all CPUs",
        source: SYSFS_MCE,
        ..Control::DEFAULT
    },
];
