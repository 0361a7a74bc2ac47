//! Maintenance of a farm for years: check, backup, retention, export.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::server::{Server, ask_bytes, farm};

fn told(arguments: &[&str]) -> (i32, String, String) {
    let output = farm(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Answer of `check` without a fault.
fn checked(runs: u64) -> String {
    format!("{runs} {} checked, 0 faults found\n", if runs == 1 { "run" } else { "runs" })
}

#[test]
fn a_store_is_looked_at_copied_thinned_out_and_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = format!("sqlite:{}", at("farm.db"));
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    for command in ["check", "prune", "export"] {
        let (code, _, said) = told(&[command, "--store", &store]);
        assert!(code == 2 && said.contains("no store"), "{command}: {said}");
    }
    let (code, _, said) = told(&["import", "--board", "a", "--store", &store, runs.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    let (code, out, said) = told(&["check", "--store", &store]);
    assert_eq!((code, out), (0, checked(2)), "{said}");
    assert!(said.contains("not checked: ") && !said.contains("--objects"), "{said}");

    // A copy is an independent store, and refers to its own bundles.
    let server = Server::start(&store);
    let (code, _, said) = told(&["backup", &at("copy"), "--store", &store]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(told(&["backup", &at("copy"), "--store", &store]).0, 2);
    let copy = format!("sqlite:{}", at("copy/farm.db"));
    let (code, out, _) = told(&["serve", "--store", &store, "--listen", "127.0.0.1:0"]);
    assert_eq!((code, out.as_str()), (4, ""), "two servers of one store");
    // Data sent for no run stay while a server may be about to use them.
    fs::create_dir_all(folder.path().join("farm.db.bundles/x+0/host")).unwrap();
    fs::create_dir_all(folder.path().join("farm.db.bundles/.pieces/a")).unwrap();
    let (code, _, said) = told(&["prune", "--store", &store]);
    assert!(code == 0 && said.contains("a server is running"), "{said}");
    drop(server);
    let (code, out, _) = told(&["prune", "-q", "--store", &store]);
    assert!(code == 0 && out.contains("\n2 folders that belong to no run deleted\n"), "{out}");
    let left = fs::read_dir(folder.path().join("farm.db.bundles")).unwrap().count();
    // Two runs and the lock.
    assert_eq!(left, 3);
    assert_eq!(told(&["check", "--store", &store]).0, 0);

    let mut reader = farm(&["export", "--store", &store]);
    let mut reader = reader.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(reader.stdout.take());
    let ended = reader.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr).unwrap()), (Some(0), String::new()));
    let (code, csv, _) = told(&["export", "--store", &store]);
    assert_eq!(code, 0);
    assert!(csv.starts_with("board,series,plan,t,time,n,"), "{csv}");
    let (_, days, _) = told(&["export", "--histograms", "1d", "--board", "a", "--store", &store]);
    let sum = |document: serde_json::Value| document["histogram"]["n"].as_u64().unwrap();
    let total: u64 = days.lines().map(|line| sum(serde_json::from_str(line).unwrap())).sum();
    let slots: u64 =
        csv.lines().skip(1).map(|line| line.split(',').nth(5).unwrap().parse::<u64>().unwrap()).sum();
    assert!(total > 0 && slots > 0, "{total} {slots}");
    let (code, lines, _) = told(&["export", "--lava", "--limit", "1ns", "--store", &store]);
    assert!(code == 0 && lines.lines().count() == 2 && lines.contains(" --result fail "), "{lines}");
    let (_, report, _) = told(&["export", "--kcidb", "a_lab", "--from", "1", "--store", &store]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["tests"].as_array().unwrap().len(), 2);
    for wrong in [&["--kcidb", "a lab"][..], &["--limit", "1us"], &["--lava", "--limit", "x"]] {
        let (code, _, said) = told(&[&["export", "--store", &store], wrong].concat());
        assert!(code == 2 && said.lines().count() == 1, "{said}");
    }
    assert_eq!(told(&["export", "--board", "none", "--store", &store]).0, 2);
    assert_eq!(told(&["export", "--histograms", "2d", "--store", &store]).0, 2);

    // The original is removed, and the copy is complete.
    fs::remove_dir_all(folder.path().join("farm.db.bundles")).unwrap();
    let (code, out, said) = told(&["check", "--store", &store]);
    assert!(code == 3 && out.ends_with("\n2 runs checked, 2 faults found\n"), "{out}");
    assert!(
        out.lines().count() == 3 && said.contains("2 bundles are not") && said.contains("--objects DIR"),
        "{said}"
    );
    assert_eq!(told(&["check", "--store", &copy]).0, 0);
    assert_eq!(told(&["export", "--store", &copy]).1, csv);
}

#[test]
fn what_is_in_a_backup_and_what_is_not_is_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = format!("sqlite:{}", at("farm.db"));
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    assert_eq!(told(&["import", "--board", "a", "--store", &store, runs.to_str().unwrap()]).0, 0);
    let backed_up = |name: &str, wanted: i32| -> serde_json::Value {
        let (code, out, said) = told(&["backup", &at(name), "--json", "-", "-q", "--store", &store]);
        assert_eq!((code, said.as_str()), (wanted, ""), "{out}");
        serde_json::from_str(&out).unwrap()
    };
    let whole = backed_up("whole", 0);
    assert_eq!((&whole["schema"], &whole["copied"]), (&"onbeat.farm-backup/1".into(), &2.into()));
    assert!(whole["place"].as_str().unwrap().ends_with("/whole") && whole["in_bucket"] == 0, "{whole}");
    assert_eq!(whole["missing"].as_array().unwrap().len(), 0);
    // Each run is in the store, and its copy is gone.
    fs::remove_dir_all(at("farm.db.bundles")).unwrap();
    let short = backed_up("short", 7);
    let missing = short["missing"].as_array().unwrap();
    assert!(short["copied"] == 0 && missing.len() == 2, "{short}");
    assert!(missing.iter().all(|one| one["run"].is_string() && one["reason"].is_string()), "{short}");
}

