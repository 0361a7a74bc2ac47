//! Tests of switch scripts, in a process without other tests, because any new child of the process
//! counts as the script's.

#![allow(clippy::disallowed_methods)] // These tests write scripts and see what they did.
#![allow(clippy::unwrap_used)] // Clippy knows unit tests as tests, not helpers of integration tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use host::switch_script::{ScriptEnd, SwitchScript, end_marked};
use model::units::Nanos;

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Script that runs this text, with its word in `$1`.
fn script(text: &str) -> (tempfile::TempDir, SwitchScript) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switch");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let script = SwitchScript::open(&path).unwrap();
    (folder, script)
}

/// Child that has its environment: spawn may return before execve(2) has set it.
fn marked(command: &mut Command, mark: &Path) -> Child {
    let child = command.env("ONBEAT_SCRIPT", mark).spawn().unwrap();
    let environment = format!("/proc/{}/environ", child.id());
    while !String::from_utf8_lossy(&fs::read(&environment).unwrap()).contains("ONBEAT_SCRIPT") {
        std::thread::yield_now();
    }
    child
}

const LONG: Nanos = Nanos(60_000_000_000);

fn never() -> bool {
    false
}

#[test]
fn it_is_called_with_its_word_and_its_last_line_is_kept() {
    let _alone = alone();
    let (folder, done) = script("printf '%s' \"$1\" >\"$(dirname \"$0\")/told\"");
    assert_eq!(done.call("a b; c", LONG, done.path(), &never).unwrap(), ScriptEnd::Done);
    assert_eq!(fs::read_to_string(folder.path().join("told")).unwrap(), "a b; c");
    let (_folder, failing) = script("echo one; echo 'no such knob' >&2; echo; exit 3");
    let failed = ScriptEnd::Failed { code: Some(3), said: "no such knob".into() };
    assert_eq!(failing.call("b", LONG, failing.path(), &never).unwrap(), failed);
    let (_folder, killed) = script("kill -9 $$");
    assert!(matches!(
        killed.call("b", LONG, killed.path(), &never).unwrap(),
        ScriptEnd::Failed { code: None, .. }
    ));
}

#[test]
fn one_that_hangs_is_killed_with_all_that_it_started() {
    let _alone = alone();
    let (folder, hanging) = script("sleep 1000 & echo $! >\"$(dirname \"$0\")/pid\"; wait");
    assert_eq!(hanging.call("b", Nanos(2_000_000_000), hanging.path(), &never).unwrap(), ScriptEnd::TimedOut);
    // On a stalled machine the script may not have reached this point.
    if let Ok(pid) = fs::read_to_string(folder.path().join("pid")) {
        assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
    }
}

#[test]
fn what_it_prints_is_kept_nowhere_whole_and_never_blocks_it() {
    let _alone = alone();
    let printing = "head -c 20000000 /dev/zero; echo; stat -L -c %s \"/proc/$$/fd/1\"; exit 3";
    let (_folder, printing) = script(printing);
    let ended = printing.call("b", LONG, printing.path(), &never).unwrap();
    let ScriptEnd::Failed { code: Some(3), said } = ended else { panic!("{ended:?}") };
    let size: u64 = said.parse().unwrap();
    assert!(size < 1 << 20, "{size} bytes of it are somewhere");
    let (_folder, endless) = script("yes");
    let ended = endless.call("b", Nanos(1_000_000_000), endless.path(), &never).unwrap();
    assert_eq!(ended, ScriptEnd::TimedOut);
}

#[test]
fn a_stop_ends_one_that_hangs_with_all_that_it_started() {
    let _alone = alone();
    let (folder, hanging) = script("sleep 1000 & echo $! >\"$(dirname \"$0\")/pid\"; wait");
    let pid = || fs::read_to_string(folder.path().join("pid")).unwrap_or_default();
    let (began, has_begun) = (Instant::now(), || pid().ends_with('\n'));
    assert_eq!(hanging.call("b", LONG, hanging.path(), &has_begun).unwrap(), ScriptEnd::Stopped);
    assert!(began.elapsed().as_secs() < 30, "it did not wait for the limit");
    assert!(!Path::new(&format!("/proc/{}", pid().trim())).exists());
}

#[test]
fn processes_that_are_left_are_found_in_whatever_session_they_are() {
    let _alone = alone();
    let (folder, leaving) = script("setsid sleep 1000 & echo $! >\"$(dirname \"$0\")/pid\"");
    assert_eq!(leaving.call("b", LONG, leaving.path(), &never).unwrap(), ScriptEnd::Left(1));
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn what_is_left_of_a_killed_caller_is_known_by_its_mark() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let start = |mark: &Path| {
        let mut command = Command::new("sleep");
        marked(command.arg("60"), mark)
    };
    let (mut own, mut other) = (start(&mark), start(&folder.path().join("mark2")));
    // A killed child that is not reaped has no environment any more.
    end_marked(&mark);
    assert!(!own.wait().unwrap().success());
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn what_cannot_be_executed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "").unwrap();
    for path in [&text, folder.path(), &folder.path().join("none")] {
        assert!(SwitchScript::open(path).is_err(), "{path:?}");
    }
}
