//! The sections of a profile, by the plugin that they are for.

use host::MachineFiles;
use model::fact::Fact;
use model::setting::Key;
use model::text::quoted_value;

use super::ini::IniSection;
use super::profile::is_true;
use super::variables::Variables;
use crate::import::pattern::expand;
use crate::import::sysctl_d::{key_of, with_slashes};
use crate::import::{Collected, Imported};

/// Options that every section can have.
const COMMON: &[&str] = &[
    "type",
    "enabled",
    "devices",
    "devices_udev_regex",
    "replace",
    "priority",
    "drop",
    "script_pre",
    "script_post",
];

/// What a section is for that sets nothing here, why, and what to do instead.
const NOT_TAKEN: &[(&str, &str, &str)] = &[
    ("script", "a script is not run", "see what it does, and set that"),
    (
        "bootloader",
        "the kernel takes it from its command line, and no boot loader is edited",
        "add the words by hand: `onbeat tune export` says where",
    ),
    ("scheduler", "it moves threads as they come and go", "isolate the CPUs: onbeat isolate create LIST"),
    (
        "irqbalance",
        "it is the configuration of another program",
        "IRQBALANCE_BANNED_CPULIST in /etc/default/irqbalance",
    ),
    (
        "irq",
        "numbers of interrupts depend on the machine",
        "onbeat tune plan irq-affinity default-irq-affinity",
    ),
    ("systemd", "it is the configuration of another program", "CPUAffinity= in /etc/systemd/system.conf"),
    ("service", "it is a service", "systemctl"),
];

/// What a section asks for.
pub fn collect(
    section: &IniSection,
    variables: &Variables,
    machine: &MachineFiles,
    collected: &mut Collected,
) {
    if section.option("enabled").is_some_and(|value| !is_true(value)) {
        return;
    }
    let kind = section.option("type").unwrap_or(&section.name).to_owned();
    let conditional =
        ["uname_regex", "cpuinfo_regex"].into_iter().find(|name| section.option(name).is_some());
    if let Some(condition) = conditional {
        let why = format!("its condition {condition} is not evaluated here");
        collected.leave(format!("[{}]", section.name), why, "");
        return;
    }
    for hook in ["script_pre", "script_post"].into_iter().filter(|name| section.option(name).is_some()) {
        collected.leave(format!("[{}] {hook}", section.name), "a script is not run", "");
    }
    let options = section.options.iter().filter(|(name, _)| !COMMON.contains(&name.as_str()));
    for (name, value) in options {
        let shown = format!("[{}] {name}", section.name);
        if let Some((_, why, instead)) = NOT_TAKEN.iter().find(|(plugin, ..)| *plugin == kind) {
            let value = variables.expand(value).unwrap_or_else(|_| value.clone());
            collected.leave(format!("{shown} = {}", model::text::clean(&value)), *why, instead);
            continue;
        }
        let value = match variables.expand(value.trim_matches(['"', '\''])) {
            Ok(value) => value,
            Err(why) => {
                collected.leave(shown, why.words(), "");
                continue;
            }
        };
        let mut option = TunedOption { section, name, value: &value, shown: &shown, machine, collected };
        let taken = match kind.as_str() {
            "sysctl" => option.sysctl(),
            "sysfs" => option.files(name),
            "vm" => option.memory(),
            "cpu" => option.cpu(),
            _ => Err("onbeat sets nothing of this kind".to_owned()),
        };
        if let Err(why) = taken {
            collected.leave(shown, why, "");
        }
    }
}

/// An option with its expanded value.
struct TunedOption<'a> {
    section: &'a IniSection,
    name: &'a str,
    value: &'a str,
    shown: &'a str,
    machine: &'a MachineFiles,
    collected: &'a mut Collected,
}

