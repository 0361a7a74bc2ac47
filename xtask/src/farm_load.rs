//! A farm's server under the load of many boards (`xtask/farm/farm_load.rs`): latency of
//! acknowledgements, memory, and a check that every row is stored once.

use crate::farm_examples::{FarmLine, FarmPrograms, word};
use crate::tools::Result;

/// Simulate many boards that send to a farm's server: acknowledgements, memory, lost and doubled
/// rows.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Number of boards; each sends once in five minutes.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    boards: u64,
    /// Seconds for which they send.
    #[arg(long, value_name = "S", default_value_t = 600)]
    seconds: u64,
    /// `sqlite`, `postgres` (one that is made for it), or an address of an empty database.
    #[arg(long, value_name = "URL", default_value = "sqlite")]
    store: String,
    /// Fail if a limit is missed.
    #[arg(long)]
    gate: bool,
}

/// Builds server and load, and prints the measurements.
pub fn run(options: &Args) -> Result<()> {
    let programs = FarmPrograms::build("farm_load")?;
    let lines = programs.measure("lab/farm-load", |folder| {
        let (boards, seconds) = (options.boards.to_string(), options.seconds.to_string());
        vec![word(&programs.farm), word(folder), options.store.clone(), boards, seconds]
    })?;
    lines.iter().for_each(|line| println!("{}", table_line(line)));
    let missed = lines.iter().filter(|line| line.holds() == Some(false)).count();
    println!("\n{missed} limits missed");
    if options.gate && missed > 0 { Err("a limit was missed".to_string()) } else { Ok(()) }
}

fn table_line(line: &FarmLine) -> String {
    let verdict = line.holds().map_or("", |holds| if holds { "ok" } else { "MISSED" });
    format!("{:<44} {:>14} {:>12}  {verdict}", line.what, line.value, line.limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whether_its_limit_is_kept() {
        let of = |line| table_line(&FarmLine::read(line).unwrap());
        assert!(of("p99\t499.9\t500").ends_with("ok") && of("p99\t500.1\t500").ends_with("MISSED"));
        assert!(of("rows\t333\t").trim_end().ends_with("333"));
    }
}
