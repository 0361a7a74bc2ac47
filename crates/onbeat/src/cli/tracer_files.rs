//! Machine-wide files of the kernel's measuring tracers, changed through the journal of settings.
//!
//! Source: Documentation/trace/{hwlat_detector,osnoise-tracer,timerlat-tracer}.rst.

use crate::cli::Environment;
use crate::cli::step_settings::{FileWish, StepSettings, StepWish};
use crate::plan::SamplingWindow;
use crate::probe::{hwlat, osnoise};
use host::tracefs::Tracing;
use model::error::{Failure, ItemFailure, Result};
use model::units::{CpuSet, Nanos};

/// Place of tracefs for the journal, which an undo in another process has to find as well.
const TRACING: &str = "/sys/kernel/tracing";

/// Options of the osnoise tracer that onbeat sets, and the only one that is on by default.
const WORKLOAD: &str = "OSNOISE_WORKLOAD";
const IRQS_OFF: &str = "OSNOISE_IRQ_DISABLE";
const OFF: [&str; 2] = ["OSNOISE_PREEMPT_DISABLE", "PANIC_ON_STOP"];

/// Settings of osnoise or timerlat for a run.
#[derive(Clone, Debug)]
pub struct OsnoiseWish<'a> {
    pub cpus: &'a CpuSet,
    /// Minimum length of a gap of osnoise.
    pub over: Option<Nanos>,
    /// Sampling of osnoise.
    pub window: Option<SamplingWindow>,
    pub irqs_off: bool,
    /// Interval of timerlat.
    pub interval: Option<Nanos>,
    /// True for threads of the kernel, false for those of a program.
    pub workload: bool,
}

/// Sets files through the journal until the settings are dropped.
///
/// # Errors
/// Not permitted, or not supported: tracefs is mounted elsewhere.
pub fn set<'a>(
    environment: &'a Environment,
    no_cpus: &'a CpuSet,
    purpose: &'static str,
    files: Vec<FileWish>,
    instead: &str,
) -> Result<StepSettings<'a>> {
    let mut settings = StepSettings::new(environment, no_cpus, false, purpose);
    settings.switch(StepWish { files, ..StepWish::default() }).map_err(|failure| match failure {
        ItemFailure::Refused(reason) => {
            Failure::not_supported(format!("{reason}: mount tracefs there, or {instead}"))
        }
        ItemFailure::Fatal(failure) => failure,
    })?;
    Ok(settings)
}

/// Files of hwlat that differ from what is wanted.
pub fn of_hwlat(tracing: &Tracing, window: SamplingWindow) -> Vec<FileWish> {
    let folder = hwlat::FOLDER;
    let mut files = windows(tracing, folder, ["width", "window"], window);
    let mode = read(tracing, folder, "mode");
    if mode.is_some_and(|text| !text.contains("[per-cpu]")) {
        files.push(wish(folder, "mode", "per-cpu".to_owned()));
    }
    files
}

/// Files of osnoise and timerlat that differ from what is wanted.
///
/// # Errors
/// Not supported: the kernel has no such option.
pub fn of_osnoise(tracing: &Tracing, wanted: &OsnoiseWish) -> Result<Vec<FileWish>> {
    let folder = osnoise::FOLDER;
    let mut files = Vec::new();
    let cpus = read(tracing, folder, "cpus").and_then(|text| CpuSet::parse(text.trim()).ok());
    if cpus.as_ref() != Some(wanted.cpus) {
        files.push(wish(folder, "cpus", wanted.cpus.to_string()));
    }
    // Any of the first three would end the run, or print stacks.
    let micros = |span: Nanos| span.0 / Nanos::MICRO.0;
    let numbers = [
        ("stop_tracing_us", Some(0)),
        ("stop_tracing_total_us", Some(0)),
        ("print_stack", Some(0)),
        ("timerlat_period_us", wanted.interval.map(micros)),
    ];
    for (name, value) in numbers {
        let now = number(tracing, folder, name);
        let differs = value.filter(|value| now.is_some_and(|now| now != *value));
        files.extend(differs.map(|value| wish(folder, name, value.to_string())));
    }
    if let Some(window) = wanted.window {
        files.extend(windows(tracing, folder, ["runtime_us", "period_us"], window));
    }
    let options = read(tracing, folder, "options").unwrap_or_default();
    let set = with_options(&options, wanted.irqs_off, wanted.workload).ok_or_else(|| {
        let (what, instead) = if wanted.irqs_off {
            ("cannot turn interrupts off (Linux 6.2)", "use --source hwlat or spin")
        } else {
            ("has no user threads (Linux 6.5)", "use --source timerlat")
        };
        Failure::not_supported(format!("this kernel's osnoise tracer {what}: {instead}"))
    })?;
    if !set.split_ascii_whitespace().eq(options.split_ascii_whitespace()) {
        files.push(wish(folder, "options", set));
    }
    if let Some(over) = wanted.over {
        let now = tracing.read("tracing_thresh").ok().and_then(|text| text.trim().parse().ok());
        if now != Some(micros(over)) {
            let path = format!("{TRACING}/tracing_thresh");
            files.push(FileWish { path, value: micros(over).to_string() });
        }
    }
    Ok(files)
}

