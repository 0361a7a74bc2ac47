//! Loads as a user sees them: they load, a failure to load is detected, and nothing of them is
//! left. None of these tests depends on their speed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use load::loads::LOADS;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::place::{Place, json, onbeat, refused};

const ONBEAT: &str = env!("CARGO_BIN_EXE_onbeat");

/// Every built-in load that this machine can run, small, and a program.
fn all_small() -> Vec<&'static str> {
    let mut specs = Vec::new();
    for load in LOADS {
        specs.push(match load.name {
            "cpu" => "cpu:1",
            "vm" => "vm:1x1M",
            "mem" => "mem:1x4M",
            "cache" => "cache:1x1M",
            "hdd" => "hdd:1x256K",
            "io" => "io:1",
            "fork" => "fork:1",
            "messaging" => "messaging:1",
            "timers" => "timers:1",
            "net" => "net:1",
            "tlb" => "tlb",
            "proc" => "proc",
            "rtc" if fs::exists("/sys/class/rtc/rtc0/since_epoch").unwrap() => "rtc",
            "rtc" => continue,
            "cmd" => "cmd:sh -c 'while :; do :; done'",
            other => panic!("{other} is tried by no test"),
        });
    }
    specs
}

/// An onbeat that is killed if its test fails; its keeper ends the rest.
struct Started(Child);

impl std::ops::Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl std::ops::DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &[&str]) -> Started {
    let quiet = || Stdio::null();
    let mut command = Command::new(ONBEAT);
    command.args(arguments).stdin(quiet()).stdout(Stdio::piped()).stderr(quiet());
    Started(command.spawn().unwrap())
}

/// Processes whose command line contains a word.
fn processes_with(word: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    pids.filter(has).collect()
}

/// Descendants of a process.
fn descendants(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children: Vec<u32> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    children.iter().flat_map(|child| descendants(*child)).chain(children.iter().copied()).collect()
}

/// Waits for an event that will occur; its duration is not tested.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn groups_of(pid: u32) -> Vec<String> {
    let found = Command::new("find")
        .args(["/sys/fs/cgroup", "-maxdepth", "6", "-name", &format!("onbeat-load-{pid}-*")])
        .output()
        .unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn loads_are_counted_and_leave_nothing() {
    let loads = json(&["load", "cpu:1", "mem:1x1M", "messaging:1,through=pipes", "-q", "-D", "2s"], 0);
    let loads = loads.as_array().unwrap();
    assert_eq!(loads.len(), 3);
    for load in loads {
        assert_eq!(load["held"], Value::from(true), "{load}");
        assert!(load["total"].as_u64() > Some(0) && load["rate_per_s"].as_f64() > Some(0.0), "{load}");
        let proof = load["proof"].as_array().unwrap();
        assert!(proof.iter().all(|proof| proof["value"].as_f64() >= proof["floor"].as_f64()), "{load}");
    }
}

#[test]
fn a_measurement_names_the_load_beside_it() {
    let place = Place::new();
    let folder = place.path("run");
    let run = json(
        &[
            "measure",
            "-p",
            "0",
            "--idle",
            "as-is",
            "-i",
            "5000",
            "-q",
            "-D",
            "2s",
            "-a",
            "0",
            "-o",
            &folder,
            "--load",
            "cpu:1",
            "--load-cpus",
            "0",
        ],
        0,
    );
    assert_eq!(run["loads"][0]["spec"], "cpu:1");
    assert_eq!(run["loads"][0]["held"], Value::from(true), "{}", run["loads"]);
    let printed = onbeat(&["report", &folder, "-o", &place.path("run.json")]);
    assert!(printed.status.success());
}

