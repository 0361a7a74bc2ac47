//! Sections of a profile, by their plugin, in tuned's order.

use super::functions::FailedAssertion;
use super::option::{TunedOption, name_trouble};
use super::search::{SearchLines, matches};
use super::unit::TunedUnit;
use super::values::{Values, unquoted};
use super::{bootloader, cpu};
use crate::import::Collected;
use model::sort::CompactSort;

/// Plugins that are not imported, with the reason and an alternative.
const NOT_TAKEN: &[(&str, &str, &str)] = &[
    ("script", "a script is not run", "see what it does, and set that"),
    (
        "irqbalance",
        "it is the configuration of another program",
        "IRQBALANCE_BANNED_CPULIST in /etc/default/irqbalance",
    ),
    ("irq", "interrupt numbers depend on the machine", "onbeat tune plan irq-affinity default-irq-affinity"),
    ("systemd", "it is the configuration of another program", "CPUAffinity= in /etc/systemd/system.conf"),
    ("service", "it is a service", "systemctl"),
];

/// Collects the values requested by the sections.
///
/// # Errors
/// An assertion in a value fails.
pub fn collect(
    units: Vec<TunedUnit>,
    values: &Values,
    collected: &mut Collected,
) -> Result<(), FailedAssertion> {
    let priority = |unit: &TunedUnit| match &unit.priority {
        Some(text) => text.trim().parse::<i64>().ok(),
        None => Some(0),
    };
    let mut active = Vec::new();
    for unit in units.into_iter().filter(|unit| unit.is_enabled) {
        match conditions(&unit, values)? {
            Conditions::Met => active.push((priority(&unit), unit)),
            Conditions::Unmet => {}
            Conditions::Unknown(why) => collected.lack(format!("[{}]", unit.name), why),
        }
    }
    active.compact_sort_by_key(|(priority, _)| priority.unwrap_or(0));
    let mut claimed = cpu::ClaimedCpus::default();
    for (priority, unit) in &active {
        let label = format!("[{}]", unit.name);
        if priority.is_none() {
            collected.lack(format!("{label} priority"), "it is not a number");
        }
        let hooks = [("script_pre", &unit.script_pre), ("script_post", &unit.script_post)];
        for (name, _) in hooks.iter().filter(|(_, script)| script.is_some()) {
            collected.leave(format!("{label} {name}"), "a script is not run", "");
        }
        match unit.kind.as_str() {
            "bootloader" => bootloader::collect(unit, values, collected)?,
            "cpu" => cpu::collect(unit, values, &mut claimed, collected)?,
            _ => options(unit, values, collected)?,
        }
    }
    Ok(())
}

/// State of a section's conditions on a machine.
enum Conditions {
    Met,
    Unmet,
    /// They cannot be decided, for this reason.
    Unknown(String),
}

/// State of a section's conditions on this machine.
fn conditions(unit: &TunedUnit, values: &Values) -> Result<Conditions, FailedAssertion> {
    let target = values.functions.target;
    let facts = &target.survey.facts;
    for (name, expression) in [("cpuinfo_regex", &unit.cpuinfo_regex), ("uname_regex", &unit.uname_regex)] {
        let Some(expression) = expression else { continue };
        let expression = values.expand(expression)?;
        if let Some(why) = values.functions.trouble(&expression) {
            return Ok(Conditions::Unknown(format!("its condition {name} cannot be decided: {why}")));
        }
        let text = match name {
            "cpuinfo_regex" => target.files.read_text("/proc/cpuinfo").known().cloned(),
            // The node name is private, and does not identify a kind of machine.
            _ => [&facts.release, &facts.version, &facts.machine]
                .into_iter()
                .try_fold("Linux".to_owned(), |text, fact| Some(format!("{text} {}", fact.known()?))),
        };
        let Some(text) = text else {
            return Ok(Conditions::Unknown(format!(
                "its condition {name} cannot be decided: its input is unknown"
            )));
        };
        match matches(&expression, &text, SearchLines::Each) {
            Ok(true) => {}
            Ok(false) => return Ok(Conditions::Unmet),
            Err(unknown) => return Ok(Conditions::Unknown(unknown.to_string())),
        }
    }
    Ok(Conditions::Met)
}

fn options(unit: &TunedUnit, values: &Values, collected: &mut Collected) -> Result<(), FailedAssertion> {
    for (name, written) in unit.options.in_order() {
        let label = format!("[{}] {name}", unit.name);
        let written = if unit.kind == "sysctl" { unquoted(written) } else { written };
        if !["sysctl", "sysfs", "vm", "scheduler"].contains(&unit.kind.as_str()) {
            let named = NOT_TAKEN.iter().find(|(plugin, ..)| *plugin == unit.kind);
            let (why, instead) =
                named.map_or(("onbeat sets nothing of this kind", ""), |(_, why, instead)| (*why, *instead));
            collected.leave(format!("{label} = {}", values.readable(written)?.0), why, instead);
            continue;
        }
        let value = values.expand(written)?;
        let mut option = TunedOption {
            name,
            value: &value,
            label: &label,
            machine: values.functions.target.files,
            collected,
        };
        let outcome = match values.functions.trouble(&value) {
            Some(why) => option.unread(&unit.kind, why),
            None => match unit.kind.as_str() {
                "sysctl" => option.sysctl(),
                "sysfs" => option.sysfs(),
                "vm" => option.memory(),
                _ => option.scheduler(),
            },
        };
        name_trouble(outcome, &label, &value, collected);
    }
    Ok(())
}
