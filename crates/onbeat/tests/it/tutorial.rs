//! Commands of the tutorial, run as written, except those that need root: each has its intended
//! effect.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Commands in its console blocks, in their order.
fn commands(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(kind) => inside = kind.starts_with("console"),
            None if inside => found.extend(line.strip_prefix("$ ").map(str::to_owned)),
            None => {}
        }
    }
    found
}

#[test]
fn the_tutorial_s_commands_work_as_they_are_written() {
    let text = std::fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let place = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_onbeat"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    std::os::unix::fs::symlink(root().join("examples"), place.path().join("examples")).unwrap();
    let mut ran = 0;
    for command in commands(&text) {
        let compiler = Command::new("cc").arg("--version").output().is_ok();
        let of_robot = command.contains("robot-") || command.starts_with("cc ");
        if command.contains("sudo ") || command.starts_with("cargo ") || (of_robot && !compiler) {
            continue;
        }
        // As long as needed to see that it works.
        let short = command.replace("-D 10s", "-D 2s");
        let output = Command::new("bash")
            .args(["-c", &short])
            .env("PATH", &path)
            .env("XDG_STATE_HOME", place.path().join("state"))
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .current_dir(place.path())
            .output()
            .unwrap();
        let code = output.status.code();
        let err = String::from_utf8_lossy(&output.stderr);
        // 3 and 7 are verdicts on the machine.
        assert!(matches!(code, Some(0 | 3 | 7)), "{command}: {code:?} {err}");
        ran += 1;
    }
    assert!(ran >= 6, "{ran} commands");
}