#[test]
fn a_result_that_cannot_be_printed_ends_with_one_and_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("farm.db").display());
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    assert_eq!(told(&["import", "--board", "a", "--store", &store, runs.to_str().unwrap()]).0, 0);
    assert_eq!(told(&["user", "add", "ann", "--generate", "--store", &store]).0, 0);
    assert_eq!(told(&["budget", "200us", "--store", &store]).0, 0);
    // Each run is a fault without its copy.
    fs::remove_dir_all(folder.path().join("farm.db.bundles")).unwrap();
    for command in [&["user", "list"][..], &["budget"], &["check"], &["prune"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let words = [command, &["--store", &store]].concat();
        let ended = farm(&words).stdout(full).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("onbeat-farm: cannot print it"), "{command:?}: {said}");
    }
}

#[test]
fn a_signal_ends_a_command_that_waits_with_six_and_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["-INT", "-TERM"] {
        let file = folder.path().join(format!("farm{signal}.db"));
        let store = format!("sqlite:{}", file.display());
        // No password is given.
        let mut child = farm(&["user", "add", "ann", "--store", &store]);
        let mut child = child.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        // It listens to signals before it makes a store.
        while !file.exists() {
            assert!(child.try_wait().unwrap().is_none());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(6), "{signal}: {said}");
        // The remark on a new store may come before the signal.
        let (remarks, last) = said.trim_end().rsplit_once('\n').unwrap_or(("", said.trim_end()));
        assert!(last.starts_with("onbeat-farm: interrupted: "), "{said}");
        assert!(
            remarks.is_empty() || remarks.contains(" is new: ") && remarks.lines().count() == 1,
            "{said}"
        );
        drop(input);
    }
}

/// The codes of answers about the runs of a store: the page, and the document of each.
fn answers(store: &str, runs: &[String]) -> Vec<u16> {
    let server = Server::start(store);
    let asked =
        runs.iter().flat_map(|run| [format!("/runs/{run}"), format!("/v1/runs/{run}/files/run.json")]);
    asked.map(|path| ask_bytes(&server.address, "GET", &path, "", "", "").unwrap().0).collect()
}

