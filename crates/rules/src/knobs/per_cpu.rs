//! Per-CPU settings: those of the audited CPUs that are known, and those that are not.
//!
//! One bad CPU decides for all, even if others cannot be read; a pass requires every one of them.

use std::collections::BTreeMap;

use crate::judgement::Judgement;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::Fact;
use model::units::{Cpu, CpuSet};

/// A setting of the audited CPUs.
pub struct PerCpuSetting<T> {
    /// Known values.
    pub known: BTreeMap<Cpu, T>,
    /// The unknown judgement for the first that could not be read or parsed.
    failure: Option<Judgement>,
    /// CPUs without the file, and the pattern of the file.
    missing: (CpuSet, &'static str),
}

impl<T> PerCpuSetting<T> {
    /// Parses the texts of a pattern whose first wildcard is the CPU's number.
    pub fn of(
        machine: &MachineView,
        pattern: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> PerCpuSetting<T> {
        PerCpuSetting::among(machine, machine.cpus(), pattern, parse)
    }

    /// Like [`PerCpuSetting::of`], for CPUs other than the audited ones.
    pub fn among(
        machine: &MachineView,
        cpus: &CpuSet,
        pattern: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> PerCpuSetting<T> {
        let (mut known, mut failure, mut missing) = (BTreeMap::new(), None, cpus.clone());
        let texts = machine.texts(pattern).unwrap_or_else(|whole| {
            failure = Some(whole);
            &[]
        });
        for text in texts {
            let Some(cpu) = number(&text.names, 0).map(Cpu).filter(|&cpu| cpus.contains(cpu)) else {
                continue;
            };
            missing.0.remove(&cpu);
            match text.content.clone().parse(|content| parse(&content)) {
                Fact::Known(value) => drop(known.insert(cpu, value)),
                other => drop(failure.get_or_insert_with(|| unknown_from(&text.path, &other))),
            }
        }
        PerCpuSetting { known, failure, missing: (missing, pattern) }
    }

    /// True if no CPU has the file, as far as could be read.
    pub fn is_absent(&self) -> bool {
        self.known.is_empty() && self.failure.is_none()
    }

    /// Returns early unless the setting of every CPU is known.
    pub fn all_known(&self) -> Result<(), Judgement> {
        let (missing, pattern) = &self.missing;
        match &self.failure {
            Some(failure) => Err(failure.clone()),
            None if !missing.is_empty() => Err(Judgement::unknown(format!(
                "{} is missing for {}",
                pattern.replace('#', "N"),
                cpu_list(missing)
            ))),
            None => Ok(()),
        }
    }

    /// CPUs whose setting meets a condition.
    pub fn that(&self, is: impl Fn(&T) -> bool) -> CpuSet {
        self.known.iter().filter(|(_, value)| is(value)).map(|(&cpu, _)| cpu).collect()
    }
}

/// Values of which each audited CPU has several, by CPU and index: idle states, caches.
pub type Numbered<T> = BTreeMap<(Cpu, u32), Result<T, Judgement>>;

/// Parses the texts of a pattern whose wildcards are the CPU's number and an index.
pub fn numbered<T>(
    machine: &MachineView,
    pattern: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Numbered<T>, Judgement> {
    let mut found = BTreeMap::new();
    for text in machine.texts(pattern)? {
        let (Some(cpu), Some(own)) = (number(&text.names, 0).map(Cpu), number(&text.names, 1)) else {
            continue;
        };
        if machine.cpus().contains(cpu) {
            let value = match text.content.clone().parse(|content| parse(&content)) {
                Fact::Known(value) => Ok(value),
                other => Err(unknown_from(&text.path, &other)),
            };
            found.insert((cpu, own), value);
        }
    }
    Ok(found)
}

/// A number matched by a wildcard.
fn number(names: &[String], at: usize) -> Option<u32> {
    names.get(at)?.parse().ok()
}

/// A clock rate in kHz, in readable units: `2400 MHz`.
pub fn mhz(khz: u64) -> String {
    format!("{} MHz", khz / 1000)
}
