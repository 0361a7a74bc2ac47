//! Options of `[cpu]`: files of each CPU of the section, and of the P-state drivers.

use std::collections::BTreeSet;

use glob::Pattern;
use model::setting::Key;
use model::text::quoted_value;

use super::functions::FailedAssertion;
use super::option::{OptionTrouble, TunedOption, name_trouble};
use super::unit::TunedUnit;
use super::values::Values;
use crate::import::Collected;

const CPUS: &str = "/sys/devices/system/cpu";
const PSTATE: &str = "/sys/devices/system/cpu/intel_pstate";

/// Words that `energy_perf_bias` accepts besides numbers (arch/x86/kernel/cpu/intel_epb.c).
const BIASES: &[&str] = &["performance", "balance-performance", "normal", "balance-power", "power"];

/// Selection of a value from the offer of a file.
type CpuChoice = dyn Fn(&TunedOption, &str) -> Result<Option<String>, OptionTrouble>;

/// CPUs of the earlier sections, and true if there was any section.
#[derive(Default)]
pub struct ClaimedCpus {
    cpus: BTreeSet<String>,
    any: bool,
}

/// Collects the values requested by the section, for CPUs of no earlier section.
pub fn collect(
    unit: &TunedUnit,
    values: &Values,
    claimed: &mut ClaimedCpus,
    collected: &mut Collected,
) -> Result<(), FailedAssertion> {
    let section = format!("[{}]", unit.name);
    let machine = values.functions.target.files;
    let is_first = !std::mem::replace(&mut claimed.any, true);
    let devices = values.expand(&unit.devices)?;
    let trouble = match &unit.devices_udev_regex {
        Some(_) => Some("onbeat does not select devices by udev attributes".to_owned()),
        None => values.functions.trouble(&devices),
    };
    if let Some(why) = trouble {
        collected.lack(format!("{section} devices"), why);
        return Ok(());
    }
    let listed = machine.list(CPUS);
    let is_cpu = |name: &&String| name.strip_prefix("cpu").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let all = listed.known().into_iter().flatten().filter(is_cpu);
    let cpus: Vec<String> =
        all.filter(|cpu| is_meant(&devices, cpu) && !claimed.cpus.contains(*cpu)).cloned().collect();
    if cpus.is_empty() && !unit.options.in_order().is_empty() {
        collected.leave(&*section, "it matches no CPU that an earlier section does not match", "");
        return Ok(());
    }
    claimed.cpus.extend(cpus.iter().cloned());
    for (name, written) in unit.options.in_order() {
        let label = format!("{section} {name}");
        let value = values.expand(written)?;
        let mut option = TunedOption { name, value: &value, label: &label, machine, collected };
        let outcome = match values.functions.trouble(&value) {
            Some(why) => Err(OptionTrouble::Unread(why)),
            None => option.cpu(&cpus, is_first),
        };
        name_trouble(outcome, &label, &value, collected);
    }
    Ok(())
}

/// True for a CPU among the devices, which patterns include, or exclude with `!`.
fn is_meant(devices: &str, cpu: &str) -> bool {
    let rules = devices.split(|c: char| c.is_whitespace() || c == ',').filter(|rule| !rule.is_empty());
    let (out, wanted): (Vec<&str>, Vec<&str>) = rules.partition(|rule| rule.starts_with('!'));
    let fits = |rule: &str| Pattern::new(rule).is_ok_and(|pattern| pattern.matches(cpu));
    (wanted.is_empty() || wanted.iter().any(|rule| fits(rule))) && !out.iter().any(|rule| fits(&rule[1..]))
}