#[test]
fn a_backup_is_a_store_by_itself_wherever_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = |name: &str| format!("sqlite:{}", at(name));
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    fs::create_dir(at("farm")).unwrap();
    let first = store("farm/farm.db");
    assert_eq!(told(&["import", "--board", "a", "--store", &first, runs.to_str().unwrap()]).0, 0);
    let own = folder.path().join("farm/farm.db.bundles");
    let names = fs::read_dir(&own).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| own.join(name).join("run.json").exists()).collect();
    assert_eq!(told(&["backup", &at("one"), "--store", &first]).0, 0);
    let files = fs::read_dir(at("one")).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.collect();
    files.sort();
    assert_eq!(files, ["farm.db", "farm.db.bundles"], "what else belongs to it may be left behind");

    // Without its bundles it uses no other store's, neither to show nor to thin them.
    fs::create_dir(at("bare")).unwrap();
    fs::copy(at("one/farm.db"), at("bare/farm.db")).unwrap();
    let bare = store("bare/farm.db");
    let (code, out, _) = told(&["check", "--store", &bare]);
    assert_eq!((code, out.lines().count()), (3, 3), "{out}");
    for name in &names {
        set_age(&own.join(name).join("run.json"), 400);
        set_age(&folder.path().join("one/farm.db.bundles").join(name).join("run.json"), 400);
    }
    let all = ["--blocks", "0", "--windows", "0", "--store", &bare];
    assert_eq!(told(&[&["prune"], &all[..]].concat()).0, 0);
    for bundles in ["farm/farm.db.bundles", "one/farm.db.bundles"] {
        let has_blocks = |name: &String| folder.path().join(bundles).join(name).join("blocks.jsonl").exists();
        assert!(names.len() == 2 && names.iter().all(has_blocks), "{bundles}");
    }

    fs::remove_dir_all(at("farm")).unwrap();
    for (from, to) in [("one", "two"), ("two", "three")] {
        fs::rename(at(from), at(to)).unwrap();
        let moved = store(&format!("{to}/farm.db"));
        let (code, out, said) = told(&["check", "--store", &moved]);
        assert_eq!((code, out), (0, checked(2)), "{said}");
        assert_eq!(answers(&moved, &names), [200; 4]);
    }
}

/// Asserts that no other user may access a folder or read its contents.
fn assert_private(folder: &Path) {
    let mode = fs::metadata(folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{}", folder.display());
    for entry in fs::read_dir(folder).unwrap().map(|one| one.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            assert_private(&entry.path());
        } else {
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
        }
    }
}

#[test]
fn bundles_and_backups_are_their_users_alone_and_what_was_there_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = format!("sqlite:{}", at("farm.db"));
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    let import = ["import", "--board", "a", "--store", &store, runs.to_str().unwrap()];
    assert_eq!(told(&import).0, 0);
    assert_private(&folder.path().join("farm.db.bundles"));
    assert_eq!(told(&["backup", &at("copies/one"), "--store", &store]).0, 0);
    assert_private(&folder.path().join("copies/one"));
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(at("farm.db.bundles"), open).unwrap();
    assert_eq!(told(&import).0, 0);
    let mode = fs::metadata(at("farm.db.bundles")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[test]
fn a_backup_without_room_leaves_nothing_that_counts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = format!("sqlite:{}", at("farm.db"));
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    assert_eq!(told(&["import", "--board", "a", "--store", &store, runs.to_str().unwrap()]).0, 0);
    // No file may be as long as the database, and writing more is an error instead of a signal (25
    // is SIGXFSZ).
    let farm = env!("CARGO_BIN_EXE_onbeat-farm");
    let line = format!("trap '' 25; ulimit -f 128; exec {farm} backup '{}' --store '{store}'", at("b/one"));
    let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("no backup was written"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(fs::read_dir(at("b")).unwrap().count(), 0);
    let (code, _, said) = told(&["backup", &at("b/one"), "--store", &store]);
    assert!(code == 0 && said.contains("b/one"), "{said}");
    assert_eq!(told(&["check", "--store", &format!("sqlite:{}", at("b/one/farm.db"))]).0, 0);
}

#[test]
fn a_store_has_one_server_also_where_its_folder_is_lost_or_another() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (store, elsewhere) = (format!("sqlite:{}", at("farm.db")), at("elsewhere"));
    let server = Server::start(&store);
    fs::remove_dir_all(at("farm.db.bundles")).unwrap();
    fs::create_dir_all(at("farm.db.bundles/x+0/host")).unwrap();
    let serve = ["serve", "--store", &store, "--listen", "127.0.0.1:0"];
    for more in [&["--objects", elsewhere.as_str()][..], &[]] {
        let (code, out, said) = told(&[&serve[..], more].concat());
        assert_eq!((code, out.as_str(), said.lines().count()), (4, "", 1), "{said}");
        assert!(said.contains(&format!("process {} already serves", server.pid())), "{said}");
    }
    let (code, _, said) = told(&["prune", "--store", &store]);
    assert!(code == 0 && said.contains("a server is running"), "{said}");
    assert!(Path::new(&at("farm.db.bundles/x+0/host")).exists());
    drop(server);
    let (code, out, said) = told(&["prune", "--store", &store]);
    assert!(code == 0 && out.contains("1 folder"), "{out}{said}");
    drop(Server::with(&store, &["--objects", &elsewhere]));
}