#[test]
fn stopped_for_three_seconds_every_load_is_found_out() {
    let place = Place::new();
    let document = place.path("loads.json");
    let specs = all_small();
    let arguments = [&["load"], specs.as_slice(), &["-q", "-D", "120s", "--json", &document]].concat();
    let mut onbeat = start(&arguments);
    let starter = format!("--starter={}", onbeat.id());
    // The program, which is started last, has another command line; some loads have more than one.
    eventually("all processes have begun", || {
        processes_with(&starter).len() + 1 >= specs.len() && !processes_with("while :; do :; done").is_empty()
    });
    wait_until_they_work(&starter);
    // The windows allowed for a slow start are over.
    std::thread::sleep(Duration::from_secs(3));
    let stopped = descendants(onbeat.id());
    let signal = |name: &str| {
        let pids: Vec<String> = stopped.iter().map(u32::to_string).collect();
        Command::new("kill").arg(name).args(pids).output().unwrap();
    };
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(3));
    signal("-CONT");
    std::thread::sleep(Duration::from_secs(2));
    // However slow the machine is, the stop lies within the load.
    kill_process(Pid::from_child(&onbeat), Signal::TERM).unwrap();
    assert_eq!(onbeat.wait().unwrap().code(), Some(6));
    let loads: Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
    for (spec, load) in specs.iter().zip(loads.as_array().unwrap()) {
        assert_eq!(load["held"], Value::from(false), "{spec}: {load}");
        assert!(load["why"].as_str().is_some_and(|why| why.contains("stopped")), "{spec}: {load}");
    }
}

