//! `onbeat hunt -- PROGRAM` as called by a user: refusals, and on a kernel that permits it, a
//! program from its start to its end.

use std::process::{Command, Output};

use serde_json::Value;

use super::place::*;

/// True if this user can hunt here, according to `onbeat hunt` itself.
fn hunts() -> bool {
    let place = Place::new();
    let output = onbeat(&["hunt", "-q", "-D", "1ms", "-o", &place.path("try"), "--", "true"]);
    let refused = matches!(code(&output), 4 | 5);
    if refused {
        eprintln!("left out: threads that are followed ({})", String::from_utf8_lossy(&output.stderr).trim());
    }
    !refused
}

/// Compiled program of the test; none without a compiler.
fn compiled(place: &Place) -> Option<String> {
    let (source, program) =
        (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/answers/periodic.c"), place.path("periodic"));
    let made = Command::new("cc").args(["-O1", "-pthread", "-o", &program, source]).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("left out: threads that are followed (no C compiler makes the test's program)");
        return None;
    }
    Some(program)
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn what_cannot_be_followed_is_refused_with_the_way_out() {
    let place = Place::new();
    std::fs::write(place.at("data"), "no program").unwrap();
    let data = place.path("data");
    for (args, word, expected) in [
        (vec!["hunt", "-D", "1", "--", "/nonexistent/robot"], "cannot be run", 2),
        (vec!["hunt", "-D", "1", "--", "no-such-program-here"], "cannot be run", 2),
        (vec!["hunt", "-D", "1", "--", ""], "cannot be run", 2),
        (vec!["hunt", "-D", "1", "--", "/"], "is a folder", 2),
        (vec!["hunt", "-D", "1", "--"], "<PROGRAM> is missing", 2),
        (vec!["check", "--"], "<PROGRAM> is missing", 2),
        (vec!["prove", "--change", "thp=never", "--"], "<PROGRAM> is missing", 2),
        (vec!["cure", "--limit", "1ms", "--dry-run", "--"], "<PROGRAM> is missing", 2),
        (vec!["hunt", "-D", "1", "--victim", "1", "--", "true"], "--victim", 2),
        (vec!["hunt", "-a", "0", "--", "true"], "--affinity", 2),
        (vec!["hunt", "--deadline", "0", "--", "true"], "--deadline", 2),
        (vec!["hunt", "--deadline", "1ms", "-D", "1"], "--victim", 2),
        (vec!["hunt", "--syscalls", "-D", "1"], "--victim", 2),
        (vec!["hunt", "--user", "root", "-D", "1"], "PROGRAM", 2),
        (vec!["hunt", "--exit-code", "program", "-D", "1"], "PROGRAM", 2),
        (vec!["hunt", "--exit-code", "its", "--", "true"], "--exit-code", 2),
        (vec!["hunt", "--user", "no such user here", "--", "true"], "getent", 2),
    ] {
        let err = refused(&args, expected);
        assert!(err.contains(word), "{args:?}: {err}");
    }
    let err = refused(&["hunt", "-D", "1", "--", &data], 4);
    assert!(err.contains("cannot be run") && err.contains("Permission denied"), "{err}");
}

#[test]
fn a_program_without_real_time_threads_has_one_line_and_its_own_exit_code_if_so_wanted() {
    if !hunts() {
        return;
    }
    let place = Place::new();
    let run = |name: &str, args: &[&str]| {
        let output = onbeat(&[&["hunt", "-q", "-o", &place.path(name)], args].concat());
        let (_, err) = text(&output);
        (code(&output), err)
    };
    let (code, err) = run("a", &["--", "sh", "-c", "exit 3"]);
    assert_eq!(code, 7, "{err}");
    // On a machine at work events may be lost, and with them the policies of threads.
    let of_threads = ["SCHED_FIFO", "overwritten", "overran"].iter().any(|word| err.contains(word));
    assert!(err.contains("ended with exit code 3") && of_threads, "{err}");
    let (code, err) = run("b", &["--exit-code", "program", "--", "sh", "-c", "exit 3"]);
    assert_eq!(code, 3, "{err}");
    let (code, err) = run("c", &["--exit-code", "program", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(code, 128 + 9, "{err}");
    // A daemon: its parent ends, and it continues. It would be waited for if it had our pipes.
    let left = place.path("left");
    let script = format!("sleep 60 >/dev/null 2>&1 & echo $! >{left}; exit 0");
    let (code, err) = run("d", &["--", "sh", "-c", &script]);
    let left = std::fs::read_to_string(left).unwrap();
    std::process::Command::new("kill").arg(left.trim()).status().unwrap();
    assert_eq!(code, 7, "{err}");
    assert!(err.contains("background") && err.contains("--victim"), "{err}");
    // At the end of the hunt, the program is asked to end.
    let (code, err) = run("e", &["-D", "200ms", "--", "sleep", "1000"]);
    assert_eq!(code, 7, "{err}");
    assert!(err.contains("signal 15"), "{err}");
}

#[test]
fn a_program_has_the_environment_the_input_and_the_mask_of_its_caller() {
    if !hunts() {
        return;
    }
    let place = Place::new();
    let told = place.path("told");
    let script = format!(
        "read word; grep -E '^(SigBlk|Cpus_allowed_list)' /proc/self/status >{told}; \
         echo $word $TOLD >>{told}"
    );
    let output = Command::new("sh")
        .args(["-c", "echo given | exec \"$@\"", "sh", env!("CARGO_BIN_EXE_onbeat"), "hunt", "-q"])
        .args(["-o", &place.path("run"), "--", "sh", "-c", &script])
        .env("TOLD", "environment")
        .output()
        .unwrap();
    let (_, err) = text(&output);
    let told = std::fs::read_to_string(told).unwrap_or_else(|error| panic!("{error}: {err}"));
    assert!(told.contains("given environment"), "{told}");
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    assert_eq!(field(&told, "SigBlk"), "0000000000000000", "{told}");
    assert_eq!(field(&told, "Cpus_allowed_list"), field(&own, "Cpus_allowed_list"), "{told}");
}

/// Run of the test's program on a CPU, into a folder with this name.
fn followed(place: &Place, name: &str, program: &str, cpu: usize, more: &[&str]) -> (i32, Value, String) {
    let (folder, number) = (place.path(name), cpu.to_string());
    let args = [&["hunt", "-o", &folder], more, &["--", program, &number, "400", "5"]].concat();
    let output = onbeat(&args);
    let (out, err) = text(&output);
    let run = std::fs::read_to_string(format!("{folder}/run.json")).unwrap_or_else(|_| panic!("{err}"));
    (code(&output), serde_json::from_str(&run).unwrap(), out + &err)
}

#[test]
fn a_program_is_followed_from_its_start_to_its_end() {
    let place = Place::new();
    let Some(program) = compiled(&place).filter(|_| hunts()) else { return };
    // Some guests show the switches of one CPU only.
    for cpu in 0..8 {
        let name = format!("run-{cpu}");
        let (code, run, said) = followed(&place, &name, &program, cpu, &["--over", "1s"]);
        assert_eq!(run["program"]["name"], "periodic", "{said}");
        if run["program"]["exit_code"] == 101 {
            eprintln!("left out: threads that are followed (no real-time priority, or no CPU {cpu})");
            return;
        }
        assert_eq!((run["program"]["exit_code"].as_i64(), run["ended"].as_str()), (Some(5), Some("victim")));
        let lost = run["integrity"].as_array().unwrap().iter().any(|entry| entry["kind"] == "lost");
        let threads = run["threads"].as_array().cloned().unwrap_or_default();
        let Some(thread) = threads.iter().find(|thread| thread["cycles"].as_u64() > Some(300)) else {
            eprintln!("CPU {cpu}: {} {}", lost, serde_json::to_string(&threads).unwrap());
            continue;
        };
        assert_eq!(code, 0, "{said}");
        as_planted(&run, thread, &said);
        let more = ["--over", "1s", "--syscalls"];
        let (_, run, said) = followed(&place, &format!("{name}-calls"), &program, cpu, &more);
        calls_are_apart(&run, &said);
        return;
    }
    eprintln!("left out: threads that are followed (this kernel shows the switches of no CPU)");
}

/// Checks the calls of a thread that reads a clock of the kernel, and sleeps in a call.
fn calls_are_apart(run: &Value, said: &str) {
    let notes = run["plan"]["notes"].to_string();
    assert!(notes.contains("--syscalls adds") && notes.contains("followed threads"), "{notes}");
    let late = run["spikes"].as_array().unwrap().iter().filter(|spike| spike["deadline_ns"].is_i64());
    let mut named = Vec::new();
    for spike in late {
        let slices = spike["slices"].as_array().unwrap();
        let sum: i64 = slices.iter().map(|slice| slice["ns"].as_i64().unwrap()).sum();
        assert_eq!(sum + spike["unexplained_ns"].as_i64().unwrap(), spike["latency_ns"].as_i64().unwrap());
        let calls = slices.iter().filter(|slice| slice["kind"] == "syscall");
        named.extend(calls.map(|slice| slice["who"]["function"].as_str().unwrap_or_default().to_owned()));
    }
    let clock = |name: &String| name == "clock_gettime" || name == "clock_nanosleep";
    let lost = run["integrity"].as_array().unwrap().iter().any(|entry| entry["kind"] == "lost");
    assert!(lost || named.iter().any(clock), "{named:?}: {said}");
}

/// Checks a late FIFO 80 thread with a period of 2 ms, ten of whose cycles overrun by their work.
fn as_planted(run: &Value, thread: &Value, said: &str) {
    assert_eq!(
        (thread["comm"].as_str(), thread["policy"].as_str()),
        (Some("control"), Some("fifo")),
        "{said}"
    );
    assert_eq!((thread["priority"].as_u64(), thread["period_ns"].as_i64()), (Some(80), Some(2_000_000)));
    let count = |rows: &str| -> u64 {
        thread[rows].as_array().unwrap().iter().map(|row| row[2].as_u64().unwrap()).sum()
    };
    let cycles = thread["cycles"].as_u64().unwrap();
    assert_eq!((count("response"), count("execution")), (cycles, cycles));
    assert!(thread["late"].as_u64() >= Some(5), "{thread}");
    assert!(thread["worst_ns"].as_i64() >= Some(4_000_000), "{thread}");
    assert!(said.contains("later than their deadline") && said.contains("control:"), "{said}");
    assert!(said.contains("periodic ended with exit code 5"), "{said}");
    let spikes = run["spikes"].as_array().unwrap();
    let mut own_first = 0;
    for spike in spikes.iter().filter(|spike| spike["deadline_ns"].is_i64()) {
        let slices = spike["slices"].as_array().unwrap();
        let sum: i64 = slices.iter().map(|slice| slice["ns"].as_i64().unwrap()).sum();
        assert_eq!(sum + spike["unexplained_ns"].as_i64().unwrap(), spike["latency_ns"].as_i64().unwrap());
        let own: i64 = slices
            .iter()
            .filter(|slice| slice["kind"] == "own")
            .map(|slice| slice["ns"].as_i64().unwrap())
            .sum();
        own_first += u32::from(own >= 3_900_000);
    }
    assert!(own_first >= 3, "{own_first} of {} late cycles are its own work: {said}", spikes.len());
}
