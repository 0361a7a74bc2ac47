//! The kernels that onbeat was run on, and the results there: the page `docs/kernels.md`.
//!
//! The runs are from `lab/results.tsv`, which `cargo xtask live --all --record` writes; missing
//! features of a kernel are written by hand.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::machine::{self, MACHINES, Machine};
use crate::tally::{StepOutcome, Tally};
use crate::tools::{Result, root, write};

/// Path of the results below the project's root.
const RESULTS: &str = "lab/results.tsv";
const RECORDED: &str = include_str!("../../../lab/results.tsv");
const HEADING: &str = "machine\tkernel\tpassed\tfailed\tleft out\n";

/// Results of a machine's checks. Names are without the machine's.
#[derive(Clone, Debug, Default, PartialEq)]
struct MachineResults {
    /// Release by `uname -r`.
    release: String,
    passed: usize,
    failed: Vec<String>,
    left_out: Vec<String>,
}

impl MachineResults {
    fn line(&self, machine: &str) -> String {
        let MachineResults { release, passed, failed, left_out } = self;
        format!("{machine}\t{release}\t{passed}\t{}\t{}\n", failed.join(" "), left_out.join(" "))
    }

    fn of_line(line: &str) -> Option<(String, MachineResults)> {
        let mut cells = line.split('\t');
        let mut next = || cells.next();
        let (machine, release, passed) = (next()?, next()?, next()?.parse().ok()?);
        let mut names = || next().map(|cell| cell.split_whitespace().map(str::to_string).collect());
        let (failed, left_out) = (names()?, names()?);
        let release = release.to_string();
        Some((machine.to_string(), MachineResults { release, passed, failed, left_out }))
    }

    /// `12 of 13`, with the names of those that failed.
    fn words(&self) -> String {
        let all = self.passed + self.failed.len() + self.left_out.len();
        let named = |what: &str, names: &[String]| match names {
            [] => String::new(),
            names => format!("; {what} `{}`", names.join("`, `")),
        };
        let (failed, left_out) = (named("failed", &self.failed), named("left out", &self.left_out));
        format!("{} of {all}{failed}{left_out}", self.passed)
    }
}

fn parse(text: &str) -> BTreeMap<String, MachineResults> {
    text.lines().skip(1).filter_map(MachineResults::of_line).collect()
}

/// The machine of [`MACHINES`] with the same kernel: `7.3-rt` for `7.3-rt-4-faults`.
fn board_of(name: &str) -> Option<&'static Machine> {
    let is_of = |machine: &&Machine| {
        name.strip_prefix(machine.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    MACHINES.iter().filter(is_of).max_by_key(|machine| machine.name.len())
}

/// Puts the outcomes of the machines that ran in place of their earlier ones.
pub fn record(tally: &Tally) -> Result<()> {
    let mut results = parse(RECORDED);
    let mut fresh: BTreeMap<String, MachineResults> = BTreeMap::new();
    for (name, outcome) in tally.entries() {
        let (machine, check) = name.split_once(": ").unwrap_or((name, "the machine"));
        let of_machine = fresh.entry(machine.to_string()).or_default();
        match outcome {
            StepOutcome::Passed => of_machine.passed += 1,
            StepOutcome::Failed(_) => of_machine.failed.push(check.to_string()),
            StepOutcome::LeftOut(_) => of_machine.left_out.push(check.to_string()),
        }
    }
    for (name, mut of_machine) in fresh {
        let board = board_of(&name).ok_or_else(|| format!("{name}: no board of this name"))?;
        of_machine.release = machine::kernel(board)?.release;
        results.insert(name, of_machine);
    }
    let lines: String = results.iter().map(|(machine, results)| results.line(machine)).collect();
    write(&root().join(RESULTS), format!("{HEADING}{lines}"))
}

const OLD: &str = "`fair-server`, `ext-server` and `sched-ext` do not apply: the throttle is that of \
                   real-time tasks; `cache-aware-balancing` and `damon-monitoring` find nothing built \
                   in";
const SERVERS: &str = "fair servers of isolated CPUs: set before the CPUs are set apart, for the kernel \
                       warns otherwise";
const TRACERS: &str = "`kernel-tracing-support` fails: no timerlat, osnoise and hwlat";
const NEW: &str = "`rt-throttling` passes as the kernel sets it; `laptop-mode` does not apply beyond 0; \
                   `preempt=none` and `voluntary` are named as words without effect";
const FOREIGN: &str = "rules of x86 do not apply (TSC, machine checks, turbo, firmware updates)";

/// Refusals of onbeat on a machine's kernel, and rules that it skips, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("6.1-rt", OLD),
    ("6.12-rt", SERVERS),
    ("6.12", TRACERS),
    ("7.2-rt", NEW),
    ("7.3-rt", NEW),
    ("7.3", TRACERS),
    ("arm64", FOREIGN),
    ("riscv64", FOREIGN),
];

