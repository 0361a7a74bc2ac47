//! Instructions that a hunt's recording adds to a wake-up: the emulator's virtual time advances
//! by a nanosecond with each one, so latencies count instructions and are the same in each run.

use std::path::Path;

use super::ratio;
use super::{Row, Rows};
use crate::debian::{self, Need};
use crate::live::frames::{self, Reply};
use crate::live::image;
use crate::live::machine::{self, Machine, NEW_RT, RT};
use crate::live::qemu;
use crate::tools::{Result, read};

const MAIN: &str = include_str!("recording.sh");

const MACHINES: [Machine; 2] = [counting("6.12-rt-counting", RT), counting("7.3-rt-counting", NEW_RT)];

/// A machine of one CPU, whose idle time passes at once, with a time stamp counter of the virtual
/// time.
const fn counting(name: &'static str, machine: Machine) -> Machine {
    Machine {
        name,
        accel: "tcg,thread=single",
        smp: "1",
        devices: &["-icount", "shift=0,sleep=off"],
        words: "quiet tsc=reliable clocksource=tsc",
        urgent: false,
        ..machine
    }
}

const CONDITIONS: [&str; 3] = ["quiet", "user", "kernel"];
const LEVELS: [&str; 2] = ["events", "stacks"];

pub fn measure(onbeat: &Path, before: Option<&Path>, quick: bool) -> Rows {
    let rounds = if quick { 1 } else { 3 };
    let builds = if before.is_some() { "onbeat before" } else { "onbeat" };
    let mut items = vec![
        ("lab/main.sh".to_string(), MAIN.into()),
        ("lab/builds".to_string(), builds.into()),
        ("lab/rounds".to_string(), (1..=rounds).map(|n| format!("{n} ")).collect::<String>().into()),
    ];
    if let Some(before) = before {
        items.push(("bin/before".to_string(), read(before)?));
    }
    let mut rows = Vec::new();
    for machine in &MACHINES {
        debian::ensure(&[Need { program: machine.emulator, package: machine.package }])?;
        let kernel = machine::kernel(machine)?;
        let busybox = debian::busybox(machine.debian_arch)?;
        let archive =
            image::initramfs(&busybox, &image::GuestProgram::fixed(read(onbeat)?), &kernel.config, &items);
        let booted = qemu::boot(machine, &qemu::Image::write(machine, kernel.image, &archive)?);
        qemu::remove_image(machine);
        let booted = booted?;
        let report = frames::parse(&booted.results);
        let reply = report.replies.get("recording").filter(|reply| reply.over == Some(0));
        let reply = reply.ok_or_else(|| format!("{}: {}", machine.name, booted.last_words))?;
        for condition in CONDITIONS {
            for level in LEVELS {
                rows.push(row(machine, reply, before.is_some(), rounds, condition, level)?);
            }
        }
    }
    Ok(rows)
}

/// Instructions that a level adds to the median wake-up, with the ends of all rounds, and the ratio
/// to the build before.
fn row(
    machine: &Machine,
    reply: &Reply,
    compares: bool,
    rounds: usize,
    condition: &str,
    level: &str,
) -> Result<Row> {
    let added = |build: &str| -> Result<Vec<f64>> {
        let median = |round: usize, level: &str| {
            let text = reply.value(&format!("{condition}-{build}-{round}-{level}"))?;
            let median = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
            median.ok_or_else(|| format!("no median: {text:?}"))
        };
        (1..=rounds).map(|round| Ok(median(round, level)? - median(round, "none")?)).collect()
    };
    let text = |values: &[f64]| {
        let ends = [f64::min, f64::max].map(|end| values.iter().copied().reduce(end).unwrap_or_default());
        let median = ratio::median(values.iter().copied()).unwrap_or_default();
        format!("{median:.0} [{:.0}, {:.0}]", ends[0], ends[1])
    };
    let ours = added("onbeat")?;
    let before = if compares { added("before")? } else { Vec::new() };
    let pairs: Vec<(f64, f64)> = ours.iter().copied().zip(before.iter().copied()).collect();
    let kernel = machine.name.trim_end_matches("-counting");
    Ok(Row {
        what: format!("{level} add to a {condition} wake-up, {kernel}"),
        ours: text(&ours),
        peer: if compares { format!("before {}", text(&before)) } else { String::new() },
        limit: ratio::of_pairs(&pairs).map_or_else(String::new, |ratio| format!("{:.2}", ratio.median)),
        holds: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_compared_in_pairs() {
        let mut reply = Reply::default();
        let mut add = |label: String, text: &str| drop(reply.values.insert(label, text.to_string()));
        for round in 1..=2 {
            for (build, none, events) in [("onbeat", "9 100", "9 300"), ("before", "9 100", "9 500")] {
                add(format!("quiet-{build}-{round}-none"), none);
                add(format!("quiet-{build}-{round}-events"), events);
            }
        }
        let row_of = |compares| row(&MACHINES[0], &reply, compares, 2, "quiet", "events");
        let row = row_of(true).unwrap();
        assert_eq!((row.ours.as_str(), row.limit.as_str()), ("200 [200, 200]", "0.50"));
        assert_eq!(row.peer, "before 400 [400, 400]");
        assert_eq!(row_of(false).unwrap().peer, "");
        assert!(super::row(&MACHINES[0], &reply, true, 3, "quiet", "events").is_err());
        assert!(CONDITIONS.iter().all(|condition| MAIN.contains(&format!("all {condition}\n"))));
        assert!(LEVELS.iter().all(|level| MAIN.contains(&format!("-{level} $build hunt"))));
    }
}
