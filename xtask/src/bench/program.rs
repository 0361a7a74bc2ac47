//! The two programs: their start, and the parsing of their results.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::live::judge;
use crate::tools::{Result, Running, Tool, read, target};

/// Far more than any run needs.
const LIMIT: Duration = Duration::from_secs(180);

/// Exit codes of a run that completed: 3 and 7 are the statistics' verdicts.
const VERDICTS: [i32; 3] = [0, 3, 7];

/// A build of onbeat, and the folder its runs go to.
pub struct Onbeat {
    path: PathBuf,
    folder: PathBuf,
}

impl Onbeat {
    /// The binary at this path.
    pub fn at(path: PathBuf) -> Result<Onbeat> {
        Ok(Onbeat { path, folder: target("lab/bench")?.join("run") })
    }

    /// The command line, program first. The last run's bundle is removed.
    pub fn line(&self, flags: &str) -> Result<Vec<String>> {
        if self.folder.exists() {
            std::fs::remove_dir_all(&self.folder).map_err(|error| error.to_string())?;
        }
        let mut line = vec![self.path.display().to_string(), "measure".into(), "-q".into()];
        line.extend("-p 80 -a 0-1".split(' ').chain(flags.split(' ')).map(str::to_string));
        line.extend(["-o".into(), self.folder.display().to_string()]);
        Ok(line)
    }

    /// The command line that does nothing but start.
    pub fn version_line(&self) -> Vec<String> {
        vec![self.path.display().to_string(), "--version".into()]
    }

    /// Stored result of the last run, after a check of its sums.
    pub fn stored(&self) -> Result<Value> {
        let bytes = read(&self.folder.join("run.json"))?;
        let run = serde_json::from_slice(&bytes).map_err(|error| format!("run.json: {error}"))?;
        judge::all_sums(&run, &[0, 1])?;
        Ok(run)
    }

    /// Runs to the end.
    pub fn run(&self, flags: &str) -> Result<Value> {
        tool(&self.line(flags)?).within(LIMIT).text()?;
        self.stored()
    }
}

/// The flags by which cyclictest has a thread on each CPU.
#[derive(Clone, Copy)]
pub enum Form {
    /// The variant with the least memory.
    Threads,
    /// The usual variant; it locks whole stacks.
    Smp,
}

impl Form {
    /// Its flags on a machine of two CPUs.
    pub fn name(self) -> &'static str {
        match self {
            Form::Threads => "-m -t -a",
            Form::Smp => "-S -m",
        }
    }

    /// Its flags for CPUs 0 and 1 on a machine with more.
    fn of_two(self) -> &'static str {
        let two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 2);
        if two { self.name() } else { "-m -t 2 -a 0-1" }
    }

    /// The command line: the same CPUs, priority and distance as ours.
    pub fn line(self, flags: &str) -> Vec<String> {
        let line = format!("cyclictest -q {} -p 80 -d 0 {flags}", self.of_two());
        line.split(' ').map(str::to_string).collect()
    }
}

/// cyclictest's command line.
pub fn cyclictest_line(flags: &str) -> Vec<String> {
    Form::Threads.line(flags)
}

/// Runs cyclictest to the end.
pub fn cyclictest(flags: &str) -> Result<String> {
    tool(&cyclictest_line(flags)).within(LIMIT).text()
}

/// A program from its command line.
pub fn tool(line: &[String]) -> Tool {
    let (program, args) = line.split_first().expect("a command line begins with its program");
    Tool::new(program).args(args).quiet()
}

/// Runs to completion, with any verdict as exit code: seconds, and peak resident memory in KiB.
///
/// It runs through `time`, which is small: a child's peak begins with the memory of the process it
/// was forked from. `first` is a program that starts another one.
pub fn timed(first: &[String], line: &[String], limit: Duration) -> Result<(f64, u64)> {
    let report = target("lab/bench")?.join("timed");
    let mut timed = first.to_vec();
    timed.extend(["time", "-q", "-f", "%e %M", "-o"].map(str::to_string));
    timed.push(report.display().to_string());
    timed.extend_from_slice(line);
    let output = tool(&timed).within(limit).capture()?;
    if output.timed_out || !VERDICTS.contains(&output.code) {
        let last = output.stderr.lines().last().unwrap_or_default();
        return Err(format!("{}: exit {}: {last}", line.join(" "), output.code));
    }
    let text = String::from_utf8_lossy(&read(&report)?).into_owned();
    let numbers = text.trim().split_once(' ');
    let parsed = numbers.and_then(|(seconds, peak)| Some((seconds.parse().ok()?, peak.parse().ok()?)));
    parsed.ok_or_else(|| format!("time reported {text:?}"))
}

/// Starts a program in the background; its output goes to a file.
pub fn start(line: &[String]) -> Result<(Running, PathBuf)> {
    let log = target("lab/bench")?.join("output");
    Ok((tool(line).start(Some(&log))?, log))
}

/// The wake-ups of cyclictest's threads, from the lines `T: 0 ( 7) P:80 I:1000 C:   2000 Min: ...`.
pub fn cycles_of(output: &str) -> Result<Vec<u64>> {
    let count = |line: &str| line.split("C:").nth(1)?.split_whitespace().next()?.parse().ok();
    let cycles: Vec<u64> = output.lines().filter(|line| line.contains("T:")).filter_map(count).collect();
    if cycles.is_empty() { Err("cyclictest printed no count of cycles".to_string()) } else { Ok(cycles) }
}

/// A histogram as `(value, count)`, ascending, from the table that `cyclictest -h` prints; samples
/// beyond the table are at its end, with the largest possible value.
pub fn histogram_of(output: &str) -> Result<Vec<(i64, u64)>> {
    let mut rows = Vec::new();
    let mut beyond = 0;
    for line in output.lines() {
        let numbers = line.strip_prefix("# Histogram Overflows:");
        if let Some(numbers) = numbers {
            beyond = numbers.split_whitespace().filter_map(|n| n.parse::<u64>().ok()).sum();
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            let mut numbers = line.split_whitespace().map(str::parse::<u64>);
            let value = numbers.next().and_then(|n| n.ok()).ok_or("a row without a value")?;
            let count = numbers.filter_map(|n| n.ok()).sum();
            if count > 0 {
                rows.push((value as i64, count));
            }
        }
    }
    if beyond > 0 {
        rows.push((i64::MAX, beyond));
    }
    if rows.is_empty() { Err("cyclictest printed no histogram".to_string()) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cyclictests_lines_are_read() {
        let output =
            "T: 0 ( 7) P:80 I:1000 C:   2000 Min:  1 Act:  2\nT: 1 ( 8) P:80 I:1000 C:   1999 Min:  1\n";
        assert_eq!(cycles_of(output), Ok(vec![2000, 1999]));
        assert!(cycles_of("cyclictest: unable\n").is_err());
    }

    #[test]
    fn cyclictests_histogram_is_read() {
        let output = "# Histogram\n000000 000000\t000000\n000007 000003\t000001\n000009 000001\t000000\n\
                      # Total: 000004 000001\n# Histogram Overflows: 00002 00000\n# Thread 0: 00100 00962\n";
        assert_eq!(histogram_of(output), Ok(vec![(7, 4), (9, 1), (i64::MAX, 2)]));
        assert!(histogram_of("# Histogram\n").is_err());
    }
}