/// Sets when a file was written, in days before now.
fn set_age(file: &Path, days: u64) {
    let came = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
    fs::File::options().write(true).open(file).unwrap().set_modified(came).unwrap();
}

#[test]
fn old_runs_are_thinned_out_but_for_those_that_are_pinned() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("farm.db").display());
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    assert_eq!(told(&["import", "--board", "a", "--store", &store, runs.to_str().unwrap()]).0, 0);
    let bundles = folder.path().join("farm.db.bundles");
    let names: Vec<String> = fs::read_dir(&bundles)
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .filter(|name| bundles.join(name).join("run.json").exists())
        .collect();
    let hunt = names.iter().find(|name| bundles.join(name).join("events").exists()).unwrap();
    let other = names.iter().find(|name| *name != hunt).unwrap();
    let has = |run: &str| bundles.join(run).join("blocks.jsonl").exists();
    let (code, out, _) = told(&["prune", "--dry-run", "--store", &store]);
    assert!(code == 0 && !out.contains('\t'), "they came today: {out}");
    names.iter().for_each(|name| set_age(&bundles.join(name).join("run.json"), 400));
    // Their age counts from their start, if that is later.
    let all = ["--blocks", "0", "--windows", "0", "--store", &store];
    let (code, out, said) = told(&[&["prune", "--dry-run"], &all[..]].concat());
    assert_eq!((code, out.lines().filter(|line| line.contains('\t')).count()), (0, 2), "{out}{said}");
    assert!(out.starts_with("would be deleted") && out.contains(&format!("\n{other}\tblocks\t")), "{out}");
    assert!(has(hunt) && has(other));

    let (code, _, said) = told(&["pin", "none", "--store", &store]);
    assert!(code == 2 && said.lines().count() == 1, "{said}");
    assert_eq!(told(&["pin", hunt, "--note", "baseline", "--store", &store]).0, 0);
    let (code, out, _) = told(&["pin", "--store", &store]);
    assert!(code == 0 && out.starts_with(&format!("{hunt}\ta\t")) && out.ends_with("baseline\n"), "{out}");
    // A bundle that is not old does not count as pinned.
    let (code, out, _) =
        told(&["prune", "--dry-run", "--blocks", "9000d", "--windows", "9000d", "--store", &store]);
    assert!(code == 0 && out.contains("0 old runs stay in full because they are pinned"), "{out}");
    let (code, out, _) = told(&[&["prune"], &all[..]].concat());
    assert!(code == 0 && out.contains("1 old run stays in full because it is pinned"), "{out}");
    assert!(has(hunt) && !has(other));
    let (code, out, said) = told(&["check", "--store", &store]);
    assert_eq!((code, out), (0, checked(2)), "{said}");
    assert_eq!(told(&["pin", "--remove", hunt, "--store", &store]).0, 0);
    assert_eq!(told(&["pin", "--remove", hunt, "--store", &store]).0, 2);
    assert_eq!(told(&[&["prune"], &all[..]].concat()).0, 0);
    // The first run with a culprit, and the worst of its week, keep their traces.
    assert!(!has(hunt) && bundles.join(hunt).join("events/spikes.jsonl").exists());
}

