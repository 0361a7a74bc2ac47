//! The probes compared with rt-tests' programs and two small ones in C, on the same CPU, in
//! interleaved pairs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::program::{start, tool};
use super::ratio;
use super::{Row, Rows};
use crate::tools::{Result, Tool, on_path, read, target, write};

const PAIRS: usize = 5;
const LIMIT: Duration = Duration::from_secs(60);
const CPU: &str = "1";

/// rt-tests' programs, by the kind that is the same.
const KINDS: [(&str, &str); 4] =
    [("futex", "ptsematest"), ("mqueue", "pmqtest"), ("semaphore", "svsematest"), ("signal", "sigwaittest")];

/// Length of a hog to be found, and the number of times, with an error of at most a tenth, which is
/// 2 ms.
const HOG_MS: i64 = 20;
const HOGS: usize = 20;
const FOUND: usize = 18;
const GAP_TOLERANCE_NS: i64 = 2_000_000;

/// Inversions of `probe pi` and of pi_stress.
const INVERSIONS: u64 = 2_000;

/// Minimum length of gaps compared with oslat, whose columns are microseconds.
const GAP_US: u64 = 20;

pub fn measure(binary: &Path, quick: bool) -> Rows {
    let (pairs, seconds) = if quick { (2, 1) } else { (PAIRS, 5) };
    let mut rows = Vec::new();
    for (kind, peer) in KINDS {
        let ours = || ipc_mean(binary, kind, seconds);
        let theirs = || rt_tests_mean(peer, seconds);
        let (ours, theirs) = in_pairs(pairs, ours, theirs)?;
        // rt-tests cuts its mean to whole microseconds.
        let away = (theirs - ours).max(ours - (theirs + 1.0)).max(0.0);
        rows.push(row(
            format!("ipc {kind} with {peer}: mean, us"),
            ours,
            theirs,
            "20 % or 1".into(),
            Some(away <= (0.2 * theirs).max(1.0)),
        ));
    }
    rows.push(inversions(binary)?);
    rows.extend(gaps(binary, pairs, seconds)?);
    if !on_path("cc") {
        println!("  switch and hog are skipped: no C compiler found");
        return Ok(rows);
    }
    let program = compiled("switch", include_str!("switch.c"))?;
    let (ours, theirs) = in_pairs(pairs, || switch_mean(binary, seconds), || c_switch(&program, seconds))?;
    let near = (ours - theirs).abs() <= (0.2 * theirs).max(1.0);
    rows.push(row(
        "switch with 40 lines of C: mean, us".into(),
        ours,
        theirs,
        "20 % or 1".into(),
        Some(near),
    ));
    let found = hogs(binary)?;
    rows.push(Row {
        what: format!("spin: hogs of {HOG_MS} ms found within 2 ms, of {HOGS}"),
        ours: found.to_string(),
        peer: String::new(),
        limit: FOUND.to_string(),
        holds: Some(found >= FOUND),
    });
    Ok(rows)
}

fn row(what: String, ours: f64, peer: f64, limit: String, holds: Option<bool>) -> Row {
    Row { what, ours: format!("{ours:.2}"), peer: format!("{peer:.2}"), limit, holds }
}

/// Medians of both over pairs whose order alternates.
fn in_pairs(
    pairs: usize,
    mut ours: impl FnMut() -> Result<f64>,
    mut theirs: impl FnMut() -> Result<f64>,
) -> Result<(f64, f64)> {
    let mut values = Vec::new();
    for pair in 0..pairs {
        let first = if pair % 2 == 0 { ours()? } else { theirs()? };
        let second = if pair % 2 == 0 { theirs()? } else { ours()? };
        values.push(if pair % 2 == 0 { (first, second) } else { (second, first) });
    }
    let of = |which: fn(&(f64, f64)) -> f64| ratio::median(values.iter().map(which));
    of(|pair| pair.0).zip(of(|pair| pair.1)).ok_or_else(|| "no pair was measured".to_string())
}

