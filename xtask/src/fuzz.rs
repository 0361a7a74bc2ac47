//! The fuzz targets, each for some time, with seeds from the tests' recordings: executions,
//! coverage and findings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::units::{Cpu, Nanos};
use trace::catalog;
use trace::decode::Decoder;
use trace::event::{Named, What};
use trace::naming::Naming;
use trace::window::Window;

use crate::tools::{Result, Tool, read, root, write};

/// Windows cut out of the pages of one machine.
const WINDOWS: usize = 12;

/// Functions that judgements look for, for addresses without a list.
const NAMES: [&str; 8] = [
    "hrtimer_wakeup",
    "tick_nohz_handler",
    "asm_sysvec_apic_timer_interrupt",
    "_raw_spin_unlock_irqrestore",
    "finish_task_switch",
    "default_idle",
    "vmstat_update",
    "driver_poll [driver]",
];

/// Seeds from the tests' recordings, then every fuzz target; needs a nightly toolchain and
/// cargo-fuzz.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Time for each target.
    #[arg(long, value_name = "N", default_value_t = 600)]
    seconds: u64,
    /// Run only targets whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// Builds the targets, adds seeds, and runs one after the other.
pub fn run(options: &Args) -> Result<()> {
    let fuzz = root().join("fuzz");
    let wanted = |name: &String| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let targets: Vec<String> = targets(&fuzz)?.into_iter().filter(wanted).collect();
    if targets.is_empty() {
        return Err("no target has that name".to_string());
    }
    seeds(&fuzz.join("corpus"))?;
    let cargo = |args: &[&str]| Tool::new("cargo").args(["+nightly", "fuzz"]).args(args).dir(&root());
    cargo(&["build"]).show()?;
    let mut broken = Vec::new();
    for target in &targets {
        let time = format!("-max_total_time={}", options.seconds);
        let line = ["run", target, "--", "-max_len=65536", "-rss_limit_mb=1024", "-timeout=20", &time];
        let output = cargo(&line).within(Duration::from_secs(options.seconds + 600)).capture()?;
        println!("{target:<12} {}", last_output(&output.stderr));
        if output.code != 0 {
            broken.push(target.as_str());
        }
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!("inputs in fuzz/artifacts break {}", broken.join(", ")))
    }
}

/// Last output of libFuzzer: executions, coverage, or the failure.
fn last_output(stderr: &str) -> String {
    let found = |words: &str| stderr.lines().rev().find(|line| line.contains(words)).unwrap_or_default();
    let reached = found(" cov: ");
    let reached = reached.split_whitespace().skip_while(|word| *word != "cov:").take(4).collect::<Vec<_>>();
    format!("{} {} {}", found("Done "), reached.join(" "), found("SUMMARY:")).trim().to_string()
}

fn targets(fuzz: &Path) -> Result<Vec<String>> {
    let files = folder(&fuzz.join("fuzz_targets"))?;
    Ok(files.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_string())).collect())
}

fn folder(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

/// Writes seeds from existing files: results of other tools, uploads of boards to a farm, pages as
/// the kernel wrote them, windows cut out of those.
fn seeds(corpus: &Path) -> Result<()> {
    let tests = root().join("tests");
    for fixture in folder(&tests.join("fixtures/cyclictest"))? {
        put(corpus, "import", &fixture.display().to_string(), &read(&fixture)?)?;
    }
    for fixture in folder(&tests.join("fixtures/foreign/traces"))? {
        put(corpus, "foreign_trace", &fixture.display().to_string(), &read(&fixture)?)?;
    }
    for name in ["manifest", "rows", "run_rows"] {
        for seed in folder(&root().join("crates/farm/tests/hostile").join(name))? {
            put(corpus, &format!("farm_{name}"), &seed.display().to_string(), &read(&seed)?)?;
        }
    }
    for machine in folder(&tests.join("pages"))?.into_iter().filter(|path| path.is_dir()) {
        let name = machine.display().to_string();
        let [header, formats] = ["header_page", "formats"].map(|file| machine.join(file));
        let text = |path: &Path| read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let (header, formats) = (text(&header)?, text(&formats)?);
        let decoder = Decoder::new(&header, false, &catalog::formats(&formats))?;
        let size = decoder.layout().page_size();
        let mut events: Vec<Named> = Vec::new();
        for cpu in [0, 1] {
            let bytes = read(&machine.join(format!("cpu{cpu}.raw")))?;
            for (number, page) in bytes.chunks(size).enumerate() {
                put(corpus, "page", &format!("{name}-{cpu}-{number}"), page)?;
                decoder.page(Cpu(cpu), page, &mut |event| events.push(event.named(&mut Some8)));
            }
        }
        events.sort_by_key(|event| event.time);
        for (number, window) in windows(&events).iter().enumerate() {
            let line = serde_json::to_vec(window).map_err(|error| error.to_string())?;
            put(corpus, "window", &format!("{name}-{number}"), &line)?;
        }
    }
    Ok(())
}

/// A seed in its target's corpus, under a name that stays the same.
fn put(corpus: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let dir = corpus.join(target);
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let name: String = name.rsplit('/').take(2).collect::<Vec<_>>().join("-");
    write(&dir.join(format!("seed-{name}")), bytes)
}

/// Windows from each waking to the switch to that thread, including a millisecond before.
fn windows(events: &[Named]) -> Vec<Window> {
    let one = |(at, waking): (usize, &Named)| {
        let What::Waking { task, target } = &waking.what else { return None };
        let came = events[at..].iter().find(
            |event| matches!(&event.what, What::Switch { next, .. } if next.pid == task.pid && event.cpu == *target),
        )?;
        let (from, to) = (waking.time - Nanos::MILLI, came.time);
        Some(Window {
            cpu: *target,
            expected_ns: waking.time,
            actual_ns: to,
            victim: *task,
            events: events.iter().filter(|event| event.time >= from && event.time <= to).cloned().collect(),
            ..Window::default()
        })
    };
    events.iter().enumerate().filter_map(one).take(WINDOWS).collect()
}

/// Eight names for all addresses.
struct Some8;

impl Naming<u64, String> for Some8 {
    fn function(&mut self, place: u64) -> String {
        let name = NAMES[(place >> 4) as usize % NAMES.len()];
        if place == 0 { String::new() } else { name.to_string() }
    }

    fn object(&mut self, address: u64) -> u64 {
        address >> 6 & 0xf
    }

    fn stack(&mut self, frames: Vec<u64>) -> (Vec<String>, Option<usize>) {
        let enables = (frames.len() > 2).then_some(2);
        (frames.into_iter().map(|frame| self.function(frame)).collect(), enables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recordings_give_windows_that_add_up() {
        let folder = std::env::temp_dir().join(format!("onbeat-seeds-{:016x}", host::random_u64()));
        let made = seeds(&folder);
        let lines: Vec<Vec<u8>> = super::folder(&folder.join("window"))
            .unwrap_or_default()
            .iter()
            .map(|path| read(path).unwrap())
            .collect();
        std::fs::remove_dir_all(&folder).unwrap();
        made.unwrap();
        assert!(lines.len() > 20, "{}", lines.len());
        for line in lines {
            let window: Window = serde_json::from_slice(&line).unwrap();
            let spike = trace::timeline::explain(&window, &Default::default(), Default::default());
            let sum: i64 = spike.slices.iter().map(|slice| slice.ns.0).sum();
            assert_eq!(sum + spike.unexplained_ns.0, spike.latency_ns.0);
        }
    }
}