/// True if the osnoise tracer can turn interrupts off.
pub fn has_irqs_off(tracing: &Tracing) -> bool {
    read(tracing, osnoise::FOLDER, "options").is_some_and(|now| with_options(&now, true, true).is_some())
}

/// All options as the kernel lists them, with those that are wanted; none if it lacks one.
fn with_options(now: &str, irqs_off: bool, workload: bool) -> Option<String> {
    let is_on = |name: &str, was: bool| match name {
        IRQS_OFF => irqs_off,
        WORKLOAD => workload,
        other => was && !OFF.contains(&other),
    };
    let words = now.split_ascii_whitespace().map(|word| match word.strip_prefix("NO_") {
        Some(name) => (name, false),
        None => (word, true),
    });
    let set: Vec<(&str, bool)> = words.map(|(name, was)| (name, is_on(name, was))).collect();
    let has = |wanted: &str| set.iter().any(|(name, _)| *name == wanted);
    if irqs_off && !has(IRQS_OFF) || !workload && !has(WORKLOAD) {
        return None;
    }
    let (sum, options): (Vec<_>, Vec<_>) = set.into_iter().partition(|(name, _)| *name == "DEFAULTS");
    let default = options.iter().all(|(name, on)| *on == (*name == WORKLOAD));
    let sum = sum.into_iter().map(|(name, _)| (name, default));
    let word = |(name, on): (&str, bool)| if on { name.to_owned() } else { format!("NO_{name}") };
    Some(sum.chain(options).map(word).collect::<Vec<_>>().join(" "))
}

/// Files of a window that differ from what is wanted, in an order that the kernel accepts: the
/// sampled part is less than the window at any time, also when they are restored in reverse order.
fn windows(
    tracing: &Tracing,
    folder: &str,
    [part, whole]: [&'static str; 2],
    window: SamplingWindow,
) -> Vec<FileWish> {
    let us = |span: Nanos| span.0 / Nanos::MICRO.0;
    let part_now = number(tracing, folder, part);
    let mut wanted =
        vec![(part_now, part, us(window.width)), (number(tracing, folder, whole), whole, us(window.length))];
    if part_now.is_none_or(|part| us(window.length) > part) {
        wanted.reverse();
    }
    let differ = wanted.into_iter().filter(|(now, _, wanted)| *now != Some(*wanted));
    differ.map(|(_, name, wanted)| wish(folder, name, wanted.to_string())).collect()
}

fn wish(folder: &str, name: &str, value: String) -> FileWish {
    FileWish { path: format!("{TRACING}/{folder}/{name}"), value }
}

fn read(tracing: &Tracing, folder: &str, name: &str) -> Option<String> {
    tracing.read(&format!("{folder}/{name}")).ok()
}

fn number(tracing: &Tracing, folder: &str, name: &str) -> Option<i64> {
    read(tracing, folder, name)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options of Linux 6.12.
    const DEFAULT: &str = "DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP NO_OSNOISE_PREEMPT_DISABLE \
                           NO_OSNOISE_IRQ_DISABLE \n";
    const QUIET: &str = "NO_DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP NO_OSNOISE_PREEMPT_DISABLE \
                         OSNOISE_IRQ_DISABLE";

    #[test]
    fn options_are_those_of_the_kernel_with_what_is_wanted() {
        let set = |now, irqs_off, workload| with_options(now, irqs_off, workload);
        assert_eq!(set(DEFAULT, false, true).as_deref(), Some(DEFAULT.trim()));
        assert_eq!(set(DEFAULT, true, true).as_deref(), Some(QUIET));
        assert_eq!(set(QUIET, false, true).as_deref(), Some(DEFAULT.trim()));
        let user = set(DEFAULT, false, false).unwrap();
        assert!(user.starts_with("NO_DEFAULTS NO_OSNOISE_WORKLOAD "), "{user}");
        // An option of a newer kernel stays as it is.
        let newer = "NO_DEFAULTS OSNOISE_WORKLOAD PANIC_ON_STOP TIMERLAT_ALIGN";
        let kept = "NO_DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP TIMERLAT_ALIGN";
        assert_eq!(set(newer, false, true).as_deref(), Some(kept));
    }

    #[test]
    fn a_kernel_without_an_option_is_refused_only_if_it_is_wanted() {
        assert_eq!(with_options("", false, true).as_deref(), Some(""));
        assert_eq!(with_options("", true, true), None);
        assert_eq!(with_options("", false, false), None);
        assert_eq!(with_options("OSNOISE_WORKLOAD", true, true), None);
    }
}
