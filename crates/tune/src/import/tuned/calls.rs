//! Values of a profile's functions for their arguments, if they depend only on data read of the
//! machine. `exec` runs a command, and is not evaluated.

use model::text::{clean, quoted_value};

use super::cpulists::{listed, mask, of_mask, packed, unpacked};
use super::packages::{cpus_in, cpus_of, devices, is_number, isolated_cores, text, uncores_in};
use super::search::{SearchLines, matches};
use crate::import::ImportTarget;

/// Processors on which tuned disables the P-state driver.
const OLDER_PROCESSORS: &[&str] = &["sandybridge", "ivybridge", "haswell", "broadwell", "skylake"];

/// Unknown part of a value.
pub struct Doubt {
    /// Text that stands for it.
    pub placeholder: String,
    pub why: String,
}

/// Value, or none if tuned leaves the call unchanged.
pub type CallValue = Option<String>;

/// Value of a function with a valid number of arguments.
pub fn call(name: &str, arguments: &[String], target: ImportTarget) -> Result<CallValue, Doubt> {
    let first = arguments.first().map_or("", String::as_str);
    let parted = |separator: &str| {
        unpacked(&arguments.join(separator)).ok_or_else(|| unknown(name, "it names too many CPUs"))
    };
    let cpus = || parted(",,");
    let files = target.files;
    let unread = |path: &str| unknown(name, &format!("its value depends on {path}, which cannot be read"));
    let read = |path: &str| text(files, path).ok_or_else(|| unread(path));
    let online = || cpus_of(files, "online").ok_or_else(|| unread("/sys/devices/system/cpu/online"));
    let present = || cpus_of(files, "present").ok_or_else(|| unread("/sys/devices/system/cpu/present"));
    Ok(Some(match name {
        "cpulist_pack" => packed(&cpus()?),
        "cpulist_unpack" => listed(&cpus()?),
        "cpulist_invert" => listed(&(&online()? - &cpus()?)),
        "cpulist_online" => listed(&(&parted(",")? & &online()?)),
        "cpulist_present" => listed(&(&cpus()? & &present()?)),
        "cpulist2hex" => mask(&cpus()?),
        "cpulist2hex_invert" => mask(&(&online()? - &cpus()?)),
        "cpulist2devs" => devices(parted(",")?),
        "hex2cpulist" => listed(&of_mask(first).ok_or_else(|| unknown(name, "it names too many CPUs"))?),
        "strip" => arguments.concat().trim().to_owned(),
        "log" => arguments.concat(),
        "kb2s" => return Ok(first.trim().parse::<i64>().ok().map(|kb| (i128::from(kb) * 2).to_string())),
        "s2kb" => return Ok(first.trim().parse::<i64>().ok().map(|sectors| halved(sectors).to_string())),
        "regex_search_ternary" => return ternary(arguments),
        "calc_isolated_cores" => return calc_isolated_cores(name, arguments, files),
        "cpuinfo_check" => checked(arguments, read("/proc/cpuinfo"))?,
        "lscpu_check" => checked(arguments, Err(unknown(name, "it comes from lscpu, which is not run")))?,
        "package2cpus" => return in_packages(name, cpus_in(files, arguments)),
        "package2uncores" => return in_packages(name, uncores_in(files, arguments)),
        "intel_recommended_pstate" => {
            let processor = read("/sys/devices/cpu/caps/pmu_name")?;
            let processor = processor.trim();
            let is_older = processor.is_empty() || OLDER_PROCESSORS.contains(&processor);
            if is_older { "disable" } else { "active" }.to_owned()
        }
        "virt_check" => match target.survey.facts.virtualization.as_str() {
            "" => {
                return Err(alternatives(name, arguments, "by the kind of machine, which is not known"));
            }
            "none" => arguments.get(1).cloned().unwrap_or_default(),
            _ => first.to_owned(),
        },
        "check_net_queue_count" if is_number(first) => first.to_owned(),
        "check_net_queue_count" => return Err(unknown(name, "it comes from nproc, which is not run")),
        _ => {
            let placeholder = format!("(the output of {})", clean(&arguments.join(" ")));
            return Err(Doubt {
                placeholder,
                why: "its value comes from a command, which is not run".to_owned(),
            });
        }
    }))
}

fn calc_isolated_cores(
    name: &str,
    arguments: &[String],
    files: &host::MachineFiles,
) -> Result<CallValue, Doubt> {
    let reserved = match arguments.first() {
        None => 1,
        Some(text) if is_number(text) => text.parse().unwrap_or(usize::MAX),
        Some(_) => return Ok(None),
    };
    let cores = isolated_cores(files, reserved);
    cores.map(Some).ok_or_else(|| unknown(name, PACKAGES_UNREAD))
}

fn in_packages(name: &str, devices: Option<String>) -> Result<CallValue, Doubt> {
    let devices = devices.ok_or_else(|| unknown(name, PACKAGES_UNREAD))?;
    Ok(Some(devices).filter(|devices| !devices.is_empty()))
}

const PACKAGES_UNREAD: &str = "its value depends on the packages of the CPUs, which cannot be read";

/// Value after the first expression that matches a line of the file.
fn checked(arguments: &[String], text: Result<String, Doubt>) -> Result<String, Doubt> {
    let text = text.map_err(|doubt| alternatives("", arguments, &doubt.why))?;
    for pair in arguments.chunks(2) {
        let [expression, value] = pair else { break };
        let found = matches(expression, &text, SearchLines::Each);
        if found.map_err(|unknown| alternatives("", arguments, &unknown.to_string()))? {
            return Ok(value.clone());
        }
    }
    Ok(if arguments.len() % 2 == 1 { arguments.last().cloned().unwrap_or_default() } else { String::new() })
}

fn unknown(name: &str, why: &str) -> Doubt {
    Doubt { placeholder: format!("(the value of {name})"), why: why.to_owned() }
}

/// Doubt about the alternatives, which the machine decides.
fn alternatives(name: &str, arguments: &[String], why: &str) -> Doubt {
    let values: Vec<&str> = match name {
        "virt_check" => arguments.iter().map(String::as_str).collect(),
        _ => {
            let behind = arguments.iter().skip(1).step_by(2);
            let last = arguments.last().filter(|_| arguments.len() % 2 == 1);
            behind.chain(last).map(String::as_str).collect()
        }
    };
    let values: Vec<&str> = values.into_iter().filter(|value| !value.is_empty()).collect();
    let by = if name == "virt_check" { "machine" } else { "processor" };
    Doubt { placeholder: format!("(one of {}, by the {by})", values.join(", ")), why: why.to_owned() }
}

fn ternary(arguments: &[String]) -> Result<CallValue, Doubt> {
    let [text, expression, yes, no] = arguments else { return Ok(None) };
    let found = matches(expression, text, SearchLines::All).map_err(|unknown| {
        let placeholder = format!("(one of {}, {})", quoted_value(yes), quoted_value(no));
        Doubt { placeholder, why: unknown.to_string() }
    })?;
    Ok(Some(if found { yes } else { no }.clone()))
}

/// Half of a number, rounded to the nearest even integer.
fn halved(number: i64) -> i64 {
    let below = number.div_euclid(2);
    match number.rem_euclid(2) {
        0 => below,
        _ => below + below.rem_euclid(2),
    }
}