/// CPU time that a process has used, in seconds.
fn processor_time(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    (ticks(11) + ticks(12)) as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Waits until the loads work: their processes exist before, and nothing is checked while the
/// slowest prepares its files. `cpu` waits for the others, and then only runs.
fn wait_until_they_work(starter: &str) {
    let cpu = |pid: &u32| processes_with("cpu:1").contains(pid) && processor_time(*pid) > 0.05;
    eventually("the loads work", || processes_with(starter).iter().any(cpu));
}

/// Number of times that a process has slept.
fn sleeps(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// Stops the last process that a process has started; `None` if it was too short-lived, as those of
/// `fork` may be.
fn stop_one(worker: u32) -> Option<Pid> {
    let last = descendants(worker).into_iter().max().unwrap_or(worker);
    let pid = Pid::from_raw(last as i32)?;
    kill_process(pid, Signal::STOP).ok()?;
    std::thread::sleep(Duration::from_millis(5));
    let stat = fs::read_to_string(format!("/proc/{last}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.starts_with('T').then_some(pid)
}

#[test]
fn a_load_that_did_not_load_is_inconclusive() {
    let mut onbeat = start(&["load", "cpu:1", "-q", "-D", "8s"]);
    let starter = format!("--starter={}", onbeat.id());
    wait_until_they_work(&starter);
    // Without the keeper: stopped, it would outlive the test.
    let works = processes_with(&starter);
    for pid in descendants(onbeat.id()).into_iter().filter(|pid| works.contains(pid)) {
        kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::STOP).unwrap();
    }
    assert_eq!(onbeat.wait().unwrap().code(), Some(7));
}

#[test]
fn one_stopped_process_among_those_of_a_load_is_found_out() {
    let place = Place::new();
    let document = place.path("loads.json");
    let mut specs = all_small();
    specs.retain(|spec| !spec.starts_with("cmd:"));
    let arguments = [&["load"], specs.as_slice(), &["-q", "-D", "1000s", "--json", &document]].concat();
    let mut onbeat = start(&arguments);
    let starter = format!("--starter={}", onbeat.id());
    // Processes started by a load have its command line.
    let workers = || -> Vec<u32> {
        let of_onbeat = fs::read_to_string(format!("/proc/{0}/task/{0}/children", onbeat.id())).unwrap();
        let children = of_onbeat.split_whitespace().map(|word| word.parse().unwrap());
        let all = processes_with(&starter);
        children.filter(|child| all.contains(child)).collect()
    };
    eventually("all processes have begun", || {
        workers().len() == specs.len() && processes_with(&starter).len() >= specs.len() + 42
    });
    wait_until_they_work(&starter);
    let mut workers = workers();
    workers.sort_unstable();
    let stopped: Vec<Pid> = workers
        .iter()
        .map(|worker| {
            let mut tries = std::iter::repeat_with(|| stop_one(*worker)).take(10_000);
            tries.find_map(|stopped| stopped).expect("a process that can be stopped")
        })
        .collect();
    // It looks once a second, and sleeps in between.
    let slept = sleeps(onbeat.id());
    eventually("it has looked", || sleeps(onbeat.id()) >= slept + 4);
    stopped.into_iter().for_each(|pid| kill_process(pid, Signal::CONT).unwrap());
    // It continues as before.
    std::thread::sleep(Duration::from_secs(1));
    kill_process(Pid::from_raw(onbeat.id() as i32).unwrap(), Signal::TERM).unwrap();
    assert_eq!(onbeat.wait().unwrap().code(), Some(6));
    let loads: Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
    for (spec, load) in specs.iter().zip(loads.as_array().unwrap()) {
        let found = load["why"].as_str().is_some_and(|why| why.contains(" processes were stopped"));
        assert!(found && load["held"] == false, "{spec}: {load}");
    }
}

#[test]
fn no_other_folder_is_taken_for_a_cage() {
    let place = Place::new();
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    // A process ID that is never assigned, and a folder that only looks like its group.
    for name in ["group", "onbeat-load-4194305-1"] {
        fs::create_dir(place.at(name)).unwrap();
        fs::write(place.at(name).join("cgroup.procs"), format!("{}\n", other.id())).unwrap();
        let line = refused(&["load", "--keep", "4194305/1", "--cage", &place.path(name)], 2);
        assert!(line.contains("not a control group of that process"), "{line}");
    }
    assert!(other.try_wait().unwrap().is_none(), "it was killed");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn killed_it_leaves_no_process_and_no_group() {
    let mut onbeat = start(&["load", "full", "messaging:1", "net", "cmd:sleep 1000", "-q", "-D", "1000s"]);
    let pid = onbeat.id();
    let starter = format!("--starter={pid}");
    eventually("all processes have begun", || processes_with(&starter).len() >= 18);
    eventually("the program runs", || !processes_with("1000").is_empty());
    let all = descendants(pid);
    onbeat.kill().unwrap();
    onbeat.wait().unwrap();
    let start_of = |pid: u32| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok();
    eventually("a process is left", || all.iter().all(|pid| !start_of(*pid)));
    eventually("a control group is left", || groups_of(pid).is_empty());
    eventually("a keeper is left", || {
        let keeper = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let own = format!("--keep\0{pid}/");
        !processes_with("--keep").iter().any(|pid| keeper(pid).contains(&own))
    });
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    for (arguments, exit, said) in [
        (&["load", "memory"][..], 2, "choose from"),
        (&["load", "mem:2x1T"], 2, "safely available"),
        (&["load", "cmd:no-such-program-anywhere"], 2, "give the path of an existing program"),
        (&["load", "cpu", "--load-cpus", "4000"], 2, "choose CPUs"),
        (&["load", "cpu", "-D", "0"], 2, "more than 0"),
        (&["load", "hdd,folder=/nowhere/at/all"], 2, "folder=PATH"),
        (&["load", "hdd,folder=/dev/null"], 2, "folder=PATH"),
        (&["load", "cmd:/dev/null/x"], 2, "give the path of an existing program"),
        (&["load", "cmd:/dev/null"], 4, "may run"),
        (&["measure", "--load-cpus", "0", "-D", "1s"], 2, "--load"),
        (&["measure", "--load", "cpu:0", "-D", "1s"], 2, "--load: cpu"),
        (&["load", "cpu", "--work", "0"], 2, "--starter"),
    ] {
        let line = refused(arguments, exit);
        assert!(line.contains(said), "{arguments:?}: {line}");
    }
}

#[test]
fn a_program_that_ends_did_not_load() {
    let loads = json(&["load", "cmd:sh -c 'exit 3'", "-D", "1s", "-q"], 7);
    assert!(loads[0]["why"].as_str().is_some_and(|why| why.contains("exit status: 3")), "{loads}");
}

#[test]
fn a_program_that_no_folder_of_the_path_has_is_not_there() {
    let place = Place::new();
    fs::create_dir(place.at("closed")).unwrap();
    fs::set_permissions(place.at("closed"), Permissions::from_mode(0o0)).unwrap();
    let mut onbeat = Command::new(ONBEAT);
    let output = onbeat.args(["load", "cmd:no-such-program"]).env("PATH", place.path("closed")).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_list_names_every_load() {
    let listed = String::from_utf8(onbeat(&["load"]).stdout).unwrap();
    let listed = listed.split_whitespace().collect::<Vec<_>>().join(" ");
    for load in LOADS {
        assert!(listed.contains(load.title), "{}", load.name);
    }
}
