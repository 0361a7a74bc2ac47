//! Everything that an audit reads: the facts of every run, and what the rules request in addition.

use super::boot_texts::BootTexts;
use super::gather::gather_with;
use super::groups::{Groups, read_groups};
use super::irqs::{Irqs, read_irqs};
use super::kmsg::read_unknown_words;
use super::limits_conf::{LimitsConf, read_limits_conf};
use super::policy_rights::{PolicyRights, read_policy_rights};
use super::swaps::{Swaps, read_swaps};
use super::texts::{Texts, read_texts};
use super::threads::{Threads, read_threads};
use super::timer_list::{SWITCHES, may_read_switches, read_timer_resolution_ns, read_watchdog_timers};
use super::{Fact, Facts};
use host::MachineFiles;
use model::units::CpuSet;

/// Files and programs that the rules request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurveyRequest {
    /// Patterns as in [`super::texts`].
    pub texts: Vec<&'static str>,
    /// Names of programs, truncated to 15 bytes as in the kernel.
    pub programs: Vec<&'static str>,
}

/// A machine as the rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// True if only texts were read, and no running kernel.
    pub is_stopped: bool,
    /// Facts that every run reads.
    pub facts: Facts,
    /// Files of one setting each.
    pub texts: Texts,
    /// Interrupts with their handlers and CPUs.
    pub irqs: Fact<Irqs>,
    /// Kernel threads, real-time threads, and the requested programs that run.
    pub threads: Fact<Threads>,
    /// Control groups that decide about CPUs.
    pub groups: Fact<Groups>,
    /// Areas that memory is swapped to.
    pub swaps: Fact<Swaps>,
    /// Real-time priorities and locked memory that logins grant.
    pub limits_conf: Fact<LimitsConf>,
    /// Facts that decide whether a program in its control group may take a real-time policy.
    pub rights: PolicyRights,
    /// CPUs on which the timer of the lockup detectors is armed; absent if there was no need to
    /// look.
    pub watchdog_timers: Fact<CpuSet>,
    /// Resolution of timers in nanoseconds, by a copy of the list of timers.
    pub timer_resolution_ns: Fact<u64>,
    /// Names of the words of the command line that the kernel's log reports as unknown.
    pub unknown_words: Fact<Vec<String>>,
}

/// Reads all that an audit needs; never during a measurement.
pub fn survey(host: &MachineFiles, wanted: &SurveyRequest) -> Survey {
    survey_with(&BootTexts::default(), host, wanted)
}

/// Like [`survey`], with texts about the kernel from elsewhere.
pub fn survey_with(texts: &BootTexts, host: &MachineFiles, wanted: &SurveyRequest) -> Survey {
    survey_beyond(gather_with(host, texts), host, wanted)
}

/// Like [`survey`], for a machine whose facts were already read.
pub fn survey_beyond(facts: Facts, host: &MachineFiles, wanted: &SurveyRequest) -> Survey {
    let watchdog_timers = read_watchdog_timers(host);
    let switches = may_read_switches(host, &watchdog_timers);
    let texts = wanted.texts.iter().copied().filter(|text| switches || !SWITCHES.contains(text));
    Survey {
        is_stopped: host.is_stopped(),
        facts,
        texts: read_texts(host, texts),
        irqs: read_irqs(host),
        threads: read_threads(host, &wanted.programs),
        groups: read_groups(host),
        swaps: read_swaps(host),
        limits_conf: read_limits_conf(host),
        rights: read_policy_rights(host, "/proc/self"),
        watchdog_timers,
        timer_resolution_ns: read_timer_resolution_ns(host),
        unknown_words: read_unknown_words(host),
    }
}