/// Stored result of a probe of one CPU.
fn probed(binary: &Path, flags: &str) -> Result<Value> {
    let folder = target("lab/bench")?.join("probe");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    }
    let mut line = vec![binary.display().to_string(), "probe".into()];
    line.extend(flags.split(' ').map(str::to_string));
    line.extend(["-a", CPU, "-q", "-o", &folder.display().to_string()].map(str::to_string));
    tool(&line).within(LIMIT).text()?;
    serde_json::from_slice(&read(&folder.join("run.json"))?).map_err(|error| format!("run.json: {error}"))
}

fn number(run: &Value, pointer: &str) -> Result<f64> {
    run.pointer(pointer).and_then(Value::as_f64).ok_or_else(|| format!("run.json has no {pointer}"))
}

fn ipc_mean(binary: &Path, kind: &str, seconds: u64) -> Result<f64> {
    let run = probed(binary, &format!("ipc {kind} --place same -p 80 -D {seconds}"))?;
    Ok(number(&run, "/cpus/0/mean_ns")? / 1e3)
}

fn switch_mean(binary: &Path, seconds: u64) -> Result<f64> {
    Ok(number(&probed(binary, &format!("switch -p 80 -D {seconds}"))?, "/cpus/0/mean_ns")? / 1e3)
}

/// Runs the program by its path: svsematest makes a key of it.
fn rt_tests_mean(program: &str, seconds: u64) -> Result<f64> {
    let line = format!("/usr/bin/{program} -q -p 80 -a {CPU} -t 1 -d 0 -i 1000 -D {seconds}");
    let line: Vec<String> = line.split(' ').map(str::to_string).collect();
    average_of(&tool(&line).within(LIMIT).text()?)
}

/// Inversions that were resolved, of as many in a group of three threads.
fn inversions(binary: &Path) -> Result<Row> {
    let run = probed(binary, &format!("pi -l {INVERSIONS} -i 500us -D 60"))?;
    let ours = number(&run, "/cpus/0/inversions/resolved")?;
    let line = format!("pi_stress -q -g 1 -i {INVERSIONS}");
    let line: Vec<String> = line.split(' ').map(str::to_string).collect();
    let theirs = performed(&tool(&line).within(LIMIT).text()?)?;
    let what = format!("pi with pi_stress: inversions resolved, of {INVERSIONS}");
    let all = INVERSIONS as f64;
    // pi_stress counts one more than it was asked for.
    Ok(row(what, ours, theirs, INVERSIONS.to_string(), Some(ours == all && theirs >= all)))
}

/// `Total inversion performed: 2001`.
fn performed(output: &str) -> Result<f64> {
    let number = |line: &str| line.split("Total inversion performed:").nth(1)?.trim().parse().ok();
    output.lines().find_map(number).ok_or_else(|| "its output has no number of inversions".to_string())
}

/// `..., Min    2, Cur    3, Avg    3, Max   17`, of the last line that has it.
fn average_of(output: &str) -> Result<f64> {
    let average =
        |line: &str| line.split("Avg").nth(1)?.split([',', ' ']).find(|word| !word.is_empty())?.parse().ok();
    output.lines().filter_map(average).next_back().ok_or_else(|| "its output has no mean".to_string())
}

fn compiled(name: &str, source: &str) -> Result<PathBuf> {
    let folder = target("lab/bench")?;
    let (from, program) = (folder.join(format!("{name}.c")), folder.join(name));
    write(&from, source)?;
    let (from, to) = (from.display().to_string(), program.display().to_string());
    Tool::new("cc").args(["-O2", "-pthread", "-o", &to, &from]).quiet().within(LIMIT).text()?;
    Ok(program)
}

fn c_switch(program: &Path, seconds: u64) -> Result<f64> {
    let line = [program.display().to_string(), CPU.into(), (seconds * 20_000).to_string()];
    let text = tool(&line).within(LIMIT).text()?;
    let mean = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    mean.map(|ns| ns / 1e3).ok_or_else(|| format!("switch printed {text:?}"))
}

