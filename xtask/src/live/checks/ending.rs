//! A run that ends early keeps its results, in every way: a signal, SIGKILL, a full disk.

use serde_json::Value;

use super::super::frames::Reply;
use super::super::judge::{CheckResult, all_sums, count, document, exit, require, text_is};
use super::super::machine::Machine;
use super::Check;

pub fn checks() -> Vec<Check> {
    let mut checks = vec![
        Check::new(
            "killed",
            "start m onbeat measure -D 60s -i 1000 -a 0-1 -q -o b\n\
             underway b\n\
             usleep 6000000\n\
             value killed_at $(now_ms); kill -KILL $pid\n\
             reap\n\
             send stored b/run.json\n\
             send blocks b/blocks.jsonl\n\
             run csv onbeat report b -o x.csv\n\
             send table x.csv\n\
             run json onbeat report b -o x.json\n\
             send run x.json\n",
            killed,
        ),
        Check::new(
            "disk-full",
            "mkdir t; mount -t tmpfs -o size=4m tmpfs t\n\
             start m onbeat measure -D 4s -i 1000 -a 0-1 -q -o t/b\n\
             underway t/b\n\
             usleep 1000000\n\
             dd if=/dev/zero of=t/fill bs=4k 2>/dev/null\n\
             reap\n\
             send stored t/b/run.json\n\
             umount t\n",
            disk_full,
        ),
    ];
    for signal in ["INT", "TERM"] {
        // In the foreground: a shell starts background processes with SIGINT ignored.
        let script = format!(
            "(underway b; usleep 2000000; killall -{signal} onbeat) &\n\
             run m onbeat measure -D 60s -i 1000 -a 0-1 -q -o b --json m.json\nsend run m.json\nsend stored b/run.json\n"
        );
        checks.push(Check::new(&format!("sig{}", signal.to_lowercase()), &script, interrupted));
    }
    checks
}

fn interrupted(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 6)?;
    for label in ["run", "stored"] {
        let run = document(reply, label)?;
        all_sums(&run, &[0, 1])?;
        text_is(&run, "/ended", "signal")?;
        require(run["complete"] == Value::Bool(true), || format!("{label}: complete is not true"))?;
    }
    Ok(())
}

fn killed(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 137)?;
    let stored = document(reply, "stored")?;
    require(stored["complete"] == Value::Bool(false), || {
        "a killed run says that it is complete".to_string()
    })?;
    let end_ms = reply.number("killed_at")?;
    let last_ms = last_block_ms(reply.file("blocks")?)?;
    require(end_ms - last_ms <= 3000, || {
        format!("the blocks end {} ms before the run was killed", end_ms - last_ms)
    })?;
    for label in ["csv", "json"] {
        exit(reply, label, 0)?;
        let said =
            format!("{}{}", reply.file(&format!("{label}.out"))?, reply.file(&format!("{label}.err"))?);
        require(said.contains("incomplete"), || {
            format!("report to {label} does not say that the run is incomplete")
        })?;
    }
    let table = reply.file("table")?;
    let has_numbers = |line: &&str| line.bytes().any(|byte| byte.is_ascii_digit());
    require(table.lines().filter(has_numbers).count() >= 2, || "report wrote no table".to_string())?;
    let run = document(reply, "run")?;
    require(run["complete"] == Value::Bool(false), || "the report says that the run is complete".to_string())
}

/// End of the last complete line of `blocks.jsonl`. SIGKILL may have cut the line after it.
fn last_block_ms(blocks: &str) -> Result<i64, String> {
    let mut last = 0;
    let lines: Vec<&str> = blocks.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        match serde_json::from_str::<Value>(line) {
            Ok(block) => {
                let start = block["mono_ns"].as_i64().ok_or("a block without mono_ns")?;
                last = last.max((start + block["span_ns"].as_i64().unwrap_or(1_000_000_000)) / 1_000_000);
                count(&block, "n")?;
            }
            Err(_) if index + 1 == lines.len() => {}
            Err(error) => return Err(format!("blocks.jsonl, line {}: {error}", index + 1)),
        }
    }
    require(last > 0, || "blocks.jsonl holds no block".to_string())?;
    Ok(last)
}

