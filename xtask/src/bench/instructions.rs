//! User-space instructions per cycle: the slope of valgrind's count between two numbers of loops,
//! which excludes start and end. Concurrent housekeeping is included, for both tools.

use std::time::Duration;

use super::program::{Onbeat, cycles_of, cyclictest_line, tool};
use super::{Row, Rows};
use crate::live::judge;
use crate::tools::{Output, Result};

/// The function that is the loop, as valgrind names it.
const LOOP: &str = "onbeat::measure::cycle::run_slots*";

pub fn measure(onbeat: &Onbeat, quick: bool) -> Rows {
    let loops = if quick { [1000, 4000] } else { [2000, 12_000] };
    let ours = slope(loops, |loops| {
        let (instructions, _) = counted(&onbeat.line(&format!("-i 1000 -l {loops}"))?)?;
        let run = onbeat.stored()?;
        let cycles = judge::cpus(&run, &[0, 1])?.iter().map(|cpu| judge::count(cpu, "cycles"));
        Ok((instructions, cycles.sum::<Result<u64>>()?))
    })?;
    let peer = slope(loops, |loops| {
        let (instructions, output) = counted(&cyclictest_line(&format!("-i 1000 -l {loops}")))?;
        Ok((instructions, cycles_of(&output)?.iter().sum()))
    })?;
    Ok(vec![Row {
        what: format!("instructions per cycle, -l {} to {}", loops[0], loops[1]),
        ours: format!("{ours:.0}"),
        peer: format!("{peer:.0}"),
        limit: "cyclictest's".to_string(),
        holds: Some(ours <= peer),
    }])
}

/// Instructions of a start: the part common to all commands.
pub fn of_start(onbeat: &Onbeat) -> Result<u64> {
    counted(&onbeat.version_line()).map(|(instructions, _)| instructions)
}

/// Instructions and cycles at both numbers of loops give instructions per cycle.
fn slope(loops: [u32; 2], run: impl Fn(u32) -> Result<(u64, u64)>) -> Result<f64> {
    let (less, few) = run(loops[0])?;
    let (more, many) = run(loops[1])?;
    if many <= few || more < less {
        return Err(format!("{few} and {many} cycles give no slope"));
    }
    Ok((more - less) as f64 / (many - few) as f64)
}

/// Instructions in the measuring loops of a run of 2000 cycles, including callees; by a build that
/// has its symbols.
pub fn of_loop(onbeat: &Onbeat) -> Result<u64> {
    let line = onbeat.line("-i 1000 -l 2000")?;
    let output =
        valgrind(&format!("callgrind --callgrind-out-file=/dev/null --toggle-collect={LOOP}"), &line)?;
    collected_in(&output.stderr).ok_or_else(|| format!("valgrind found no {LOOP}"))
}

fn counted(line: &[String]) -> Result<(u64, String)> {
    let output = valgrind("cachegrind --cache-sim=no --cachegrind-out-file=/dev/null", line)?;
    let count = instructions_in(&output.stderr).ok_or("valgrind printed no count of instructions")?;
    Ok((count, output.stdout))
}

/// Runs to the end under a tool of valgrind; without environment variables, which a start scans.
fn valgrind(tool_and_flags: &str, line: &[String]) -> Result<Output> {
    let mut counted: Vec<String> = format!("env -i PATH=/usr/bin:/bin valgrind --tool={tool_and_flags}")
        .split(' ')
        .map(str::to_string)
        .collect();
    counted.extend_from_slice(line);
    let output = tool(&counted).within(Duration::from_secs(180)).capture()?;
    if output.code != 0 {
        let last = output.stderr.lines().rfind(|line| !line.starts_with("==")).unwrap_or_default();
        return Err(format!("{} under valgrind: exit {}: {last}", line[0], output.code));
    }
    Ok(output)
}

/// The count in `==7== Collected : 1234567`, unless it is 0.
fn collected_in(text: &str) -> Option<u64> {
    let count = text.lines().find_map(|line| line.split_once("Collected :"))?.1;
    count.trim().parse().ok().filter(|&count| count > 0)
}

/// The count in `==7== I   refs:      1,234,567`.
fn instructions_in(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("refs:") && line.contains(" I "))?;
    line.rsplit_once(':')?.1.trim().replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrinds_count_is_read() {
        assert_eq!(collected_in("==7== Events    : Ir\n==7== Collected : 1234567\n"), Some(1_234_567));
        assert_eq!(collected_in("==7== Collected : 0\n"), None);
        assert_eq!(instructions_in("==7== Cachegrind\n==7== I   refs:      1,234,567\n"), Some(1_234_567));
        assert_eq!(instructions_in("==7== I1  misses: 5\n"), None);
    }

    #[test]
    fn a_slope_takes_the_start_out() {
        let run = |loops: u32| Ok((1_000_000 + 140 * u64::from(loops) * 2, u64::from(loops) * 2));
        assert_eq!(slope([1000, 3000], run), Ok(140.0));
        assert!(slope([1000, 1000], run).is_err());
    }
}
