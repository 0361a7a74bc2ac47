//! The demo as a process: a signal ends it, and nothing of it remains.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::server::farm;

#[test]
fn a_signal_right_after_the_address_leaves_no_folder_behind() {
    for signal in ["-INT", "-TERM", "-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let mut demo = farm(&["demo", "--no-browser"]);
        let mut demo = demo.env("TMPDIR", folder.path()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(demo.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("synthetic boards is at http"), "{line}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(Command::new("kill").args([signal, &demo.id().to_string()]).status().unwrap().success());
        assert_eq!(demo.wait().unwrap().code(), Some(0));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{signal}");
    }
}