#[test]
fn a_run_is_removed_with_all_of_it_and_comes_again_only_where_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = format!("sqlite:{}", at("farm.db"));
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    let import = || told(&["import", "--board", "a", "--store", &store, runs.to_str().unwrap()]);
    assert_eq!(import().0, 0);
    let bundles = folder.path().join("farm.db.bundles");
    let hunt = "20261122T053833-1dab78ed";
    assert!(bundles.join(hunt).exists());
    for (words, remedy) in
        [(&["forget", "none"][..], "runs of its board"), (&["forget", "none", hunt][..], "runs of its board")]
    {
        let (code, out, said) = told(&[words, &["--store", &store]].concat());
        assert_eq!((code, out.as_str(), said.lines().count()), (2, "", 1), "{said}");
        assert!(said.contains(remedy), "{said}");
    }
    assert_eq!(told(&["pin", hunt, "--store", &store]).0, 0);
    let (code, _, said) = told(&["forget", hunt, "--store", &store]);
    assert!(code == 2 && said.contains(&format!("pin --remove {hunt}")), "{said}");
    assert!(bundles.join(hunt).exists());
    assert_eq!(told(&["pin", "--remove", hunt, "--store", &store]).0, 0);
    let (code, _, said) = told(&["forget", hunt, "--store", &store, "--json", &at("gone.json")]);
    assert!(code == 0 && said.contains(&format!("removed {hunt} of a: 7655 samples, 1 maximum")), "{said}");
    let gone: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(at("gone.json")).unwrap()).unwrap();
    let first = &gone["removed"][0];
    assert_eq!((&gone["schema"], &first["samples"]), (&"onbeat.farm-forget/1".into(), &7655.into()));
    assert_eq!((&first["bundle_gone"], &gone["not_again"][0]["run"]), (&true.into(), &hunt.into()));
    assert!(!bundles.join(hunt).exists());
    assert_eq!(told(&["check", "-q", "--store", &store]), (0, checked(1), String::new()));
    let (code, _, said) = import();
    assert!(code == 7 && said.contains("is not stored again"), "{said}");
    let (code, out, _) = told(&["forget", "--store", &store]);
    assert!(code == 0 && out.starts_with(&format!("{hunt}\t20")), "{out}");
    assert_eq!(told(&["forget", "--allow", hunt, "--store", &store]).0, 0);
    assert_eq!(told(&["forget", "--store", &store]).1, "");
    assert_eq!((import().0, bundles.join(hunt).exists()), (0, true));
    // With --allow it returns at once.
    assert_eq!(told(&["forget", "--allow", hunt, "--store", &store]).0, 0);
    assert_eq!((bundles.join(hunt).exists(), import().0, bundles.join(hunt).exists()), (false, 0, true));
    let (code, out, said) = told(&["check", "--store", &store]);
    assert_eq!((code, out), (0, checked(2)), "{said}");
    let (code, _, said) = told(&["forget", hunt, "--from", &at("none"), "--store", &store]);
    assert!(code == 2 && said.contains("--from"), "{said}");
    assert!(bundles.join(hunt).exists());
}

