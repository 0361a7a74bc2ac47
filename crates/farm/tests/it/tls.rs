//! The server's own TLS: boards that use it, a renewed certificate, mismatches.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use push::cli::{PushEnvironment, run};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::server::{Server, codes, farm};

/// An authority, and a certificate of it for this machine.
struct Made {
    authority: String,
    cert: String,
    key: String,
}

fn made() -> Made {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let cert = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    Made { authority, cert: cert.pem(), key: key.serialize_pem() }
}

/// Response to a board that trusts an authority; `None` if it does not trust the server.
fn get(address: &str, authority: &str, path: &str) -> Option<(u16, String)> {
    let only_tls = |answer: &ureq::http::HeaderMap| answer.contains_key("strict-transport-security");
    let roots = RootCerts::new_with_certs(&[Certificate::from_pem(authority.as_bytes()).unwrap()]);
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .tls_config(TlsConfig::builder().root_certs(roots).build());
    let agent = Agent::new_with_config(config.build());
    let asked = || agent.get(format!("https{}{address}{path}", "://"));
    // On a port other than the default, other servers of that name may work without TLS.
    assert!(!only_tls(asked().call().ok()?.headers()));
    let mut answer = asked().header("host", "localhost").call().ok()?;
    assert!(only_tls(answer.headers()));
    Some((answer.status().as_u16(), answer.body_mut().read_to_string().unwrap()))
}

fn push(home: &Path, arguments: &[&str]) -> u8 {
    let environment = PushEnvironment { state_home: None, home: Some(home.into()) };
    run(["onbeat-push"].iter().chain(arguments).map(OsString::from), &environment)
}

#[test]
fn a_board_sends_over_tls_and_the_certificate_is_renewed_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let (first, second) = (made(), made());
    write("cert", &first.cert);
    write("key", &first.key);
    write("ca", &first.authority);
    write("other-ca", &second.authority);
    let store = format!("sqlite:{}", at("farm.db"));
    let server = Server::with(&store, &["--cert", &at("cert"), "--key", &at("key"), "--public", "all"]);
    let address = server.address.clone();

    let home = folder.path().join("board");
    let run_folder = home.join(".local/state/onbeat/runs/measured");
    fs::create_dir_all(&run_folder).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/measured");
    for file in ["run.json", "blocks.jsonl"] {
        fs::copy(fixture.join(file), run_folder.join(file)).unwrap();
    }
    let (url, code) = (format!("https{}{address}", "://"), codes(&store, 1).remove(0));
    assert_eq!(push(&home, &["enrol", &url, &code, "--ca", &at("other-ca")]), 7);
    assert_eq!(push(&home, &["enrol", &url, &code, "--ca", &at("ca"), "--name", "press-3"]), 0);
    assert_eq!(push(&home, &["--once", "--when", "always"]), 0);
    let (status, board) = get(&address, &first.authority, "/v1/boards/press-3").unwrap();
    assert!(status == 200 && board.contains("\"runs\":[{"), "{board}");
    assert!(get(&address, &second.authority, "/").is_none());

    // A request without TLS gets an explanation.
    let mut plain = TcpStream::connect(&address).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut said = String::new();
    let _ = plain.read_to_string(&mut said);
    assert!(said.starts_with("HTTP/1.1 400") && said.contains("write https"), "{said}");

    // A key without its certificate changes nothing.
    let ask_to_read = || {
        let kill = Command::new("kill").args(["-HUP", &server.pid().to_string()]).status().unwrap();
        assert!(kill.success());
    };
    write("key", &second.key);
    ask_to_read();
    let failed = "onbeat_farm_certificate_failures_total 1";
    until(|| get(&address, &first.authority, "/metrics").unwrap().1.contains(failed));
    write("cert", &second.cert);
    ask_to_read();
    until(|| get(&address, &second.authority, "/healthz").is_some_and(|answer| answer.0 == 200));
    assert!(get(&address, &first.authority, "/healthz").is_none());
}

/// Waits for a certain event.
fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_does_not_fit_is_said_with_its_flag() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (one, other) = (made(), made());
    for (name, text) in [
        ("cert", one.cert.as_str()),
        ("key", &one.key),
        ("other-key", &other.key),
        ("none", "no PEM"),
        ("torn", &one.cert[..one.cert.len() / 2]),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let store = format!("sqlite:{}", at("farm.db"));
    let said = |arguments: &[&str]| {
        let output = farm(&["serve", "--store", &store]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (cert, key, words) in [
        ("cert", "other-key", "do not match"),
        ("none", "key", "--cert"),
        ("torn", "key", "--cert"),
        ("cert", "none", "--key"),
        ("cert", "cert", "--key"),
        ("missing", "key", "--cert: cannot read"),
        ("cert", "missing", "--key: cannot read"),
    ] {
        let said = said(&["--cert", &at(cert), "--key", &at(key)]);
        assert!(said.contains(words) && said.trim().lines().count() == 1, "{cert} {key}: {said}");
    }
    assert!(said(&["--cert", &at("cert")]).contains("--key"));
    assert!(said(&["--listen", "0.0.0.0:0"]).contains("--cert and --key"));
}
