//! `--json` of every command and mode: it writes a document, or is refused in one line. Commands
//! and flags come from the command line itself, so that none is missing.

use std::process::{Command, Output};

use super::place::{Place, gumbel};

/// Commands that change the machine: their documents are tried in guests, by the live checks
/// of tune and isolate.
const CHANGING: [&str; 5] = ["tune apply", "tune undo", "tune confirm", "isolate create", "isolate undo"];

/// Flags that open a window, print help, or have the same effect in every command.
const NOT_MODES: [&str; 5] = ["help", "version", "open", "quiet", "verbose"];

/// Arguments of a short run that changes nothing; `@` stands for the folder.
fn lines(command: &str) -> &'static [&'static str] {
    match command {
        "measure" => &["-p 0 -D 50ms --idle as-is -o @/new"],
        "hunt" => &["-p 0 -D 50ms --idle as-is -o @/new"],
        "explain" => &["@/trace.txt", "@/trace.txt --spike 1", "@/run"],
        "probe spin" => &["-a 0 -D 50ms -o @/new"],
        "probe ipc" => &["futex -a 0 -D 50ms -o @/new"],
        "probe switch" => &["-a 0 -D 50ms -o @/new"],
        "probe hw" => &["--source spin -a 0 -D 50ms -o @/new"],
        "probe pi" => &["-a 0 -D 50ms -o @/new"],
        "probe migrate" => &["-D 50ms -o @/new", "-D 50ms --bound -o @/new"],
        "probe deadline" => &["-D 50ms -o @/new"],
        "probe irq" => &["-a 0 -D 50ms -o @/new"],
        "probe net" => &["-a 0 -D 50ms --path loopback --stamps none -o @/new"],
        "audit" => &["--root @/bare", "--diff @/capture --root @/bare"],
        "threads" => &["", "--cpus 0", "--pid @pid", "--bundle @/run"],
        "irqs" => &["", "--cpus 0", "--over 50ms", "--bundle @/run"],
        "check" => &["-D 50ms @pid"],
        "capture" => &["-o @/new"],
        "doctor" => &["", "measure tune"],
        "tune plan" => &["--root @/bare --cpus 0"],
        "tune status" => &[""],
        "tune import" => &["@/sysctl.conf"],
        "isolate list" => &[""],
        "load" => &["", "cpu:1 -D 1s"],
        "suite" => &["", "quick --plan", "nothing"],
        "prove" => {
            &["--change vmstat-interval=120 --limit 100us -a 0 --pairs 7 --dry-run", "--resume @/bare"]
        }
        "cure" => &["--limit 100us -a 0 --dry-run", "--resume @/bare"],
        "watch" => &["-D 1s --interval 1s -o @/new"],
        "rules" => &["", "rt-throttling"],
        "report" => &["@/run", "@/run @/other", "@/run -o @/new.html", "@/run --format csv", "@/capture"],
        "bounds" => &["@/run", "@/run --limit 50us", "@/run --period"],
        "compare" => &["@/run @/other"],
        "import" => &["@/hist.txt --as cyclictest -i 1000 -o @/new"],
        _ => panic!("{command} has --json: say here how it is tried"),
    }
}

fn leaves(command: &clap::Command, name: &str, into: &mut Vec<(String, clap::Command)>) {
    let shown = command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set());
    for sub in shown {
        let name = format!("{name} {}", sub.get_name()).trim().to_owned();
        if sub.has_subcommands() {
            leaves(sub, &name, into);
        } else {
            into.push((name, sub.clone()));
        }
    }
}

/// Flags without a value, each of which may select another mode.
fn switches(command: &clap::Command) -> Vec<String> {
    let all = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.get_action().takes_values());
    let long = all.filter_map(|arg| arg.get_long()).filter(|name| !NOT_MODES.contains(name));
    long.map(|name| format!("--{name}")).collect()
}

/// Inputs in a new folder.
fn inputs() -> Place {
    let place = Place::new();
    place.bundle("run", &gumbel(60, 1), |_, _| ());
    place.bundle("other", &gumbel(60, 2), |_, _| ());
    std::fs::create_dir(place.at("bare")).unwrap();
    std::fs::create_dir(place.at("capture")).unwrap();
    place.text("capture/capture.json", "{\"schema\":\"onbeat.capture/1\"}");
    place.text("hist.txt", "000010 000005\n000011 000003\n");
    place.text("sysctl.conf", "vm.stat_interval = 10\n");
    let trace = include_str!("../../../../../tests/fixtures/foreign/traces/ftrace.txt");
    place.text("trace.txt", trace);
    place
}

fn ask(place: &Place, command: &str, line: &str, flag: &str) -> Output {
    let own = std::process::id().to_string();
    let line = line.replace("@pid", &own).replace('@', &place.path(""));
    // The output of an earlier line would block the next.
    let _ = std::fs::remove_dir_all(place.at("new"));
    Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(command.split(' '))
        .args(["--json", "-"])
        .args(flag.split(' ').filter(|word| !word.is_empty()))
        .args(line.split(' ').filter(|word| !word.is_empty()))
        .env("XDG_STATE_HOME", place.path("state"))
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .unwrap()
}

#[test]
fn every_document_that_is_asked_for_is_written_or_refused() {
    let (place, mut all) = (inputs(), Vec::new());
    leaves(&onbeat::cli::whole(), "", &mut all);
    let documented = |command: &clap::Command| {
        command.get_arguments().any(|arg| arg.get_long() == Some("json") && arg.get_action().takes_values())
    };
    let (mut tried, mut written) = (0, 0);
    for (name, command) in all.iter().filter(|(_, command)| documented(command)) {
        if CHANGING.contains(&name.as_str()) {
            continue;
        }
        let mut any = false;
        for (at, line) in lines(name).iter().enumerate() {
            let given = |flag: &String| line.split(' ').any(|word| word == flag);
            let modes = if at == 0 { switches(command) } else { Vec::new() };
            for flag in modes.into_iter().filter(|flag| !given(flag)).chain([String::new()]) {
                let output = ask(&place, name, line, &flag);
                let said = String::from_utf8_lossy(&output.stderr);
                let (code, what) = (output.status.code(), format!("onbeat {name} {line} {flag}: {said}"));
                let is_document = serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok();
                match code {
                    Some(0 | 3 | 6 | 7) => assert!(is_document, "exit {code:?} without a document: {what}"),
                    Some(2 | 4 | 5) => {
                        assert!(output.stdout.is_empty() && said.contains("onbeat: "), "{what}");
                    }
                    _ => panic!("{code:?}: {what}"),
                }
                any |= is_document;
                tried += 1;
            }
        }
        written += u32::from(any);
    }
    assert!(tried > 50 && written > 15, "{tried} tried, {written} commands wrote");
}
