//! Tests of the program as a process: a signal ends it, whatever it waits for.

#![allow(clippy::disallowed_methods)] // Tests make files, and start programs.
#![allow(clippy::unwrap_used)] // Clippy knows unit tests as tests, not helpers of integration tests.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts the program of a board that sends to this address.
fn started(place: &Path, farm: &TcpListener) -> Child {
    let address = farm.local_addr().unwrap();
    fs::create_dir_all(place.join("push")).unwrap();
    let farm = format!("http{}{address}", "://");
    let enrolment = format!("{{\"farm\":\"{farm}\",\"board\":\"b\",\"token\":\"obt_0\"}}");
    fs::write(place.join("push/farm.json"), enrolment).unwrap();
    let at = |name: &str| place.join(name).into_os_string();
    Command::new(env!("CARGO_BIN_EXE_onbeat-push"))
        .args(["--when", "always", "--state"])
        .args([at("push"), "--runs".into(), at("runs"), "--record".into(), at("watch")])
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Sends a signal; returns the exit code, and the time until the end.
fn ended(mut child: Child, signal: &str) -> (Option<i32>, Duration) {
    let began = Instant::now();
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    while began.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code(), began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    panic!("{signal} ends nothing");
}

#[test]
fn a_signal_ends_it_with_six_while_it_sleeps_and_while_a_farm_is_silent() {
    let (folder, farm) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    // Nothing is to be sent: it sleeps once its signals are blocked.
    fs::create_dir(folder.path().join("runs")).unwrap();
    let child = started(folder.path(), &farm);
    let status = format!("/proc/{}/task", child.id());
    while fs::read_dir(&status).unwrap().count() < 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (code, took) = ended(child, "-TERM");
    assert!(code == Some(6) && took < Duration::from_secs(4), "{code:?} after {took:?}");
    // The farm accepts the connection and does not answer.
    let run = folder.path().join("runs/r1");
    fs::create_dir(&run).unwrap();
    fs::write(run.join("run.json"), "{\"id\":\"r1\",\"complete\":true}").unwrap();
    let child = started(folder.path(), &farm);
    let (silent, _): (TcpStream, _) = farm.accept().unwrap();
    let (code, took) = ended(child, "-TERM");
    assert!(code == Some(6), "{code:?} after {took:?}");
    drop(silent);
}

#[test]
fn a_signal_ends_an_enrolment_with_six() {
    let (folder, farm) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = format!("http{}{}", "://", farm.local_addr().unwrap());
    let child = Command::new(env!("CARGO_BIN_EXE_onbeat-push"))
        .args(["enrol", &address, "a-code", "--state"])
        .arg(folder.path().join("push"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The farm accepts the connection and does not answer.
    let (silent, _): (TcpStream, _) = farm.accept().unwrap();
    let (code, took) = ended(child, "-TERM");
    assert!(code == Some(6), "{code:?} after {took:?}");
    drop(silent);
}