#[test]
fn a_store_that_is_named_in_another_way_loses_no_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("farm.db").display());
    let server = Server::start(&store);
    let code = super::server::codes(&store, 1).remove(0);
    let asked = serde_json::json!({ "code": code, "name": "a" }).to_string();
    let (_, answer) = super::server::ask(&server.address, "POST", "/v1/enrol", "", "", &asked).unwrap();
    let token = answer["token"].as_str().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/measured/run.json");
    let document = fs::read(fixture).unwrap();
    let run: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let digest: String = {
        use std::process::{Command, Stdio};
        let mut sum = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut sum.stdin.take().unwrap(), &document).unwrap();
        String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap()[..64].to_owned()
    };
    let file = serde_json::json!({ "path": "run.json", "bytes": document.len(), "pieces": [&digest] });
    let manifest = serde_json::json!({ "schema": "onbeat.manifest/1", "files": [file], "signature": null });
    let put = |path: &str, body: &[u8]| {
        super::server::ask(&server.address, "PUT", path, token, "", body).unwrap().0
    };
    assert_eq!(put(&format!("/v1/pieces/{digest}"), &document), 201);
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(put(&path, manifest.to_string().as_bytes()), 201);
    assert_private(&folder.path().join("farm.db.bundles"));
    drop(server);
    let pruned = farm(&["prune", "--store", "sqlite:farm.db"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(pruned.status.code(), Some(0));
    let (code, out, _) = told(&["check", "--store", &store]);
    assert_eq!((code, out), (0, checked(1)));
}

#[test]
fn each_command_with_a_result_writes_it_as_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = format!("sqlite:{}", at("farm.db"));
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    let runs = runs.to_str().unwrap();
    fs::create_dir_all(at("bad/x")).unwrap();
    fs::write(at("bad/x/run.json"), "{}").unwrap();
    let asked = |code: i32, words: &[&str]| -> serde_json::Value {
        let (got, out, said) = told(&[words, &["--json", "-", "-q", "--store", &store]].concat());
        // What is refused is printed in any case.
        assert_eq!((got, said.lines().count()), (code, usize::from(code == 7)), "{words:?}: {said}");
        serde_json::from_str(&out).unwrap_or_else(|why| panic!("{words:?}: {why} in {out}"))
    };
    let length = |of: &serde_json::Value| of.as_array().unwrap().len();
    let taken = asked(7, &["import", "--board", "a", runs, &at("bad")]);
    assert_eq!((&taken["schema"], length(&taken["stored"])), (&"onbeat.farm-import/1".into(), 2));
    let refused = &taken["refused"][0];
    assert!(refused["place"].as_str().unwrap().ends_with("bad/x") && refused["reason"].is_string());
    assert_eq!(length(&asked(0, &["import", "--board", "a", runs])["had"]), 2);
    let codes = asked(0, &["enrol", "--count", "3", "--lab", "west"]);
    assert_eq!((length(&codes["codes"]), &codes["tags"][0]), (3, &"lab=west".into()));
    assert_eq!(asked(0, &["budget", "200us", "--tag", "arm"])["tags"][0]["budget_ns"], 200_000);
    assert_eq!(asked(0, &["budget"])["schema"], "onbeat.farm-budgets/1");
    assert_eq!(length(&asked(0, &["user", "list"])["users"]), 0);
    // The lock of the folder is next to them.
    let mut kept = fs::read_dir(at("farm.db.bundles")).unwrap().map(|one| one.unwrap());
    let run = kept.find(|one| one.path().join("run.json").exists()).unwrap().file_name();
    let pinned = asked(0, &["pin", run.to_str().unwrap(), "--note", "a baseline"]);
    assert_eq!((&pinned["pins"][0]["note"], length(&asked(0, &["pin"])["pins"])), (&"a baseline".into(), 1));
    let would = asked(0, &["prune", "--dry-run", "--blocks", "0s"]);
    assert_eq!((&would["dry_run"], &would["failed"]), (&true.into(), &serde_json::json!([])));
    assert_eq!(asked(0, &["check"])["runs"], 2);
    fs::write(Path::new(&at("farm.db.bundles")).join(&run).join("run.json"), "{}").unwrap();
    assert_eq!(length(&asked(3, &["check"])["faults"]), 1);
    // With a file the text is printed all the same. A file that cannot be written is refused before
    // anything is done.
    let (code, out, _) = told(&["budget", "--store", &store, "--json", &at("budgets.json")]);
    assert_eq!((code, out.as_str()), (0, "tag arm\t200us\n"));
    assert!(fs::read_to_string(at("budgets.json")).unwrap().ends_with("}\n"));
    let (code, out, said) = told(&["enrol", "--store", &store, "--json", &at("none/codes.json")]);
    assert!(code == 2 && out.is_empty() && said.contains("--json"), "{said}");
}

#[test]
fn what_is_refused_and_the_answer_are_printed_when_remarks_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = format!("sqlite:{}", at("farm.db"));
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    fs::create_dir_all(at("bad/x")).unwrap();
    fs::write(at("bad/x/run.json"), "{}").unwrap();
    fs::create_dir(at("newer")).unwrap();
    fs::write(at("newer/record.json"), "{\"schema\":\"onbeat.watch/2\"}\n").unwrap();
    let words = ["import", "-q", "--board", "a", "--store", &store, runs.to_str().unwrap()];
    let (bad, newer, document) = (at("bad"), at("newer"), at("import.json"));
    let (code, out, said) = told(&[&words[..], &[&bad, &newer, "--json", &document]].concat());
    let answer = "2 runs stored, 0 already stored, 2 refused; 1 record: 0 rows stored, 0 already stored\n";
    assert_eq!((code, out.as_str(), said.lines().count()), (7, answer, 2), "{said}");
    assert!(said.contains("bad/x: ") && said.contains("newer onbeat"), "{said}");
    let taken: serde_json::Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
    let refused = taken["refused"].as_array().unwrap();
    assert!(refused.len() == 2 && refused[1]["place"].as_str().unwrap().contains("/newer"), "{taken}");
    assert_eq!(told(&["check", "-q", "--store", &store]), (0, checked(2), String::new()));
    let (code, out, said) = told(&["prune", "-q", "--store", &store]);
    assert!(code == 0 && out.lines().all(|line| line.contains("deleted")), "{out}");
    assert_eq!((out.lines().count(), said.as_str()), (4, ""), "{out}");
}
