//! Runs fetched over ssh: a made-up ssh runs what it is told in a home of each host.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::server::farm;

/// Hosts that a made-up ssh reaches, and a store.
pub struct Hosts {
    folder: tempfile::TempDir,
}

impl Hosts {
    pub fn new() -> Hosts {
        let hosts = Hosts { folder: tempfile::tempdir().unwrap() };
        // Notes its arguments, then does what a shell over there would.
        let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" >> \"$HOSTS/asked\"\nwhile [ $# -gt 2 ]; do shift; \
                      done\ncase $1 in gone) echo no route >&2; exit 255;; hangs) exec sleep 1000;; esac\n\
                      case $1:$2 in stops:*'tar -cf'*) exec sleep 1000;; drops:*'tar -cf'*) \
                      echo cable >&2; exit 255;; esac\nunset XDG_STATE_HOME\n\
                      HOME=\"$HOSTS/$1\" exec sh -c \"$2\"\n";
        fs::create_dir(hosts.at("bin")).unwrap();
        executable(&hosts.at("bin/ssh"), script);
        hosts
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the runs of a host lie.
    pub fn runs(&self, host: &str) -> PathBuf {
        let runs = self.at(host).join(".local/state/onbeat/runs");
        fs::create_dir_all(&runs).unwrap();
        runs
    }

    fn pull(&self, arguments: &[&str]) -> (i32, String) {
        let output = farm(&["pull", "--store", &self.store()])
            .args(arguments)
            .env("PATH", self.path())
            .env("HOSTS", self.folder.path())
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn path(&self) -> String {
        format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap())
    }

    /// Runs a line in a folder, with the built farm.
    pub fn shell(&self, place: &Path, line: &str) -> Output {
        let farm = Path::new(env!("CARGO_BIN_EXE_onbeat-farm")).parent().unwrap();
        let path = format!("{}:{}", farm.display(), self.path());
        Command::new("sh")
            .args(["-c", line])
            .current_dir(place)
            .env("PATH", path)
            .env("HOSTS", self.folder.path())
            .output()
            .unwrap()
    }

    /// Gives a run of a host another id.
    pub fn rename_run(&self, host: &str, name: &str, id: &str) {
        let file = self.runs(host).join(name).join("run.json");
        let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        document["id"] = id.into();
        fs::write(file, document.to_string()).unwrap();
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.at("farm.db").display())
    }

    fn boards(&self) -> String {
        let output = farm(&["export", "--store", &self.store()]).output().unwrap();
        let mut boards: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap().to_owned())
            .collect();
        boards.dedup();
        boards.join(" ")
    }
}

fn executable(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs").join(name)
}

/// A run of its own id, with the files of a recorded one.
fn run(runs: &Path, of: &str, id: &str) -> PathBuf {
    let place = runs.join(id);
    fs::create_dir_all(&place).unwrap();
    let mut document: serde_json::Value =
        serde_json::from_slice(&fs::read(fixture(of).join("run.json")).unwrap()).unwrap();
    document["id"] = id.into();
    fs::write(place.join("run.json"), document.to_string()).unwrap();
    fs::copy(fixture(of).join("blocks.jsonl"), place.join("blocks.jsonl")).unwrap();
    place
}

#[test]
fn runs_are_fetched_once_from_several_hosts() {
    let hosts = Hosts::new();
    for at in 0..20 {
        run(&hosts.runs("press-3"), "measured", &format!("r{at:02}"));
    }
    let hunt = run(&hosts.runs("op@press-4"), "hunt", "h1");
    fs::create_dir_all(hunt.join("host/proc/sys/kernel")).unwrap();
    fs::write(hunt.join("host/proc/sys/kernel/a"), "1\n").unwrap();
    fs::write(hunt.join("page.html"), "no part of a run").unwrap();
    let (code, said) = hosts.pull(&["--always", "press-3", "op@press-4"]);
    assert!(code == 0 && said.contains("20 runs stored") && said.contains("1 run stored"), "{said}");
    assert!(said.contains("1 file left out"), "{said}");
    let (code, said) = hosts.pull(&["--always", "press-3", "op@press-4"]);
    assert!(code == 0 && said.contains("0 runs stored, 20 there already"), "{said}");
    let file = hosts.at("pulled.json");
    let (code, said) =
        hosts.pull(&["--always", "-q", "--json", file.to_str().unwrap(), "op@press-4", "press-3", "gone"]);
    assert_eq!((code, said.as_str()), (7, ""));
    let told: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let told = told["hosts"].as_array().unwrap();
    assert_eq!((&told[0]["host"], &told[0]["board"]), (&"gone".into(), &"gone".into()));
    assert!(told[0]["unasked"].is_string() && told[2]["had"] == 20 && told[1]["stored"] == 0, "{told:?}");
    assert_eq!(hosts.boards(), "press-3 press-4");
    let kept = hosts.at("farm.db.bundles");
    assert!(kept.join("h1/host/proc/sys/kernel/a").exists() && !kept.join("h1/page.html").exists());
    let checked = farm(&["check", "--store", &hosts.store()]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0));
    // Every argument of ssh is fixed but for the host, which stands behind all options.
    let asked = fs::read_to_string(hosts.at("asked")).unwrap();
    let lines: Vec<&str> = asked.lines().collect();
    let of_hosts = lines.iter().enumerate().filter(|(_, line)| ["press-3", "op@press-4"].contains(line));
    let before: Vec<&str> = of_hosts.map(|(at, _)| lines[at - 1]).collect();
    assert!(before.len() >= 6 && before.iter().all(|line| *line == "--"), "{asked}");
}

