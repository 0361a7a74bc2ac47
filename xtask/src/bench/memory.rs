//! Peak resident memory, as the kernel tells a parent when its child has ended.

use std::time::Duration;

use super::program::{Onbeat, cyclictest_line, timed};
use super::{Row, Rows};
use crate::tools::Result;

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

fn peak(line: &[String]) -> Result<u64> {
    timed(line, Duration::from_secs(60)).map(|(_, peak)| peak)
}
