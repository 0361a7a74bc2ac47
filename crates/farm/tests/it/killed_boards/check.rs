//! A board's data on the farm against those that the board made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use super::super::server::{ask, ask_bytes, farm};
use super::board::{KilledBoard, MadeRows};

const DAY: i64 = 86_400;
const TIERS: [(&str, i64); 3] = [("5m", 300), ("1h", 3_600), ("1d", DAY)];

fn get(address: &str, path: &str) -> Value {
    let (status, answer) = ask(address, "GET", path, "", "", "").unwrap();
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

/// A board's rows and runs are there, each once, and nothing else is.
pub fn check(address: &str, board: &KilledBoard) {
    let shown = get(address, &format!("/v1/boards/{}", board.name));
    let series: Vec<(&str, &str)> = shown["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["series"].as_str().unwrap(), one["plan"].as_str().unwrap()))
        .collect();
    let (of_rows, of_runs): (Vec<_>, Vec<_>) = series.into_iter().partition(|(_, plan)| *plan == "all");
    let mut recorded: Vec<&str> = of_rows.iter().map(|(series, _)| *series).collect();
    recorded.sort_unstable();
    assert_eq!(recorded, board.rows.keys().copied().collect::<Vec<&str>>());
    for (series, rows) in &board.rows {
        check_rows(address, board, series, rows);
    }
    check_runs(address, board, &shown["runs"], &of_runs);
}

fn asked(series: &str, plan: &str) -> String {
    format!("series={}&plan={plan}", series.replace('+', "%2B"))
}

/// Start of each response's row, with its samples and the longest of them.
fn peaks(found: &[Value]) -> Vec<(i64, (u64, i64))> {
    let peak = |row: &Value| {
        let (n, longest) = (row["n"].as_u64().unwrap(), row["max_ns"].as_i64().unwrap());
        (row["t"].as_i64().unwrap(), (n, longest))
    };
    found.iter().map(peak).collect()
}

fn check_rows(address: &str, board: &KilledBoard, series: &str, rows: &MadeRows) {
    let (name, asked) = (&board.name, asked(series, "all"));
    let slots = get(address, &format!("/v1/boards/{name}/slots?{asked}"));
    let made: Vec<_> = rows.iter().map(|(&t, &row)| (t, row)).collect();
    assert_eq!(peaks(slots.as_array().unwrap()), made, "{series} of {name}");
    let days: BTreeSet<i64> = rows.keys().map(|t| t - t.rem_euclid(DAY)).collect();
    for (tier, span) in TIERS {
        // One response is limited to that many.
        let of_day = |day: &i64| {
            let path =
                format!("/v1/boards/{name}/histograms?tier={tier}&{asked}&from={day}&to={}", day + DAY);
            get(address, &path)["histograms"].as_array().unwrap().clone()
        };
        let found: Vec<Value> = days.iter().flat_map(of_day).collect();
        let mut made = MadeRows::new();
        for (t, (n, longest)) in rows {
            let sum = made.entry(t - t.rem_euclid(span)).or_default();
            *sum = (sum.0 + n, sum.1.max(*longest));
        }
        assert_eq!(peaks(&found), made.into_iter().collect::<Vec<_>>(), "{tier} of {series} of {name}");
        let wanted: u64 = rows.values().map(|row| row.0).sum();
        assert_eq!(found.iter().map(counted).sum::<u64>(), wanted, "{tier} of {series} of {name}");
    }
}

/// The samples in the rows of a histogram.
fn counted(found: &Value) -> u64 {
    let cpus = found["cpus"].as_array().unwrap().iter();
    let rows = cpus.flat_map(|cpu| cpu["histogram"].as_array().unwrap());
    rows.map(|row| row[2].as_u64().unwrap()).sum()
}

fn check_runs(address: &str, board: &KilledBoard, shown: &Value, of_runs: &[(&str, &str)]) {
    let name = &board.name;
    let sums: BTreeMap<&str, (u64, i64)> =
        board.runs.iter().map(|run| (run.id.as_str(), run.sums())).collect();
    let shown = shown.as_array().unwrap();
    let mut there: Vec<&str> = shown.iter().map(|run| run["id"].as_str().unwrap()).collect();
    there.sort_unstable();
    assert_eq!(there, sums.keys().copied().collect::<Vec<&str>>(), "{name}");
    for run in shown {
        let of = (run["cycles"].as_u64().unwrap(), run["max_ns"].as_i64().unwrap());
        assert_eq!((run["complete"] == true, of), (true, sums[run["id"].as_str().unwrap()]), "{run}");
    }
    for run in &board.runs {
        for file in run.files() {
            let path = format!("/v1/runs/{}/files/{file}", run.id);
            let (status, bytes) = ask_bytes(address, "GET", &path, "", "", "").unwrap();
            assert!(status == 200 && bytes == fs::read(run.place.join(file)).unwrap(), "{path}: {status}");
        }
    }
    // Once in each tier, and once in the maxima.
    let wanted = (sums.values().map(|sum| sum.0).sum::<u64>(), sums.values().map(|sum| sum.1).max());
    let all = |path: &str, list: Option<&str>| {
        let found = of_runs.iter().flat_map(|(series, plan)| {
            let answer = get(address, &format!("/v1/boards/{name}/{path}{}", asked(series, plan)));
            list.map_or(&answer, |list| &answer[list]).as_array().unwrap().clone()
        });
        let found = peaks(&found.collect::<Vec<_>>());
        (found.iter().map(|row| row.1.0).sum::<u64>(), found.iter().map(|row| row.1.1).max())
    };
    assert_eq!(all("histograms?tier=1d&", Some("histograms")), wanted, "days of the runs of {name}");
    assert_eq!(all("slots?", None), wanted, "maxima of the runs of {name}");
}

/// Checks that the store's export adds up to the data of all boards, and that it passes its check.
pub fn check_store(store: &str, boards: &[KilledBoard]) {
    let looked = farm(&["check", "--store", store]).output().unwrap();
    assert!(looked.status.success(), "{}", String::from_utf8_lossy(&looked.stdout));
    let table = farm(&["export", "--store", store]).output().unwrap();
    let table = String::from_utf8(table.stdout).unwrap();
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = head.iter().position(|column| *column == "n").unwrap();
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines {
        *found.entry(line[0]).or_default() += line[at].parse::<u64>().unwrap();
    }
    let made = |board: &KilledBoard| {
        let rows = board.rows.values().flat_map(|rows| rows.values()).map(|row| row.0);
        rows.chain(board.runs.iter().map(|run| run.sums().0)).sum::<u64>()
    };
    let made: BTreeMap<&str, u64> = boards.iter().map(|board| (board.name.as_str(), made(board))).collect();
    assert_eq!(found, made);
}
