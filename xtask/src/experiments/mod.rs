//! The long synthetic experiments by which the statistics are accepted: their error rates on drawn
//! data; and records of years.
//!
//! Seeds are fixed: a number changes only with the code that makes it. Each line has the bounds
//! that the design set for it; a published rate is a simulation too, so that the errors of both
//! count.

mod changes;
mod combs;
mod compared;
mod cures;
mod deaths;
mod disturbed;
mod farm_kills;
mod farm_outage;
mod fits;
mod gates;
mod hidden;
mod line;
mod pairs;
mod printed;
mod proofs;
mod rates;
mod records;
mod tails;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::tools::{Result, Tool, root};
use line::ResultLine;

/// Run the statistics on simulated data: error rates of bounds, gates and comparisons.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct Args {
    /// Run only experiments whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Run for a minute; all take about ten.
    #[arg(long)]
    quick: bool,
}

impl Args {
    /// All experiments, with few repetitions.
    pub const QUICK: Args = Args { only: None, quick: true };

    fn line(&self) -> Vec<&str> {
        let only = self.only.as_deref().map(|name| ["--only", name]);
        only.into_iter().flatten().chain(self.quick.then_some("--quick")).collect()
    }
}

/// Number of repetitions of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    quick: bool,
}

impl Length {
    /// The number for a long or a quick run.
    pub fn of(self, long: u32, quick: u32) -> u32 {
        if self.quick { quick } else { long }
    }
}

/// An experiment: its name, and the function that makes its lines.
type Experiment = (&'static str, Box<dyn Fn(Length) -> Vec<ResultLine> + Send + Sync>);

/// Runs the experiments in a fast build.
pub fn run(options: &Args) -> Result<()> {
    // Debug builds take several times as long: run the command again, from a release build.
    let by_itself = [deaths::NAME, farm_kills::NAME, farm_outage::NAME];
    let slow =
        cfg!(debug_assertions) && !options.only.as_deref().is_some_and(|only| by_itself.contains(&only));
    if slow {
        let cargo = ["run", "--quiet", "--release", "--package", "xtask", "--", "experiments"];
        return Tool::new("cargo").args(cargo).args(options.line()).dir(&root()).show();
    }
    run_here(options)
}

/// Runs the experiments in this build, prints their table, and names the bounds that are broken.
pub fn run_here(options: &Args) -> Result<()> {
    let mut chosen: Vec<Experiment> = [
        tails::all(),
        printed::all(),
        rates::all(),
        changes::all(),
        compared::all(),
        proofs::all(),
        cures::all(),
        hidden::all(),
        gates::all(),
        disturbed::all(),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Ten years take hours, as do five hundred deaths of the program; a thousand of a server and
    // its hour without a database need a build of the farm: only by name.
    if options.only.is_some() {
        chosen.extend(records::all());
        chosen.extend(deaths::all());
        chosen.extend(farm_kills::all());
        chosen.extend(farm_outage::all());
    }
    chosen.retain(|(name, _)| options.only.as_ref().is_none_or(|only| name.contains(only.as_str())));
    if chosen.is_empty() {
        return Err("no experiment has that name".to_string());
    }
    let made = side_by_side(&chosen, Length { quick: options.quick });
    println!("{}", line::head());
    let mut broken = 0;
    for ((name, _), lines) in chosen.iter().zip(made) {
        for line in lines {
            println!("{}", line.print(name, options.quick));
            broken += usize::from(!line.holds(options.quick));
        }
    }
    println!("\n{broken} bounds broken");
    if broken > 0 { Err("a bound is broken".to_string()) } else { Ok(()) }
}

/// The lines of each, made by as many threads as there are CPUs.
fn side_by_side(experiments: &[Experiment], length: Length) -> Vec<Vec<ResultLine>> {
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<Vec<ResultLine>>> = experiments.iter().map(|_| Mutex::new(Vec::new())).collect();
    let work = || {
        while let Some((at, (_, make))) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, experiments.get(at)?)))
        {
            *slots[at].lock().expect("no thread panics with it") = make(length);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(work);
        }
    });
    slots.into_iter().map(|slot| slot.into_inner().expect("no thread panics with it")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_passed_on() {
        assert_eq!(Args { only: Some("gates".into()), quick: true }.line(), ["--only", "gates", "--quick"]);
        assert_eq!(Args::default().line(), [""; 0]);
    }

    #[test]
    fn every_experiment_has_its_lines_in_its_place() {
        let experiment =
            |n: u32| -> Experiment { ("a", Box::new(move |_| vec![ResultLine::rate("x", f64::from(n), 1)])) };
        let made = side_by_side(&[experiment(1), experiment(0), experiment(1)], Length { quick: true });
        let results: Vec<f64> = made.into_iter().flatten().map(|line| line.result).collect();
        assert_eq!(results, [1.0, 0.0, 1.0]);
    }
}