/// Time in gaps of 20 us and more, and their number, against oslat: both spin under SCHED_OTHER.
fn gaps(binary: &Path, pairs: usize, seconds: u64) -> Rows {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let spin = || -> Result<(f64, f64)> {
            let run = probed(binary, &format!("spin --over {GAP_US}us -D {seconds}"))?;
            Ok((number(&run, "/cpus/0/sum_ns")? / 1e3, number(&run, "/cpus/0/cycles")?))
        };
        let peer = || -> Result<(f64, f64)> {
            let line = format!("oslat -c {CPU} -C 0 -b 1024 -z -D {seconds}");
            let line: Vec<String> = line.split(' ').map(str::to_string).collect();
            Ok(oslat_gaps(&tool(&line).within(LIMIT).text()?))
        };
        if pair % 2 == 0 {
            ours.push(spin()?);
            theirs.push(peer()?);
        } else {
            theirs.push(peer()?);
            ours.push(spin()?);
        }
    }
    let rows = [("lost, us", 0), ("gaps", 1)].map(|(what, which)| {
        let of = |side: &[(f64, f64)]| {
            let values = side.iter().map(|both| if which == 0 { both.0 } else { both.1 });
            ratio::median(values).unwrap_or_default()
        };
        let (ours, theirs) = (of(&ours), of(&theirs));
        row(
            format!("spin with oslat from {GAP_US} us on: {what}"),
            ours,
            theirs,
            format!("{:.2}", ours / theirs),
            None,
        )
    });
    Ok(rows.into())
}

/// Parses `    031 (us):   12` to the total time and number of gaps of at least that length. The
/// last column contains all longer ones, which count with its length.
fn oslat_gaps(output: &str) -> (f64, f64) {
    let column = |line: &str| {
        let (us, counts) = line.split_once("(us):")?;
        let count: u64 = counts.split_whitespace().next()?.parse().ok()?;
        Some((us.trim().parse::<u64>().ok()?, count))
    };
    let long = output.lines().filter_map(column).filter(|(us, _)| *us >= GAP_US);
    long.fold((0.0, 0.0), |(lost, n), (us, count)| (lost + (us * count) as f64, n + count as f64))
}

/// Number of the hog's times that are among the gaps.
fn hogs(binary: &Path) -> Result<usize> {
    let program = compiled("hog", include_str!("hog.c"))?;
    let line = [program.display().to_string(), CPU.into(), HOGS.to_string(), HOG_MS.to_string()];
    let (hog, log) = start(&line)?;
    let run = probed(binary, "spin -p 10 --over 1ms -D 6")?;
    hog.finish(LIMIT)?;
    let taken = String::from_utf8_lossy(&read(&log)?).into_owned();
    let gaps: Vec<(i64, i64)> = run["gaps"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|gap| Some((gap["mono_ns"].as_i64()?, gap["ns"].as_i64()?)))
        .collect();
    Ok(count_gaps(&taken, &gaps))
}

fn count_gaps(taken: &str, gaps: &[(i64, i64)]) -> usize {
    let time = |line: &str| {
        let (begin, length) = line.split_once(' ')?;
        Some((begin.parse::<i64>().ok()?, length.trim().parse::<i64>().ok()?))
    };
    let is_found = |(begin, length): &(i64, i64)| {
        let near = |a: i64, b: i64| (a - b).abs() <= GAP_TOLERANCE_NS;
        gaps.iter().any(|gap| near(gap.0, *begin) && near(gap.1, *length))
    };
    taken.lines().filter_map(time).filter(is_found).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_answers_are_read() {
        let text = "#0: ID7, P80, CPU1, I1000; #1: ID8, P80, CPU1, Cycles 1999\n\
                    #1 -> #0, Min    2, Cur    3, Avg    3, Max   17\n";
        assert_eq!(average_of(text), Ok(3.0));
        assert_eq!(performed("Total inversion performed: 2001\nTest Duration: 0\n"), Ok(2001.0));
        assert!(average_of("ftok: No such file\n").is_err());
        assert_eq!(
            oslat_gaps("  019 (us): 7\n  020 (us): 2\n  1024 (us): 1 (including overflows)\n"),
            (1_064.0, 3.0)
        );
    }

    #[test]
    fn a_hog_is_found_by_its_time_and_its_length() {
        let taken = "1000000000 20000000\n2000000000 20000000\n3000000000 20000000\n";
        let gaps = [(999_999_000, 20_100_000), (2_000_000_000, 23_000_000), (3_500_000_000, 20_000_000)];
        assert_eq!(count_gaps(taken, &gaps), 1);
    }
}