#[test]
fn what_a_host_sends_is_held_to_the_limits() {
    let hosts = Hosts::new();
    let runs = hosts.runs("bad");
    run(&runs, "measured", "good");
    fs::create_dir(runs.join("broken")).unwrap();
    fs::write(runs.join("broken/run.json"), "{}").unwrap();
    // Links lead nowhere, and a run that is one is none.
    let linked = run(&runs, "measured", "linked");
    fs::remove_file(linked.join("blocks.jsonl")).unwrap();
    symlink("/etc/passwd", linked.join("blocks.jsonl")).unwrap();
    symlink("/etc", linked.join("host")).unwrap();
    let large = run(&runs, "measured", "large");
    let file = fs::File::create(large.join("tail")).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    fs::create_dir(runs.join("a name")).unwrap();
    fs::write(runs.join("a name/run.json"), "{}").unwrap();
    let (code, said) = hosts.pull(&["--always", "bad"]);
    assert_eq!(code, 7, "{said}");
    for words in
        ["2 runs stored", "broken: its run.json", "large: large has more", "2 files left out", "1 line"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!hosts.at("farm.db.bundles/linked/blocks.jsonl").exists());
    // It is noted in the farm, too.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let noted = runtime.block_on(async {
        let store = farm::store::FarmStore::file(&hosts.at("farm.db")).await.unwrap();
        store.audit(50).await.unwrap()
    });
    let lines: Vec<&str> = noted.iter().map(|entry| entry.what.as_str()).collect();
    assert!(
        lines.iter().any(|line| line.starts_with("pull left out bad: broken: its run.json")),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.contains("large has more")), "{lines:?}");
    // Another host that says that it has the same runs is no owner of them.
    run(&hosts.runs("thief"), "hunt", "good");
    let (code, said) = hosts.pull(&["--always", "thief"]);
    assert!(code == 7 && said.contains("run of bad already"), "{said}");
    let (code, said) = hosts.pull(&["--always", "gone", "bare"]);
    assert!(code == 7 && said.contains("host not reached") && said.contains("no route"), "{said}");
    assert!(said.contains("no folder of runs") && !said.contains("refused"), "{said}");
}

#[test]
fn a_host_that_falls_silent_is_given_up_and_the_others_go_on() {
    let hosts = Hosts::new();
    run(&hosts.runs("press-3"), "measured", "r1");
    for at in 0..20 {
        run(&hosts.runs("stops"), "measured", &format!("s{at:02}"));
    }
    let (code, said) = hosts.pull(&["--always", "--silence", "4s", "hangs", "press-3", "stops"]);
    assert_eq!(code, 7, "{said}");
    assert!(said.contains("press-3: 1 run stored") && said.contains("stops: 0 runs stored"), "{said}");
    for host in ["hangs", "stops"] {
        let why = format!("{host}: nothing came from it for 4.0 s: log in by hand");
        // Also where there is more to be fetched.
        assert_eq!(said.matches(&why).count(), 1, "{said}");
    }
    // A connection that is lost is not made anew for each part of what there is.
    for at in 0..20 {
        run(&hosts.runs("drops"), "measured", &format!("d{at:02}"));
    }
    let (code, said) = hosts.pull(&["--always", "drops"]);
    assert!(code == 7 && said.contains("drops: 0 runs stored"), "{said}");
    assert_eq!(said.matches("drops: host not reached (cable)").count(), 1, "{said}");
    for wrong in ["0", "2d", "soon"] {
        let (code, said) = hosts.pull(&["--silence", wrong, "press-3"]);
        assert!(code == 2 && said.contains("--silence"), "{wrong}: {said}");
    }
}

#[test]
fn hosts_that_are_no_names_are_refused() {
    let hosts = Hosts::new();
    for host in ["-oProxyCommand=touch x", "a b", "user@-x", "$(reboot)"] {
        let (code, said) = hosts.pull(&["--", host]);
        assert!(code == 2 && said.contains("no host"), "{host}: {said}");
    }
    assert_eq!(hosts.pull(&["--board", "x", "a", "b"]).0, 2);
    assert_eq!(hosts.pull(&["one@a", "two@a"]).0, 2);
    assert!(!hosts.at("asked").exists());
}

#[test]
fn a_host_that_measures_is_left_in_peace() {
    let hosts = Hosts::new();
    run(&hosts.runs("busy"), "measured", "r1");
    let program = hosts.at("bin/onbeat");
    executable(&program, "#!/bin/sh\necho on\nread end\n");
    let mut measuring = Command::new(&program)
        .args(["measure", "-D", "1h"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 3];
    std::io::Read::read_exact(measuring.stdout.as_mut().unwrap(), &mut said).unwrap();
    let (code, told) = hosts.pull(&["busy"]);
    drop(measuring.stdin.take());
    measuring.wait().unwrap();
    assert!(code == 7 && told.contains("measures"), "{told}");
}
