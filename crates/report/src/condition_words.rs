//! Conditions in words, for screens and pages; documents have the fields' names and values.

use crate::words::{clean, span};
use facts::differences::Difference;
use model::units::{Cpu, CpuSet, Nanos};

/// Fields whose words are not their own name with blanks. Other fields follow from their names.
const NAMES: [(&str, &str); 28] = [
    ("onbeat", "version of onbeat"),
    ("plan.calls", "system calls recorded"),
    ("plan.cpus", "measured CPUs"),
    ("plan.distance_ns", "further interval per CPU"),
    ("plan.expiry", "timer expires in"),
    ("plan.housekeeping", "housekeeping CPUs"),
    ("plan.kind", "kind of hand-over or mutex"),
    ("plan.load_cpus", "CPUs of the load"),
    ("plan.over_ns", "shortest gap"),
    ("plan.program", "program that was followed"),
    ("plan.stacks", "stacks recorded"),
    ("plan.threshold_ns", "threshold of spikes"),
    ("plan.tool", "measured by"),
    ("plan.wake", "woken by"),
    ("host.cgroup_rt_runtime_us", "cgroup's real-time runtime"),
    ("host.fair_server_runtime_ns", "fair server's runtime"),
    ("host.governor", "cpufreq governor"),
    ("host.hz", "tick frequency in Hz"),
    ("host.idle_exit_ns", "exit times of idle states"),
    ("host.isolated", "isolated CPUs"),
    ("host.kernel", "kernel build"),
    ("host.machine", "architecture"),
    ("host.model", "processor"),
    ("host.online", "online CPUs"),
    ("host.preempt", "preemption"),
    ("host.release", "kernel"),
    ("host.siblings", "SMT siblings"),
    ("host.virtual", "virtual machine"),
];

/// Fields that are left out where they are not true.
const RECORDED: [&str; 2] = ["plan.calls", "plan.stacks"];

/// A condition's name.
pub fn name(what: &str) -> String {
    if let Some((_, words)) = NAMES.iter().find(|(field, _)| *field == what) {
        return (*words).to_owned();
    }
    if let Some(word) = what.strip_prefix("cmdline ") {
        return format!("{} (kernel command line)", clean(word));
    }
    let Some(field) = what.strip_prefix("plan.").or_else(|| what.strip_prefix("host.")) else {
        return clean(what);
    };
    let field = unit(field).map_or(field, |(field, _)| field);
    let words = field.replace('_', " ");
    clean(&words.strip_prefix("rt ").map_or(words.clone(), |rest| format!("real-time {rest}")))
}

/// Value of a condition; `|` separates several if the runs of a side differ.
pub fn value(what: &str, value: &str) -> String {
    if value.is_empty() {
        return if RECORDED.contains(&what) { "no" } else { "(none)" }.to_owned();
    }
    // Files and words of the command line keep the value that the kernel shows.
    if !what.starts_with("plan.") && !what.starts_with("host.") {
        return clean(value);
    }
    value.split(" | ").map(|one| clean(&field_value(what, one))).collect::<Vec<_>>().join(" | ")
}

fn field_value(what: &str, value: &str) -> String {
    let time = |number: i64| match unit(what) {
        // -1 stands for no limit.
        Some((_, scale)) if number >= 0 => span(Nanos(number.saturating_mul(scale))),
        _ => number.to_string(),
    };
    match serde_json::from_str(value) {
        Ok(serde_json::Value::Bool(on)) => if on { "yes" } else { "no" }.to_owned(),
        Ok(serde_json::Value::Number(number)) => number.as_i64().map_or_else(|| value.to_owned(), time),
        Ok(serde_json::Value::Array(all)) => listed(what, &all, time),
        _ => value.to_owned(),
    }
}

fn listed(what: &str, all: &[serde_json::Value], time: impl Fn(i64) -> String) -> String {
    let number = |one: &serde_json::Value| one.as_u64().and_then(|number| u32::try_from(number).ok());
    let cpus: Option<CpuSet> = all.iter().map(|one| number(one).map(Cpu)).collect();
    match cpus {
        _ if all.is_empty() => "(none)".to_owned(),
        Some(cpus) if unit(what).is_none() => cpus.to_string(),
        _ => {
            let word = |one: &serde_json::Value| match one.as_i64() {
                Some(number) => time(number),
                None => one.as_str().map_or_else(|| one.to_string(), str::to_owned),
            };
            all.iter().map(word).collect::<Vec<_>>().join("; ")
        }
    }
}

/// Name without its unit, and the unit in ns.
fn unit(field: &str) -> Option<(&str, i64)> {
    let ns = field.strip_suffix("_ns").map(|field| (field, 1));
    ns.or_else(|| field.strip_suffix("_us").map(|field| (field, Nanos::MICRO.0)))
}

/// Line on a difference between two sides: `interval: 500 us -> 1 ms`.
pub fn line(one: &Difference) -> String {
    let (what, a, b) = (name(&one.what), value(&one.what, &one.a), value(&one.what, &one.b));
    if one.is_mixed() { format!("{what}: mixed on both sides, {a}") } else { format!("{what}: {a} -> {b}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_words_and_their_values_have_units() {
        let text_of = |what: &str, text: &str| format!("{}: {}", name(what), value(what, text));
        for (what, text, words) in [
            ("plan.interval_ns", "500000", "interval: 500 us"),
            ("plan.interval_ns", "500000 | 1000000", "interval: 500 us | 1 ms"),
            ("plan.cpus", "[0,1,2]", "measured CPUs: 0-2"),
            ("plan.cpus", "[]", "measured CPUs: (none)"),
            ("plan.stacks", "true", "stacks recorded: yes"),
            ("plan.calls", "", "system calls recorded: no"),
            ("plan.threshold_ns", "100000", "threshold of spikes: 100 us"),
            ("plan.policy", "fifo", "policy: fifo"),
            ("host.rt_runtime_us", "950000", "real-time runtime: 950 ms"),
            ("host.rt_runtime_us", "-1", "real-time runtime: -1"),
            ("host.idle_exit_ns", "[1000,2000]", "exit times of idle states: 1 us; 2 us"),
            ("host.siblings", "[\"0,4\",\"1,5\"]", "SMT siblings: 0,4; 1,5"),
            ("cmdline isolcpus", "2-3", "isolcpus (kernel command line): 2-3"),
            ("/proc/sys/vm/swappiness", "60", "/proc/sys/vm/swappiness: 60"),
            ("load", "", "load: (none)"),
        ] {
            assert_eq!(text_of(what, text), words);
        }
    }

    #[test]
    fn no_field_of_a_run_is_listed_by_its_raw_name() {
        let run = crate::fixture::noisy().run;
        let settings = facts::differences::Settings::of(&run, &[]);
        for what in settings.values().keys().filter(|what| what.contains('.') && !what.starts_with('/')) {
            let words = name(what);
            assert!(!words.contains(['_', '.']) && !words.ends_with(" ns"), "{what}: {words}");
        }
    }
}
