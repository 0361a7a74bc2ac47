//! The commands of `docs/farm-setup.md`, in their order, except for those that change the machine.
//! onbeat's commands that need root there use the folders of the test, and need none here.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use push::cli::{PushEnvironment, run};

use super::server::Server;

const PAGE: &str = include_str!("../../../../docs/farm-setup.md");
/// Beginnings of commands that change the machine, or take minutes.
const LEFT_OUT: [&str; 2] = ["sudo ", "cargo "];

fn commands() -> Vec<&'static str> {
    let blocks = PAGE.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let without_root =
        |line: &'static str| line.strip_prefix("sudo ").filter(|rest| rest.starts_with("onbeat-"));
    let lines = blocks.flat_map(str::lines).map(|line| without_root(line).unwrap_or(line));
    lines.filter(|line| !LEFT_OUT.iter().any(|word| line.starts_with(word))).collect()
}

/// The arguments of the farm in its unit.
fn served() -> Vec<&'static str> {
    let line = PAGE.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/onbeat-farm serve "));
    line.unwrap().split(' ').collect()
}

/// The commands of its other units, by their beginnings, each in shell syntax.
fn in_units(begin: &str) -> Vec<String> {
    let lines = PAGE.lines().filter(|line| !line.contains("onbeat-farm serve "));
    lines.filter_map(|line| line.strip_prefix(begin)).map(|line| line.replace("%%", "%")).collect()
}

