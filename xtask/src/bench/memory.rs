//! Peak resident memory, as the kernel tells a parent when its child has ended.

use std::time::Duration;

use super::program::{Onbeat, cyclictest_line, tool};
use super::{Row, Rows};
use crate::tools::{Result, target};

const DEFAULT_KIB: u64 = 5 * 1024;
const STATIC_KIB: u64 = 3 * 1024;

pub fn measure(default: &Onbeat, fixed: &Onbeat, quick: bool) -> Rows {
    // Past the first checkpoint, which is the largest thing a run writes.
    let flags = format!("-i 1000 -D {}", if quick { 3 } else { 13 });
    let peer = peak(&cyclictest_line(&flags))?;
    let row = |name: &str, ours: u64, limit: u64| Row {
        what: format!("peak resident memory, {name} build, KiB"),
        ours: ours.to_string(),
        peer: format!("{peer} (-m)"),
        limit: limit.to_string(),
        holds: Some(ours <= limit),
    };
    Ok(vec![
        row("default", peak(&default.line(&flags)?)?, DEFAULT_KIB),
        row("static", peak(&fixed.line(&flags)?)?, STATIC_KIB),
    ])
}

/// Through `time`, which is small: a child's peak begins with the memory of the process it was forked from.
fn peak(line: &[String]) -> Result<u64> {
    let report = target("lab/bench")?.join("peak");
    let mut timed: Vec<String> = "time -q -f %M -o".split(' ').map(str::to_string).collect();
    timed.push(report.display().to_string());
    timed.extend_from_slice(line);
    tool(&timed).within(Duration::from_secs(60)).text()?;
    let text = String::from_utf8_lossy(&crate::tools::read(&report)?).into_owned();
    text.trim().parse().map_err(|_| format!("time reported {text:?}"))
}
