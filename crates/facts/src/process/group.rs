//! What the control group of a process gives it.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, "CPU Interface Files".

use super::files::text;
use crate::cgroup::Cgroups;
use crate::line::parse_u64;
use host::MachineFiles;
use model::fact::Fact;

/// How often the group of a process, or one above it, was held back until now.
pub fn throttled(host: &MachineFiles, groups: &Cgroups) -> Fact<u64> {
    let count = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        line.map_or(Ok(None), |number| parse_u64(number).map(Some))
    };
    let paths =
        groups.v2_paths("cpu.stat").into_iter().chain(groups.v1_paths("cpu.stat")).collect::<Vec<_>>();
    of_group(host, &paths, count).then(|count| count.map_or(Fact::Absent, Fact::Known))
}

/// The quota of CPU time: microseconds in each period; `None` without one.
pub fn quota(host: &MachineFiles, groups: &Cgroups) -> Fact<Option<(u64, u64)>> {
    of_group(host, &groups.v2_paths("cpu.max"), parse_quota)
}

/// The first of some places where a file of a control group can be.
fn of_group<T>(host: &MachineFiles, paths: &[String], parse: impl Fn(&str) -> Result<T, String>) -> Fact<T> {
    for path in paths {
        match text(host, path).parse(|text| parse(&text)) {
            Fact::Absent => {}
            outcome => return outcome,
        }
    }
    Fact::Absent
}

/// Parses `cpu.max`: microseconds, or `max`, and the period.
fn parse_quota(text: &str) -> Result<Option<(u64, u64)>, String> {
    let expected = || "expected a quota and a period".to_owned();
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["max", _] => Ok(None),
        [quota, period] => {
            let number = |word: &str| word.parse::<u64>().map_err(|_| expected());
            Ok(Some((number(quota)?, number(period)?)))
        }
        _ => Err(expected()),
    }
}
