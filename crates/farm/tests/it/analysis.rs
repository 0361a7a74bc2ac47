//! Parquet files of the farm, read by another program.

use std::process::Command;

use super::server::farm;

/// Sums what is there by board and year, and by a column that no file has.
const READ: &str = "import duckdb, sys
rows = duckdb.sql(\"select board, year, month, count(*), sum(n), max(max_ns), min(t)::varchar from \
 read_parquet('\" + sys.argv[1] + \"/**/*.parquet', hive_partitioning=true) group by all order by all\")
for row in rows.fetchall(): print(*row, sep='|')";

#[test]
fn duckdb_reads_what_is_exported() {
    if !Command::new("python3").args(["-c", "import duckdb"]).output().is_ok_and(|done| done.status.success())
    {
        eprintln!("left out: Python has no module duckdb");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = format!("sqlite:{}", at("farm.db"));
    let runs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    for (board, run) in [("press-3", "measured"), ("press-4", "hunt")] {
        let run = runs.join(run).display().to_string();
        assert!(farm(&["import", "--board", board, "--store", &store, &run]).status().unwrap().success());
    }
    let exported = farm(&["export", "--parquet", &at("maxima"), "--store", &store]).output().unwrap();
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    // A folder with something in it is somebody's.
    assert_eq!(
        farm(&["export", "--parquet", &at("maxima"), "--store", &store]).status().unwrap().code(),
        Some(2)
    );
    let read = Command::new("python3").args(["-c", READ, &at("maxima")]).output().unwrap();
    let (out, said) = (String::from_utf8(read.stdout).unwrap(), String::from_utf8(read.stderr).unwrap());
    let csv = farm(&["export", "--store", &store]).output().unwrap().stdout;
    let csv = String::from_utf8(csv).unwrap();
    for board in ["press-3", "press-4"] {
        let cells = |line: &str| -> Vec<String> { line.split(',').map(str::to_owned).collect() };
        let wanted: Vec<Vec<String>> =
            csv.lines().filter(|line| line.starts_with(board)).map(cells).collect();
        let sum: u64 = wanted.iter().map(|row| row[5].parse::<u64>().unwrap()).sum();
        let max = wanted.iter().map(|row| row[7].parse::<u64>().unwrap()).max().unwrap();
        let time = &wanted[0][4];
        let line = out.lines().find(|line| line.starts_with(board)).unwrap_or_else(|| panic!("{out}{said}"));
        let found: Vec<&str> = line.split('|').collect();
        assert_eq!(
            found[1..6],
            [
                &time[..4],
                time[5..7].trim_start_matches('0'),
                &wanted.len().to_string(),
                &sum.to_string(),
                &max.to_string()
            ]
            .map(|text| text.to_owned()),
            "{line}"
        );
        assert!(found[6].starts_with(&time[..10]), "{line}");
    }
}
