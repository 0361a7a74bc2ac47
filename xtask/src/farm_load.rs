//! A farm's server under the load of many boards (`crates/farm/examples/farm_load.rs`): how long
//! acknowledgements take, what memory it takes, and that all is there, once.

use crate::tools::{Result, Tool, root, target};

/// Many boards that send to a farm's server: acknowledgements, memory, lost and doubled rows.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Boards; each sends once in five minutes.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    boards: u64,
    /// How long they send.
    #[arg(long, value_name = "S", default_value_t = 600)]
    seconds: u64,
    /// `sqlite`, `postgres` (one that is made for it), or an address of an empty database.
    #[arg(long, value_name = "URL", default_value = "sqlite")]
    store: String,
    /// A missed limit is an error.
    #[arg(long)]
    gate: bool,
}

/// Builds server and load, and prints what was measured.
pub fn run(options: &Args) -> Result<()> {
    let folder = target("lab/farm-load")?;
    // An old store has boards that were there before.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let build = ["build", "--quiet", "--profile", "farm", "--package", "onbeat-farm"];
    let with = ["--features", "fixture", "--bins", "--example", "farm_load"];
    Tool::new("cargo").args(build).args(with).dir(&root()).show()?;
    let built = target("farm")?;
    let line = [
        built.join("onbeat-farm").display().to_string(),
        folder.display().to_string(),
        options.store.clone(),
        options.boards.to_string(),
        options.seconds.to_string(),
    ];
    let text = Tool::new(built.join("examples/farm_load")).args(line).text();
    let _ = std::fs::remove_dir_all(&folder);
    let mut missed = 0;
    for line in text?.lines() {
        let (shown, holds) = row(line)?;
        println!("{shown}");
        missed += usize::from(!holds);
    }
    println!("\n{missed} limits missed");
    if options.gate && missed > 0 { Err("a limit was missed".to_string()) } else { Ok(()) }
}

/// A line of what, value and limit; whether the limit is kept.
fn row(line: &str) -> Result<(String, bool)> {
    let [what, value, limit] = line.split('\t').collect::<Vec<_>>()[..] else {
        return Err(format!("the load's answer is no line of a table: {line}"));
    };
    let number = |text: &str| text.parse::<f64>().ok();
    let holds = number(limit).is_none_or(|limit| number(value).is_some_and(|value| value <= limit));
    let verdict = match (limit.is_empty(), holds) {
        (true, _) => "",
        (false, true) => "ok",
        (false, false) => "MISSED",
    };
    Ok((format!("{what:<44} {value:>14} {limit:>12}  {verdict}"), holds))
}

#[cfg(test)]
mod tests {
    use super::row;

    #[test]
    fn a_limit_is_kept_or_missed_or_not_there() {
        let of = |line| row(line).unwrap();
        assert!(of("rows\t333\t").1 && of("lost\t0\t0").1 && of("p99\t499.9\t500").0.ends_with("ok"));
        let missed = of("p99\t500.1\t500");
        assert!(!missed.1 && missed.0.ends_with("MISSED") && !of("lost\tnone\t0").1);
        assert!(row("something else").is_err());
    }
}