const HEAD: &str = "# Kernels

onbeat was run on these kernels, all of them Debian's builds emulated by QEMU, none on hardware.
Features of a kernel are detected at run time, and by its version only if a capture has no other evidence.
`onbeat doctor` lists the commands that work on your machine and what each missing need takes, `onbeat audit` the
features that your kernel lacks, `onbeat hunt` the events that it records.

| kernel | architecture | board's checks | settings restored | faults named | skipped (reason) | on hardware |
|-|-|-|-|-|-|-|
";
const FOOT: &str = "
The board's checks are measuring, probing, hunting, watching, capturing and auditing; on arm64 only
measuring, capturing and auditing.
Settings are changed by `tune` and `isolate` and then undone.
Faults have a known cause, place and time.
7.3 on arm64 and 7.2 on riscv64 were booted without onbeat, and their files audited: HRTICK is off
there, because HRTIMER_REARM_DEFERRED is not built.
`cargo xtask live --all --record` writes `lab/results.tsv`, and `cargo xtask docs` this page.
";

/// The page.
pub fn markdown() -> String {
    let results = parse(RECORDED);
    let mut page = HEAD.to_string();
    for board in MACHINES {
        let of_kind = |ending: &str| -> String {
            let of_board = |name: &String| board_of(name).is_some_and(|found| found.name == board.name);
            let is_meant = |name: &String| match ending {
                "" => name == board.name,
                ending => of_board(name) && name.ends_with(ending),
            };
            let found = results.iter().filter(|(name, _)| is_meant(name));
            let words: Vec<String> = found.map(|(_, results)| results.words()).collect();
            if words.is_empty() { "no record".to_string() } else { words.join(", and ") }
        };
        let release = results.get(board.name).map_or(board.name, |results| results.release.as_str());
        let refused = REFUSED.iter().find(|row| row.0 == board.name).map_or("", |row| row.1);
        let [checks, settings, faults] = ["", "-tune", "-faults"].map(of_kind);
        let arch = board.debian_arch;
        let _ = writeln!(page, "| {release} | {arch} | {checks} | {settings} | {faults} | {refused} | no |");
    }
    page + FOOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_has_one_row() {
        let mut named: Vec<&str> = REFUSED.iter().map(|row| row.0).collect();
        let mut machines: Vec<&str> = MACHINES.iter().map(|machine| machine.name).collect();
        named.sort_unstable();
        machines.sort_unstable();
        assert_eq!(named, machines);
        assert!(parse(RECORDED).keys().all(|name| board_of(name).is_some()));
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let results = MachineResults {
            release: "7.3.4-rt".to_string(),
            passed: 3,
            failed: vec!["watch".to_string()],
            left_out: Vec::new(),
        };
        let text = format!("{HEADING}{}", results.line("7.3-rt-4-faults"));
        assert_eq!(parse(&text)["7.3-rt-4-faults"], results);
        assert_eq!(results.words(), "3 of 4; failed `watch`");
        assert_eq!(board_of("7.3-rt-4-faults").unwrap().name, "7.3-rt");
        assert_eq!(board_of("7.3-tune").unwrap().name, "7.3");
    }
}
