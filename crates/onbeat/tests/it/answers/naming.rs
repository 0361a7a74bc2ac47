//! Names of runs in the user's folder, which are equivalent to their paths.

use std::fs;
use std::process::{Command, Output};

use super::place::*;

/// Two runs and their folder, and the program run as their user.
struct User(Place);

impl User {
    fn new() -> User {
        let place = Place::new();
        let files = ["hunt/run.json", "hunt/blocks.jsonl", "hunt/events/spikes.jsonl"];
        for file in files.iter().chain(&["measured/run.json", "measured/blocks.jsonl"]) {
            let kept = place.at(&format!("onbeat/runs/kept-{file}"));
            fs::create_dir_all(kept.parent().unwrap()).unwrap();
            fs::copy(format!("../../tests/fixtures/runs/{file}"), kept).unwrap();
        }
        User(place)
    }

    fn onbeat(&self, args: &[String]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_onbeat"));
        program.args(args).env("XDG_STATE_HOME", self.0.at("")).output().unwrap()
    }
}

#[test]
fn a_name_is_as_good_as_the_path_of_a_kept_run() {
    let user = User::new();
    for line in [
        "report kept-measured",
        "report kept-measured kept-hunt --format csv -o -",
        "bounds kept-measured --limit 5ms",
        "explain kept-hunt",
        "compare kept-measured -- kept-hunt",
        "audit --bundle kept-measured",
        "audit --bundle kept-measured --hunt kept-hunt",
        "audit --diff kept-measured kept-hunt",
        "prove --limit 5ms --across-boots kept-measured -- kept-hunt",
        "tune plan --bundle kept-measured",
    ] {
        let with = |way: &dyn Fn(&str) -> String| {
            let arg = |word: &str| if word.starts_with("kept-") { way(word) } else { word.to_owned() };
            user.onbeat(&line.split(' ').map(arg).collect::<Vec<_>>())
        };
        let named = with(&|word| word.to_owned());
        let by_path = with(&|word| user.0.path(&format!("onbeat/runs/{word}")));
        let said = String::from_utf8_lossy(&named.stderr);
        assert_eq!(said, String::from_utf8_lossy(&by_path.stderr), "{line}");
        assert_eq!(named.stdout, by_path.stdout, "{line}: {said}");
        assert_eq!(code(&named), code(&by_path), "{line}");
    }
}

#[test]
fn what_is_neither_is_refused_with_both_places() {
    let user = User::new();
    let output = user.onbeat(&["bounds".into(), "kept-nowhere".into()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 2, "{said}");
    assert!(said.contains("the current folder") && said.contains(&user.0.path("onbeat/runs")), "{said}");
}