/// Runs a line in a folder, with the built farm.
fn shell(place: &Path, line: &str) -> Output {
    let farm = Path::new(env!("CARGO_BIN_EXE_onbeat-farm")).parent().unwrap();
    let path = format!("{}:{}", farm.display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", line]).current_dir(place).env("PATH", path).output().unwrap()
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn every_command_of_the_page_does_what_it_says() {
    if !has("openssl") || !has("curl") {
        eprintln!("left out: the service as its page sets it up (openssl or curl is not installed)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (place, home) = (folder.path().join("work"), folder.path().join("board"));
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/measured");
    // The second is one fetched by rsync.
    let document = fs::read_to_string(fixture.join("run.json")).unwrap();
    let id = serde_json::from_str::<serde_json::Value>(&document).unwrap()["id"].to_string();
    for (runs, id_there) in
        [(home.join(".local/state/onbeat/runs/r"), id.as_str()), (place.join("boards/press-9/r"), "\"r9\"")]
    {
        fs::create_dir_all(&runs).unwrap();
        fs::write(runs.join("run.json"), document.replacen(&id, id_there, 1)).unwrap();
        fs::copy(fixture.join("blocks.jsonl"), runs.join("blocks.jsonl")).unwrap();
    }
    let at = |name: &str| place.join(name).display().to_string();
    let (mut server, mut codes): (Option<Server>, Vec<String>) = (None, Vec::new());
    let mut done = 0;
    for line in commands() {
        // The page's addresses, with this machine's in their place.
        let mut line = line.replace("subjectAltName=DNS:farm.example", "subjectAltName=IP:127.0.0.1");
        line = line.replace("/var/lib/onbeat-farm/", &format!("{}/", place.display()));
        if line.contains("farm.example:8377") && server.is_none() {
            server = Some(start(&place));
        }
        if let Some(server) = &server {
            line = line.replace("farm.example:8377", &server.address);
        }
        if line.contains(" CODE ") {
            line = line.replace(" CODE ", &format!(" {} ", codes.remove(0)));
        }
        if let Some(words) = line.strip_prefix("onbeat-push ") {
            let state = home.join(".local/state").display().to_string();
            let words = words.replace("/etc/onbeat/ca.pem", &at("ca.pem"));
            let words = words.replace("/var/lib/onbeat/", &format!("{state}/onbeat/"));
            let words = words.replace("~/.local/state", &state);
            let more: &[&str] = if words.contains("--once") { &["--when", "always"] } else { &[] };
            let all = ["onbeat-push"].into_iter().chain(words.split(' ')).chain(more.iter().copied());
            let environment = PushEnvironment { state_home: None, home: Some(home.clone().into()) };
            assert_eq!(run(all.map(OsString::from), &environment), 0, "{line}");
        } else {
            let output = shell(&place, &line);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{line}: {said}");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            if line.contains(" enrol ") {
                codes = printed.lines().map(str::to_owned).collect();
                assert_eq!(codes.len(), 10);
            }
            if line.contains(" --lava ") {
                assert_eq!(printed.lines().count(), 1, "{printed}");
            }
        }
        done += 1;
    }
    assert!(done >= 14, "{done}");
    let secret = fs::read_to_string(at("hook.secret")).unwrap();
    let hook = format!("http{}127.0.0.1:9/", "://");
    assert!(farm::web::Webhook::new(&hook, &secret).is_ok(), "the secret of the page is none");
}

/// The server as the unit starts it.
fn start(place: &Path) -> Server {
    let at = |name: &str| place.join(name).display().to_string();
    let mut rest: Vec<String> = Vec::new();
    let mut words = served().into_iter().filter(|word| *word != "--metrics-open");
    while let (Some(flag), Some(value)) = (words.next(), words.next()) {
        match flag {
            "--store" => assert!(value.ends_with("/farm.db")),
            "--listen" => assert_eq!(value, "0.0.0.0:8377"),
            _ => rest.extend([flag.to_owned(), at(value.rsplit('/').next().unwrap())]),
        }
    }
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    Server::with(&format!("sqlite:{}", at("farm.db")), &rest)
}

#[test]
fn the_timers_of_the_page_back_up_keep_the_last_fourteen_and_prune() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("work");
    let backups = place.join("backups");
    fs::create_dir_all(&backups).unwrap();
    let folders = [
        ("/var/lib/onbeat-farm-backups", &backups),
        ("/var/lib/onbeat-farm/farm.db", &place.join("farm.db")),
    ];
    let run = |line: &str| {
        let line = folders.iter().fold(line.replace("/usr/local/bin/", ""), |line, (from, to)| {
            line.replace(from, &to.display().to_string())
        });
        let output = shell(&place, &line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run("onbeat-farm enrol --store sqlite:/var/lib/onbeat-farm/farm.db");
    for day in 1..=16 {
        let day = backups.join(format!("2020-01-{day:02}"));
        fs::create_dir_all(day.join("farm.db.bundles")).unwrap();
        fs::write(day.join("farm.db"), "a store").unwrap();
    }
    // A failed backup does not count.
    fs::create_dir_all(backups.join(".2020-01-17.onbeat.part")).unwrap();
    for (day, made) in [("2020-01-17", "farm.db"), ("2020-01-18", "other")] {
        fs::create_dir(backups.join(day)).unwrap();
        fs::write(backups.join(day).join(made), "").unwrap();
    }
    fs::create_dir(backups.join("before-the-move")).unwrap();
    let (starts, after) = (in_units("ExecStart="), in_units("ExecStartPost="));
    let [backup, prune] = &starts[..] else { panic!("other units than those two: {starts:?}") };
    let [keep] = &after[..] else { panic!("nothing bounds the backups: {after:?}") };
    run(backup);
    run(keep);
    let mut left: Vec<String> = fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort_unstable();
    assert_eq!((left.len(), left[0].as_str(), left[16].as_str()), (17, "2020-01-04", "before-the-move"));
    assert_eq!(left[13..15], ["2020-01-17", "2020-01-18"]);
    assert!(backups.join(&left[15]).join("farm.db").is_file(), "{left:?}");
    // The same again, with nothing to remove.
    run(keep);
    assert_eq!(fs::read_dir(&backups).unwrap().count(), 17);
    assert!(run(prune).contains("deleted: 0 histograms"));
    let timers = PAGE.matches("OnCalendar=daily\nPersistent=yes\n").count();
    let units = PAGE.matches("Type=oneshot\n").count();
    assert_eq!((timers, units), (2, 2));
}

#[test]
fn the_way_back_of_the_page_leaves_nothing_of_the_store_that_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("work");
    let state = place.join("state");
    fs::create_dir_all(&state).unwrap();
    let section = PAGE.split("### Back to a backup").nth(1).unwrap();
    let lines = section.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let lines = lines.lines().map(|line| line.strip_prefix("sudo ").unwrap());
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("systemctl ")).collect();
    let run = |line: &str| {
        let line = line.replace("/var/lib/onbeat-farm", &state.display().to_string());
        let output = shell(&place, &line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run("onbeat-farm enrol --store sqlite:/var/lib/onbeat-farm/farm.db");
    run("onbeat-farm backup backups/monday --store sqlite:/var/lib/onbeat-farm/farm.db");
    for left in ["farm.db-wal", "farm.db.lock"] {
        fs::write(state.join(left), "of the store that was there").unwrap();
    }
    fs::write(state.join("farm.db"), "damaged").unwrap();
    fs::create_dir_all(state.join("farm.db.bundles/later")).unwrap();
    let (last, first) = lines.split_last().unwrap();
    first.iter().for_each(|line| run(line));
    let (copy, backup) = (state.join("farm.db"), place.join("backups/monday/farm.db"));
    assert!(fs::read(&copy).unwrap() == fs::read(backup).unwrap());
    assert_eq!(fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
    // The check of the backup may have left an empty one next to it.
    let log = |folder: &Path| fs::read(folder.join("farm.db-wal")).unwrap_or_default();
    assert!(log(&state).is_empty() && !log(&state.join("before")).is_empty());
    let later = "farm.db.bundles/later";
    assert!(!state.join(later).exists() && state.join("before").join(later).exists());
    run(last);
    run("onbeat-farm check --store sqlite:/var/lib/onbeat-farm/farm.db");
}
