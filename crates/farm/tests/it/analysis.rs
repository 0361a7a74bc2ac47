//! Parquet files of the farm, read by the programs that its documentation names.

use std::path::Path;
use std::process::Command;

use super::server::farm;

/// Query for each program: sums by board, year and month, which only the folders' names contain.
const QUERY: &str = "select board, year, month, count(*), sum(n), max(max_ns), cast(min(t) as varchar(30)), \
                     cast(max(max_at) as varchar(30)) from slots group by board, year, month order by board";

/// Prints the rows of the query over the files below its first argument, times in UTC.
const DUCKDB: &str = "import duckdb, sys
duckdb.sql(\"set timezone = 'UTC'\")
duckdb.sql(\"create view slots as select * from read_parquet('\" + sys.argv[1] + \
    \"/**/*.parquet', hive_partitioning=true)\")
for row in duckdb.sql(sys.argv[2]).fetchall(): print(*row, sep='|')";

const SPARK: &str = "import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master('local[1]')
spark = spark.config('spark.ui.enabled', 'false').config('spark.driver.bindAddress', '127.0.0.1')
spark = spark.config('spark.driver.host', '127.0.0.1').config('spark.sql.session.timeZone', 'UTC')
spark = spark.getOrCreate()
spark.read.parquet(sys.argv[1]).createOrReplaceTempView('slots')
for row in spark.sql(sys.argv[2]).collect(): print(*row, sep='|')";

/// Checks that this machine has the requirements of a reader; the error is the missing one.
fn has(module: &str, program: &str) -> Result<(), String> {
    let works = |command: &mut Command| command.output().is_ok_and(|done| done.status.success());
    if !works(Command::new("python3").args(["-c", &format!("import {module}")])) {
        return Err(format!("Python has no module {module}"));
    }
    if !works(Command::new(program).arg("--version")) {
        return Err(format!("there is no {program}"));
    }
    Ok(())
}

/// A store with two boards, and the folder of its export.
fn exported(folder: &Path) -> (String, String) {
    let at = |name: &str| folder.join(name).display().to_string();
    let store = format!("sqlite:{}", at("farm.db"));
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    for (board, run) in [("press-3", "measured"), ("press-4", "hunt")] {
        let run = runs.join(run).display().to_string();
        assert!(farm(&["import", "--board", board, "--store", &store, &run]).status().unwrap().success());
    }
    let export = || farm(&["export", "--parquet", &at("maxima"), "--store", &store]).output().unwrap();
    let first = export();
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert_eq!(export().status.code(), Some(2), "a folder with something in it is not written to");
    (store, at("maxima"))
}

/// Cells of a board in the query's result, from the rows of the export as CSV.
fn wanted(csv: &str, board: &str) -> [String; 6] {
    let rows: Vec<Vec<&str>> =
        csv.lines().filter(|line| line.starts_with(board)).map(|line| line.split(',').collect()).collect();
    let sum: u64 = rows.iter().map(|row| row[5].parse::<u64>().unwrap()).sum();
    let max = rows.iter().map(|row| row[7].parse::<u64>().unwrap()).max().unwrap();
    let (year, month) = (&rows[0][4][..4], rows[0][4][5..7].trim_start_matches('0'));
    [board, year, month, &rows.len().to_string(), &sum.to_string(), &max.to_string()].map(str::to_owned)
}

fn read_by(name: &str, program: &str, module: &str, script: &str) {
    if let Err(why) = has(module, program) {
        eprintln!("left out: {name} ({why})");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (store, maxima) = exported(folder.path());
    let read = Command::new("python3").args(["-c", script, &maxima, QUERY]).output().unwrap();
    let (out, said) = (String::from_utf8(read.stdout).unwrap(), String::from_utf8_lossy(&read.stderr));
    let csv = String::from_utf8(farm(&["export", "--store", &store]).output().unwrap().stdout).unwrap();
    for board in ["press-3", "press-4"] {
        let line = out.lines().find(|line| line.starts_with(board)).unwrap_or_else(|| panic!("{out}{said}"));
        let found: Vec<&str> = line.split('|').collect();
        assert_eq!(found[..6], wanted(&csv, board), "{line}");
        // Times are times, not numbers: they begin as those of the CSV do.
        let row: Vec<&str> = csv.lines().find(|line| line.starts_with(board)).unwrap().split(',').collect();
        assert!(found[6].starts_with(&row[4][..10]) && found[7].starts_with(&row[4][..10]), "{line}");
    }
}

#[test]
fn duckdb_reads_what_is_exported() {
    read_by("DuckDB", "python3", "duckdb", DUCKDB);
}

#[test]
fn spark_reads_what_is_exported() {
    read_by("Spark", "java", "pyspark", SPARK);
}
