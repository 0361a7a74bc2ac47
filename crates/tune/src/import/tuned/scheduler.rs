//! Options of `[scheduler]`: files of the scheduler, and the treatment of threads.

use model::text::quoted_value;

use super::option::{OptionTrouble, TunedOption};

/// Names of knobs since 6.6; empty for those that no longer exist.
const RENAMED: &[(&str, &str)] = &[
    ("sched/min_granularity_ns", "sched/base_slice_ns"),
    ("sched/latency_ns", ""),
    ("sched/wakeup_granularity_ns", ""),
];

impl TunedOption<'_> {
    pub fn scheduler(&mut self) -> Result<(), OptionTrouble> {
        let knob = ["sched_", "numa_balancing_"].iter().find(|start| self.name.starts_with(**start));
        if knob.is_some() {
            return self.knob();
        }
        let (why, instead) = match self.name.strip_prefix("group.") {
            Some(_) => (group(self.value), "chrt, or the configuration of the threads"),
            None if self.name.starts_with("isolated_cores") => (
                "it moves threads away dynamically".to_owned(),
                "isolate the CPUs: onbeat isolate create LIST",
            ),
            None => ("it configures how tuned treats threads dynamically".to_owned(), ""),
        };
        Err(OptionTrouble::Elsewhere { why, instead })
    }

    /// Requests a file of the scheduler: a sysctl, or since 5.13 one below debugfs.
    fn knob(&mut self) -> Result<(), OptionTrouble> {
        let debug = match self.name.strip_prefix("numa_balancing_") {
            Some(rest) => format!("sched/numa_balancing/{rest}"),
            None => format!("sched/{}", self.name.trim_start_matches("sched_")),
        };
        let newer = RENAMED.iter().find(|(own, _)| *own == debug).map(|(_, newer)| *newer);
        let mut paths = vec![format!("/proc/sys/kernel/{}", self.name)];
        let below = [debug.as_str(), newer.unwrap_or("")];
        let below = below.iter().filter(|path| !path.is_empty());
        paths.extend(below.map(|path| format!("/sys/kernel/debug/{path}")));
        let is_there = |path: &&String| self.machine.read_text(path).known().is_some();
        match paths.iter().find(is_there).cloned() {
            Some(path) => self.one_file(&path),
            None => Err(OptionTrouble::Left("this kernel has no such file".to_owned())),
        }
    }
}

/// Description of `RULE_PRIORITY:POLICY:PRIORITY:CPUS:EXPRESSION`.
fn group(value: &str) -> String {
    let mut fields = value.splitn(5, ':').skip(1);
    let mut field = || fields.next().unwrap_or_default().trim();
    let (policy, priority, cpus, expression) = (field(), field(), field(), field());
    let policy = match policy {
        "f" => "SCHED_FIFO",
        "r" => "SCHED_RR",
        "o" => "SCHED_OTHER",
        "b" => "SCHED_BATCH",
        "i" => "SCHED_IDLE",
        _ => "their present policy",
    };
    let cpus = match cpus {
        "*" | "" => String::new(),
        cpus => format!(", CPUs {cpus}"),
    };
    format!("threads that {} matches get {policy}, priority {priority}{cpus}", quoted_value(expression))
}
