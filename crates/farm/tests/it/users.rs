//! User accounts, from the command line to the login at the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use super::server::{Server, farm};

/// A command with input: its exit code, its output and its messages.
pub fn given(arguments: &[&str], text: &str) -> (i32, String, String) {
    let mut child =
        farm(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses at once does not read it.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The head of an answer.
fn answer(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request =
        format!("{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split("\r\n\r\n").next().unwrap().to_owned()
}

#[test]
fn who_is_added_logs_in_and_who_is_removed_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("farm.db").display());
    let user = |words: &[&str], text: &str| given(&[&["user"], words, &["--store", &store]].concat(), text);
    let server = Server::start(&store);
    let front = |cookie: &str| answer(&server.address, &format!("GET / HTTP/1.1\r\nCookie: {cookie}"), "");
    // On this machine everything is readable until a user exists.
    assert!(front("").starts_with("HTTP/1.1 200"));
    let (code, token, said) = user(&["add", "grafana", "--role", "script"], "");
    assert!(code == 0 && token.starts_with("obr_") && said.contains("Bearer TOKEN"), "{said}");
    assert!(front("").starts_with("HTTP/1.1 200"));
    let (code, printed, said) = user(&["add", "ann", "--role", "admin"], "correct horse battery\n");
    assert_eq!((code, printed.as_str()), (0, ""), "{said}");
    assert!(front("").starts_with("HTTP/1.1 303"));
    let read = |path: &str| {
        answer(&server.address, &format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {}", token.trim()), "")
    };
    assert!(read("/v1/boards").starts_with("HTTP/1.1 200") && read("/").starts_with("HTTP/1.1 403"));
    for (words, text, why) in [
        (&["add", "ann"][..], "correct horse battery\n", "another"),
        (&["add", "bob"], "short\n", "at least 12"),
        (&["add", "bob"], "", "at least 12"),
        (&["add", "<b>"], "correct horse battery\n", "letters"),
        (&["add", "bob", "--role", "root"], "", "viewer, operator, admin or script"),
        (&["role", "ann", "script"], "", "token instead of a password"),
        (&["role", "grafana", "viewer"], "", "has this name"),
        (&["remove", "bob"], "", "has this name"),
        (&["role", "bob", "viewer"], "", "has this name"),
        (&["password", "bob"], "correct horse battery\n", "has this name"),
    ] {
        let (code, _, said) = user(words, text);
        assert!(code == 2 && said.contains(why), "{words:?}: {code} {said}");
    }
    let (code, password, _) = user(&["add", "bob", "--generate"], "");
    assert_eq!((code, password.trim().len()), (0, 32));
    let (_, all, _) = user(&["list"], "");
    assert!(all.starts_with("ann\tadmin\t") && all.contains("\nbob\tviewer\t"), "{all}");

    let enter = |name: &str, password: &str| {
        let head = "POST /login HTTP/1.1\r\nSec-Fetch-Site: same-origin\r\n\
                    Content-Type: application/x-www-form-urlencoded";
        answer(&server.address, head, &format!("name={name}&password={password}"))
    };
    assert!(enter("ann", "wrong+horse+battery").starts_with("HTTP/1.1 401"));
    let entered = enter("bob", password.trim());
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    // Without TLS a browser would reject a cookie that is for TLS alone.
    assert!(cookie.starts_with("onbeat=") && !cookie.contains("Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert!(front(cookie).starts_with("HTTP/1.1 200"));
    assert_eq!(user(&["role", "bob", "operator"], "").0, 0);
    assert!(front(cookie).starts_with("HTTP/1.1 200"));
    assert_eq!(user(&["remove", "bob"], "").0, 0);
    assert!(front(cookie).starts_with("HTTP/1.1 303"));
    assert_eq!(user(&["remove", "grafana"], "").0, 0);
    assert!(read("/v1/boards").starts_with("HTTP/1.1 401"));
    // Nothing of a password, a token or a session is in the store.
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let bytes = std::fs::read(&file).unwrap();
        let secrets = [password.trim(), token.trim(), cookie.trim_start_matches("onbeat=")];
        for secret in secrets.into_iter().chain(["correct horse battery"]) {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{} has a secret", file.display());
        }
    }
}

/// A store with the fixture's runs of a board, and its folder.
fn store_of_board_a() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("farm.db").display());
    let runs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    let imported = given(&["import", "--board", "a", "--store", &store, runs.to_str().unwrap()], "");
    assert_eq!(imported.0, 0, "{}", imported.2);
    (folder, store)
}

#[test]
fn budgets_are_set_and_printed() {
    let (_folder, store) = store_of_board_a();
    let budget = |words: &[&str]| given(&[&["budget"], words, &["--store", &store]].concat(), "");
    assert_eq!((budget(&["200us"]).0, budget(&["1.5us", "--tag", "ARM"]).0), (0, 0));
    assert_eq!(budget(&["1ms", "--board", "a"]).0, 0);
    assert_eq!(budget(&[]).1, "all boards\t200us\ntag arm\t1500ns\na\t1000us\n");
    assert_eq!((budget(&["none"]).0, budget(&["none", "--board", "a"]).0), (0, 0));
    assert_eq!(budget(&[]).1, "tag arm\t1500ns\n");
    for wrong in [&["0"][..], &["much"], &["1us", "--board", "none"], &["1us", "--tag", "<b>"]] {
        assert_eq!(budget(wrong).0, 2, "{wrong:?}");
    }
}

#[test]
fn codes_for_a_board_say_whether_it_is_there() {
    let (_folder, store) = store_of_board_a();
    let enrol = |words: &[&str]| given(&[&["enrol"], words, &["--store", &store]].concat(), "");
    for (words, wanted, said_lines) in [
        (&["--name", "a"][..], 0, 1),
        (&["--name", "MILL-002", "--lab", "west"], 0, 2),
        (&["--name", "a", "--lab", "west"], 2, 1),
        (&["--name", "///"], 0, 2),
        (&["--name", ""], 2, 1),
    ] {
        let (code, printed, said) = enrol(words);
        assert_eq!((code, said.lines().count()), (wanted, said_lines), "{words:?}: {said}");
        assert_eq!(printed.lines().count(), usize::from(wanted == 0), "{words:?}");
    }
    let said = enrol(&["--name", "MILL-002"]).2;
    assert!(said.starts_with("onbeat-farm: no board MILL-002 exists yet: the code creates it\n"), "{said}");
}

#[test]
fn a_farm_that_nobody_could_read_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().to_str().unwrap();
    let (code, _, said) = given(&["serve", "--runs", runs, "--behind-proxy", "--listen", "127.0.0.1:0"], "");
    assert!(code == 2 && said.contains("--public read"), "{said}");
}
