//! Probes of the scheduler and of packets as used by a script.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::place::{Place, code, json, onbeat, refused};
use super::probing::{counted, cpu, is_read, may_be_real_time};

const ONBEAT: &str = env!("CARGO_BIN_EXE_onbeat");

/// Arguments, and more of them.
fn both<'a>(some: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [some, more].concat()
}

/// Number of CPUs that this process may use.
fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn the_highest_threads_run_and_bound_ones_do_not() {
    let place = Place::new();
    let flags = ["--idle", "as-is", "-p", "20", "-q", "-D", "20s", "--over", "900ms"];
    let flags = both(&["probe", "migrate"], &flags);
    if !may_be_real_time() || cpus() < 2 {
        return;
    }
    let run = json(&both(&flags, &["-l", "30", "-o", &place.path("run")]), 0);
    counted(&run, "migrate");
    let threads = run["cpus"].as_array().unwrap();
    assert_eq!(threads.len(), run["plan"]["cpus"].as_array().unwrap().len() + 1);
    for (at, own) in threads.iter().enumerate() {
        assert_eq!((&own["cpu"], &own["thread"]), (&Value::Null, &Value::from(at + 1)));
        assert_eq!((&own["measures"], own["cycles"].as_u64()), (&"migration".into(), Some(30)));
        let of = &own["migration"];
        assert_eq!((of["priority"].as_u64(), of["violations"].as_u64()), (Some(20 - at as u64), Some(0)));
        assert!(
            of["mean_start_ns"].as_i64() > Some(0)
                && of["max_start_ns"].as_i64() >= of["mean_start_ns"].as_i64()
        );
    }
    // Nothing is below the last one.
    assert_eq!(threads.last().unwrap()["max_ns"], Value::from(0));
    is_read(&place.at("run"));
    let blocks = std::fs::read_to_string(place.at("run/blocks.jsonl")).unwrap();
    let line: Value = serde_json::from_str(blocks.lines().next().unwrap()).unwrap();
    assert_eq!((&line["cpu"], &line["thread"], &line["steal_ns"]), (&1.into(), &1.into(), &Value::Null));
    // The second thread waits for the first on one CPU, while the third runs on the other.
    let flags = ["--bound", "--over", "1ms", "--work", "6ms", "-i", "50ms", "-a", "0-1", "-o"];
    let bound =
        [&["probe", "migrate", "--idle", "as-is", "-p", "20", "-q"], &flags[..], &[&place.path("bound")]];
    let run = json(&bound.concat(), 3);
    let named = |entry: &Value| entry["kind"] == "scheduler" && entry["invalidates"] == true;
    let entry = run["integrity"].as_array().unwrap().iter().find(|entry| named(entry)).unwrap();
    assert!(entry["detail"].as_str().unwrap().contains("thread 2 (priority 19) waited"), "{entry}");
    assert_eq!((&run["ended"], &run["plan"]["kind"]), (&"error".into(), &"bound".into()));
}

#[test]
fn a_job_that_takes_more_than_its_runtime_is_an_overrun() {
    let place = Place::new();
    let flags = ["probe", "deadline", "--idle", "as-is", "-q"];
    let (good, over) = (place.path("good"), place.path("over"));
    let output = onbeat(&both(&flags, &["-P", "d:1ms:20ms", "--work", "100us", "-l", "20", "-o", &good]));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if code(&output) != 0 {
        // Not permitted, or another program has reserved the time.
        assert!(code(&output) == 4 && said.contains("cannot set SCHED_DEADLINE"), "{said}");
        return;
    }
    let run = document(&good);
    assert_eq!((&run["plan"]["probe"], &run["plan"]["policy"]), (&"deadline".into(), &"deadline".into()));
    let spans =
        ["runtime_ns", "deadline_ns", "interval_ns", "work_ns"].map(|name| run["plan"][name].as_i64());
    assert_eq!(spans, [1_000_000, 20_000_000, 20_000_000, 100_000].map(Some));
    for own in run["cpus"].as_array().unwrap() {
        assert_eq!((&own["measures"], &own["deadline"]["jobs"]), (&"deadline".into(), &20.into()));
        assert_eq!(own["cycles"].as_u64().unwrap() + own["missed"].as_u64().unwrap(), own["scheduled"]);
    }
    is_read(&place.at("good"));
    let run =
        json(&both(&flags, &["-P", "d:1ms:20ms", "--work", "6ms", "-l", "5", "-D", "20s", "-o", &over]), 0);
    for own in run["cpus"].as_array().unwrap() {
        assert_eq!(own["deadline"]["overruns"].as_u64(), Some(5), "{own}");
        assert!(own["deadline"]["longest_work_ns"].as_i64() >= Some(6_000_000), "{own}");
    }
    // More than all CPUs have.
    let said = refused(&both(&flags, &["-P", "d:19900us:20ms", "-o", &place.path("no")]), 4);
    assert!(said.contains("more than the kernel admits"), "{said}");
}

/// The run of a bundle.
fn document(bundle: &str) -> Value {
    serde_json::from_slice(&std::fs::read(Path::new(bundle).join("run.json")).unwrap()).unwrap()
}

#[test]
fn packets_are_counted_on_this_machine_and_from_a_server() {
    let (place, cpu) = (Place::new(), cpu());
    let flags =
        ["-p", "0", "--idle", "as-is", "-a", &cpu, "-l", "50", "-D", "20s", "-q", "--time-limit", "1s"];
    let flags = both(&["probe", "net"], &flags);
    let checked = |run: &Value, kind: &str| {
        counted(run, "net");
        let own = &run["cpus"][0];
        assert_eq!((&run["plan"]["kind"], &own["measures"]), (&kind.into(), &"packet".into()));
        let of = |name: &str| own["packets"][name].as_u64().unwrap();
        assert_eq!((of("answered"), own["cycles"].as_u64()), (50, Some(50)));
        assert_eq!(of("sent"), of("answered") + of("lost") + of("late"));
        assert!(own["min_ns"].as_i64() > Some(0));
    };
    let run = json(&both(&flags, &["--path", "loopback", "-o", &place.path("lo")]), 0);
    checked(&run, "loopback");
    is_read(&place.at("lo"));
    let output = onbeat(&both(&flags, &["--path", "veth", "-o", &place.path("veth")]));
    match code(&output) {
        0 => checked(&document(&place.path("veth")), "veth"),
        other => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!([4, 5].contains(&other) && said.contains("--path loopback"), "{said}");
        }
    }
    let line = ["probe", "net", "--serve", "127.0.0.1:17078", "-p", "0"];
    let mut server = Command::new(ONBEAT).args(line).stderr(Stdio::null()).spawn().unwrap();
    // It is asked until it answers.
    let kept = place.path("peer");
    let peer = both(&flags, &["--peer", "127.0.0.1:17078", "-o", &kept]);
    let answered = (0..50).any(|_| code(&onbeat(&peer)) == 0);
    Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(6));
    assert!(answered);
    checked(&document(&place.path("peer")), "peer");
    let said = refused(&both(&flags, &["--peer", "127.0.0.1:17078", "-o", &place.path("none")]), 5);
    assert!(said.contains("--serve"), "{said}");
    let said = refused(&both(&flags, &["--stamps", "hardware", "-o", &place.path("none")]), 5);
    assert!(said.contains("hardware time stamps"), "{said}");
}