impl TunedOption<'_> {
    fn want(&mut self, key: Key, value: &str) {
        let (value, place) = (value.to_owned(), self.shown.to_owned());
        self.collected.want(Imported { key, value, place, optional: false });
    }

    fn sysctl(&mut self) -> Result<(), String> {
        let key = key_of(&with_slashes(self.name)).ok_or("it is no name of a sysctl")?;
        let path = key.path();
        if let Some(value) = self.modified(&path)? {
            self.want(key, &value);
        }
        Ok(())
    }

    /// A value; with `>` or `<` before it only where it is more, or less, than what is there.
    fn modified(&self, path: &str) -> Result<Option<String>, String> {
        let Some(limit) = self.value.strip_prefix(['>', '<']) else { return Ok(Some(self.value.to_owned())) };
        let number = |text: &str| text.trim().parse::<i128>().ok();
        let now = match self.machine.read_text(path) {
            Fact::Known(now) => number(&now),
            _ => None,
        };
        match (now, number(limit)) {
            (Some(now), Some(wanted)) => {
                let counts = if self.value.starts_with('>') { wanted > now } else { wanted < now };
                Ok(counts.then(|| wanted.to_string()))
            }
            _ => Err(format!("{} is compared with no number", quoted_value(self.value))),
        }
    }

    fn files(&mut self, pattern: &str) -> Result<(), String> {
        let paths = expand(self.machine, pattern)?;
        if paths.is_empty() {
            return Err("no file here is meant by it".to_owned());
        }
        for path in paths {
            let key = Key::of_path(&path).and_then(|key| key.to_string().parse().ok());
            match key {
                Some(key @ (Key::Sysctl(_) | Key::Sysfs(_) | Key::Irq(_) | Key::IrqDefault)) => {
                    if let Some(value) = self.modified(&path)? {
                        self.want(key, &value);
                    }
                }
                _ => return Err("it is no setting of the kernel".to_owned()),
            }
        }
        Ok(())
    }

    fn memory(&mut self) -> Result<(), String> {
        const HUGE: &str = "/sys/kernel/mm/transparent_hugepage/";
        match self.name {
            "transparent_hugepages" | "transparent_hugepage" => self.files(&format!("{HUGE}enabled")),
            "transparent_hugepage.defrag" => self.files(&format!("{HUGE}defrag")),
            "dirty_bytes" | "dirty_background_bytes" | "dirty_ratio" | "dirty_background_ratio" => {
                // Of bytes a share stands for the ratio.
                let (name, value) = match self.value.strip_suffix('%') {
                    Some(share) => (self.name.replace("bytes", "ratio"), share.trim()),
                    None => (self.name.to_owned(), self.value),
                };
                let key = key_of(&format!("vm/{name}")).ok_or("it is no name of a sysctl")?;
                let value = value.to_owned();
                self.want(key, &value);
                Ok(())
            }
            _ => Err("onbeat sets nothing of this kind".to_owned()),
        }
    }

    fn cpu(&mut self) -> Result<(), String> {
        const CPUS: &str = "/sys/devices/system/cpu/cpu[0-9]*";
        const PSTATE: &str = "/sys/devices/system/cpu/intel_pstate";
        if self.section.option("devices").is_some_and(|devices| devices.trim() != "*") {
            return Err("it is for some CPUs that its section chooses".to_owned());
        }
        match self.name {
            "governor" => {
                self.chosen(&format!("{CPUS}/cpufreq/scaling_governor"), "scaling_available_governors")
            }
            "energy_performance_preference" => self.chosen(
                &format!("{CPUS}/cpufreq/energy_performance_preference"),
                "energy_performance_available_preferences",
            ),
            "energy_perf_bias" => self.files(&format!("{CPUS}/power/energy_perf_bias")),
            "min_perf_pct" | "max_perf_pct" | "no_turbo" => self.files(&format!("{PSTATE}/{}", self.name)),
            "boost" => self.files("/sys/devices/system/cpu/cpufreq/boost"),
            "pm_qos_resume_latency_us" => self.files(&format!("{CPUS}/power/pm_qos_resume_latency_us")),
            "force_latency" => self.held(),
            _ => Err("onbeat sets nothing of this kind".to_owned()),
        }
    }

    /// A number of microseconds; what is said of idle states by their names is not evaluated.
    fn held(&mut self) -> Result<(), String> {
        if self.value.is_empty() || !self.value.chars().all(|c| c.is_ascii_digit()) {
            return Err("an idle state in it is not evaluated here: onbeat tune plan idle-states".to_owned());
        }
        let value = self.value.to_owned();
        self.want(Key::Hold("cpu_dma_latency".to_owned()), &value);
        Ok(())
    }

    /// The first of `a|b` that each file's neighbour offers.
    fn chosen(&mut self, pattern: &str, offered: &str) -> Result<(), String> {
        let paths = expand(self.machine, pattern)?;
        if paths.is_empty() {
            return Err("no file here is meant by it".to_owned());
        }
        for path in paths {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let words = match self.machine.read_text(&format!("{folder}/{offered}")) {
                Fact::Known(words) => words,
                _ => {
                    return Err(format!("what there is to choose from cannot be read in {folder}/{offered}"));
                }
            };
            let mut wanted = self.value.split('|').map(str::trim);
            let first = wanted.find(|one| words.split_whitespace().any(|word| word == *one));
            let first =
                first.ok_or_else(|| format!("{} is not offered", quoted_value(self.value)))?.to_owned();
            let key =
                Key::of_path(&path).and_then(|key| key.to_string().parse().ok()).ok_or("it is no setting")?;
            self.want(key, &first);
        }
        Ok(())
    }
}