fn disk_full(reply: &Reply, _: &Machine) -> CheckResult {
    let code = reply.number("m.exit")?;
    require((1..128).contains(&code), || format!("exit {code} although the result could not be saved"))?;
    let said = reply.file("m.err")?;
    require(said.lines().count() == 1, || format!("not one line on standard error: {said:?}"))?;
    let rows =
        reply.file("m.out")?.lines().filter(|line| line.bytes().any(|byte| byte.is_ascii_digit())).count();
    require(rows >= 2, || "the table was not printed".to_string())?;
    // The checkpoint of the first second was replaced by rename or not at all.
    document(reply, "stored").map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::super::judge::tests::cpu;
    use super::super::super::machine::MACHINES;
    use super::*;
    use serde_json::json;

    fn with(values: &[(&str, &str)], files: &[(&str, &str)]) -> Reply {
        let mut reply = Reply::default();
        reply.values.extend(values.iter().map(|(label, value)| (label.to_string(), value.to_string())));
        reply.files.extend(files.iter().map(|(label, text)| (label.to_string(), Some(text.to_string()))));
        reply
    }

    #[test]
    fn an_interrupted_run_is_whole() {
        let run = |complete: bool| {
            json!({ "cpus": [cpu(0), cpu(1)], "ended": "signal", "complete": complete }).to_string()
        };
        let judged = |code, text: &str| {
            interrupted(&with(&[("m.exit", code)], &[("run", text), ("stored", text)]), &MACHINES[0])
        };
        assert_eq!(judged("6", &run(true)), Ok(()));
        assert!(judged("0", &run(true)).is_err() && judged("6", &run(false)).is_err());
    }

    #[test]
    fn a_killed_run_keeps_its_last_seconds() {
        let line = |second: i64| json!({ "mono_ns": second * 1_000_000_000, "n": 1000 }).to_string() + "\n";
        let judged = |blocks: &str, said: &str, complete: bool| {
            let run = json!({ "complete": complete }).to_string();
            let files = [
                ("stored", run.as_str()),
                ("blocks", blocks),
                ("table", "cpu,max\n0,9\n1,8\n"),
                ("run", &run),
                ("csv.out", ""),
                ("csv.err", said),
                ("json.out", said),
                ("json.err", ""),
            ];
            killed(
                &with(
                    &[("m.exit", "137"), ("killed_at", "16500"), ("csv.exit", "0"), ("json.exit", "0")],
                    &files,
                ),
                &MACHINES[0],
            )
        };
        let blocks = line(13) + &line(14) + &line(15);
        assert_eq!(judged(&blocks, "the run is incomplete", false), Ok(()));
        assert_eq!(judged(&(blocks.clone() + "{\"mono_n"), "the run is incomplete", false), Ok(()));
        assert!(judged(&line(5), "the run is incomplete", false).unwrap_err().contains("before"));
        assert!(judged("", "the run is incomplete", false).is_err());
        assert!(judged(&("{\n".to_string() + &blocks), "the run is incomplete", false).is_err());
        assert!(
            judged(&blocks, "", false).is_err() && judged(&blocks, "the run is incomplete", true).is_err()
        );
    }

    #[test]
    fn a_full_disk_is_one_line_and_the_table_is_printed() {
        let judged = |code, said, table| {
            disk_full(
                &with(&[("m.exit", code)], &[("m.err", said), ("m.out", table), ("stored", "{}")]),
                &MACHINES[0],
            )
        };
        assert_eq!(judged("1", "no space left\n", "cpu max\n0 1\n1 2\n"), Ok(()));
        assert!(judged("0", "no space left\n", "0 1\n1 2\n").is_err());
        assert!(judged("134", "no space left\n", "0 1\n1 2\n").is_err());
        assert!(judged("1", "a\nb\n", "0 1\n1 2\n").is_err());
        assert!(judged("1", "no space left\n", "").is_err());
    }
}