impl TunedOption<'_> {
    fn cpu(&mut self, cpus: &[String], is_first: bool) -> Result<(), OptionTrouble> {
        match self.name {
            "force_latency" | "min_perf_pct" | "max_perf_pct" | "no_turbo" if !is_first => {
                Err(OptionTrouble::Left("it is used only in the first section for CPUs".to_owned()))
            }
            "force_latency" => match self.latency()? {
                Some(latency) => {
                    self.want(Key::Hold("cpu_dma_latency".to_owned()), &latency);
                    Ok(())
                }
                None => Ok(()),
            },
            "min_perf_pct" | "max_perf_pct" => {
                let value = self.value.to_owned();
                self.driver(self.name, value)
            }
            "no_turbo" => {
                let value = match self.value.trim().to_ascii_lowercase().as_str() {
                    "y" | "yes" | "t" | "true" => "1",
                    "n" | "no" | "f" | "false" => "0",
                    _ => self.value,
                };
                self.driver("no_turbo", value.to_owned())
            }
            "boost" => self.boost(cpus),
            "governor" => self.each(cpus, "cpufreq/scaling_governor", &|option, folder| {
                option.offered(&format!("{folder}/scaling_available_governors"))
            }),
            "energy_performance_preference" => {
                self.each(cpus, "cpufreq/energy_performance_preference", &|option, folder| {
                    option.offered(&format!("{folder}/energy_performance_available_preferences"))
                })
            }
            "energy_perf_bias" => self.each(cpus, "power/energy_perf_bias", &|option, _| {
                let mut words = option.value.split('|').map(str::trim);
                let is_taken =
                    |word: &&str| BIASES.contains(word) || word.parse::<u8>().is_ok_and(|n| n < 16);
                let word = words.find(is_taken).map(str::to_owned);
                word.map(Some).ok_or_else(|| OptionTrouble::Left(not_offered(option.value)))
            }),
            "pm_qos_resume_latency_us" => {
                self.each(cpus, "power/pm_qos_resume_latency_us", &|option, _| option.latency())
            }
            _ => Err(OptionTrouble::Left("onbeat sets nothing of this kind".to_owned())),
        }
    }

    /// Requests a value for a file of Intel's driver, if it exists.
    fn driver(&mut self, name: &str, value: String) -> Result<(), OptionTrouble> {
        let path = format!("{PSTATE}/{name}");
        match self.machine.read_text(&path).known() {
            Some(_) => self.files(&path, |_| Ok(Some(value.clone()))),
            None => Err(OptionTrouble::Left("it matches no file here".to_owned())),
        }
    }

    /// Requests a value for a file of each of the CPUs that have it.
    fn each(&mut self, cpus: &[String], file: &str, choice: &CpuChoice) -> Result<(), OptionTrouble> {
        let mut any = false;
        let mut outcome = Ok(());
        for cpu in cpus {
            let path = format!("{CPUS}/{cpu}/{file}");
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
            let listed = self.machine.list(folder);
            if !listed.known().is_some_and(|names| names.iter().any(|known| known == name)) {
                continue;
            }
            any = true;
            // A refusal for one CPU does not affect the others.
            let written = choice(self, folder).and_then(|value| match value {
                Some(value) => self.files(&path, |_| Ok(Some(value.clone()))),
                None => Ok(()),
            });
            outcome = outcome.and(written);
        }
        if any { outcome } else { Err(OptionTrouble::Left("it matches no file here".to_owned())) }
    }

    /// First of `a|b` that a file offers.
    fn offered(&self, offer: &str) -> Result<Option<String>, OptionTrouble> {
        let words = self.machine.read_text(offer);
        let words = words.known().ok_or_else(|| {
            OptionTrouble::Left(format!("the available values cannot be read from {offer}"))
        })?;
        let mut wanted = self.value.split('|').map(str::trim);
        let first = wanted.find(|one| words.split_whitespace().any(|word| word == *one));
        first.map(|word| Some(word.to_owned())).ok_or_else(|| OptionTrouble::Left(not_offered(self.value)))
    }

    /// First of `a|b` that is a number of microseconds, or the latency of an existing idle state;
    /// no value for `none`.
    fn latency(&self) -> Result<Option<String>, OptionTrouble> {
        for word in self.value.split('|').map(str::trim) {
            if word.parse::<i64>().is_ok() || word == "n/a" && self.name != "force_latency" {
                return Ok(Some(word.to_owned()));
            }
            if matches!(word, "none" | "None") {
                return Ok(None);
            }
            let Some((kind, state)) = word.strip_prefix("cstate.").and_then(|rest| rest.split_once(':'))
            else {
                continue;
            };
            let by_number = kind.starts_with("id");
            let found = if by_number { self.state_latency(state.trim()) } else { self.named_state(state) };
            let counts = |latency: &i64| *latency != 0 || !kind.ends_with("_no_zero");
            if let Some(latency) = found.filter(counts) {
                return Ok(Some(latency.to_string()));
            }
        }
        Err(OptionTrouble::Left(format!("{} is not a latency of this machine", quoted_value(self.value))))
    }

    /// Exit latency of an idle state by its number.
    fn state_latency(&self, number: &str) -> Option<i64> {
        let number: u32 = number.parse().ok()?;
        let text = self.machine.read_text(&format!("{CPUS}/cpu0/cpuidle/state{number}/latency"));
        text.known()?.trim().parse().ok()
    }

    /// Exit latency of an idle state by its name.
    fn named_state(&self, name: &str) -> Option<i64> {
        (0..16_u32).find_map(|number| {
            let own = self.machine.read_text(&format!("{CPUS}/cpu0/cpuidle/state{number}/name"));
            let is_own = own.known().is_some_and(|own| own.trim() == name);
            is_own.then(|| self.state_latency(&number.to_string())).flatten()
        })
    }

    /// Requests a value for a file of each policy, and its opposite for Intel's driver.
    fn boost(&mut self, cpus: &[String]) -> Result<(), OptionTrouble> {
        let opposite = match self.value {
            "0" => "1",
            "1" => "0",
            _ => return Err(OptionTrouble::Left(not_offered(self.value))),
        };
        let policies = cpus.iter().map(|cpu| format!("{CPUS}/cpufreq/policy{}/boost", &cpu[3..]));
        let mut paths: Vec<(String, &str)> = policies.map(|path| (path, self.value)).collect();
        paths.push((format!("{PSTATE}/no_turbo"), opposite));
        paths.retain(|(path, _)| self.machine.read_text(path).known().is_some());
        if paths.is_empty() {
            return Err(OptionTrouble::Left("it matches no file here".to_owned()));
        }
        for (path, value) in paths {
            self.files(&path, |_| Ok(Some(value.to_owned())))?;
        }
        Ok(())
    }
}

fn not_offered(value: &str) -> String {
    format!("{} is not offered", quoted_value(value))
}
