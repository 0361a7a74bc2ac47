//! Texts for users: of the requested width, in whole sentences, and not controlled by names from
//! outside.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output};

use super::place::*;

/// Output of the program with a width.
fn wide(columns: &str, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_onbeat")).env("COLUMNS", columns).args(args).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

fn widest(text: &str) -> usize {
    // An address or a path is one word, which is not wrapped.
    let lines = text.lines().filter(|line| line.trim_start_matches(['-', ' ']).contains(' '));
    lines.map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn the_width_is_what_was_asked_for() {
    let place = Place::new();
    let bundle = place.bundle("run", &gumbel(120, 1), |_, _| ());
    let empty = place.path("nothing");
    std::fs::create_dir(&empty).unwrap();
    let commands: [&[&str]; 7] = [
        &["rules", "rt-throttling"],
        &["rules"],
        &["audit", "--root", &empty],
        &["report", &bundle],
        &["bounds", &bundle, "--limit", "50us"],
        &["measure", "-h"],
        &["hunt", "--help"],
    ];
    for args in commands {
        for columns in [60, 80, 132] {
            let text = wide(&columns.to_string(), args);
            assert!(widest(&text) <= columns, "{args:?} in {columns}:\n{text}");
        }
        // Neither a terminal nor a width: 80.
        assert!(widest(&wide("", args)) <= 80, "{args:?}");
    }
}

#[test]
fn no_argument_steers_the_terminal() {
    let evil = OsStr::from_bytes(b"x\x1b[2J\x1b]0;t\x07\nonbeat: all is well\xc2\x9b1m\xe2\x80\xae'");
    let run = |args: &[&OsStr]| -> Output {
        Command::new(env!("CARGO_BIN_EXE_onbeat")).args(args).output().unwrap()
    };
    let flag = OsStr::from_bytes(b"--x\x1b[2J\xc2\x9b1m\xe2\x80\xae");
    for args in [
        vec!["report".as_ref(), evil],
        vec!["bounds".as_ref(), evil],
        vec!["explain".as_ref(), evil],
        vec!["import".as_ref(), evil],
        vec!["rules".as_ref(), evil],
        vec!["man".as_ref(), evil],
        vec!["audit".as_ref(), "--root".as_ref(), evil],
        vec!["audit".as_ref(), "--bundle".as_ref(), evil],
        vec!["audit".as_ref(), "--cpus".as_ref(), evil],
        vec!["measure".as_ref(), "-i".as_ref(), evil],
        vec!["measure".as_ref(), flag],
        vec!["compare".as_ref(), evil, "--".as_ref(), evil],
        vec![evil],
    ] {
        let output = run(&args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(code(&Output { stderr: vec![], ..output }), 2, "{args:?}: {text}");
        assert!(!text.trim_end().chars().any(model::text::steers), "{args:?}: {text:?}");
        assert_eq!(text.lines().count(), 1, "{text:?}");
    }
}

#[test]
fn what_is_kept_is_named_as_a_shell_reads_it() {
    let place = Place::new();
    let name = "it's a\u{1b}[31m run";
    let list = place.text("hist.txt", "000010 000005\n000011 000003\n");
    let into = place.path(name);
    let output = onbeat(&["import", &list, "--as", "cyclictest", "-i", "1000", "-o", &into]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.replace('\n', "").chars().any(model::text::steers), "{text:?}");
    let (_, word) = text.trim_end().rsplit_once("kept in ").unwrap();
    let shell = Command::new("bash").args(["-c", &format!("test -f {word}/run.json")]).status().unwrap();
    assert!(shell.success(), "{word}");
}

#[test]
fn json_on_standard_output_holds_no_steering_character() {
    let place = Place::new();
    let title = "a\u{9b}31m\u{202e}b";
    let list = place.list(title, &gumbel(60, 1));
    let other = place.list("b.csv", &gumbel(60, 2));
    let output = onbeat(&["compare", &list, &other, "--json", "-", "-q"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("a\\u009b31m\\u202eb"), "{text:.400}");
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["a"][0]["title"], title);
}

#[test]
fn a_refusal_of_the_command_line_is_one_sentence() {
    let text = refused(&["measure", "--durration", "1"], 2);
    assert!(text.contains("found; a similar argument exists: '--duration'"), "{text}");
    assert!(!text.contains("tip:"), "{text}");
    let text = refused(&["measure", "--phase", "x"], 2);
    assert!(!text.contains("  "), "{text}");
}

#[test]
fn an_import_without_a_histogram_says_so() {
    let place = Place::new();
    let json = r#"{"cmdline:":"cyclictest -q","num_threads":1,"resolution_in_ns":0,"thread":{"0":{"histogram":{},"cycles":4945,"min":3,"max":80,"avg":9.0,"cpu":0}}}"#;
    let output = onbeat(&["import", &place.text("ct.json", json), "-o", &place.path("run")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("without a histogram") && !text.contains("beyond"), "{text}");
    let run: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.at("run/run.json")).unwrap()).unwrap();
    assert_eq!(
        (&run["cpus"][0]["cycles"], &run["cpus"][0]["overflows"]),
        (&4945.into(), &serde_json::Value::Null)
    );
    assert_eq!(code(&onbeat(&["report", &place.path("run"), "-o", &place.path("x.html")])), 0);
    let page = std::fs::read_to_string(place.at("x.html")).unwrap();
    assert!(page.contains("without a histogram") && !page.contains("Number of wake-ups by latency"));
    for (flag, file) in [("-o", "x.svg"), ("-o", "x.csv"), ("--hist", "x.txt")] {
        let said = refused(&["report", &place.path("run"), flag, &place.path(file)], 2);
        assert!(said.contains("this run has no histogram: use --rt-tests-json"), "{said}");
        assert!(!place.at(file).exists(), "{file}");
    }
    let said = refused(&["report", &place.path("run"), &place.path("run"), "-o", &place.path("x.csv")], 2);
    assert!(said.contains("run: this run has no histogram"), "{said}");
    // A run that never exceeded 80 us did not reach a limit of 100 us; for 50 us the number is
    // unknown.
    let far = json_of(&["bounds", &place.path("run"), "--limit", "100us"]);
    assert_eq!((&far["claim"]["exceedances"], &far["claim"]["exceedances_at_most"]), (&0.into(), &0.into()));
    let near = json_of(&["bounds", &place.path("run"), "--limit", "50us"]);
    assert_eq!(near["claim"]["exceedances_at_most"], 4945);
}

fn json_of(args: &[&str]) -> serde_json::Value {
    serde_json::from_slice(&onbeat(&[args, &["--json", "-"]].concat()).stdout).unwrap()
}

#[test]
fn quiet_is_short() {
    let place = Place::new();
    let bundle = place.bundle("run", &gumbel(600, 3), |_, _| ());
    let lines = |args: &[&str]| String::from_utf8(onbeat(args).stdout).unwrap().lines().count();
    let all = lines(&["bounds", &bundle, "--limit", "50us"]);
    let quiet = lines(&["bounds", &bundle, "--limit", "50us", "-q"]);
    assert!(quiet <= 10 && quiet < all, "{quiet} {all}");
}

#[test]
fn a_quiet_rule_is_its_first_lines_and_a_quiet_list_the_same_list() {
    let (all, quiet) =
        (wide("80", &["rules", "rt-throttling"]), wide("80", &["rules", "rt-throttling", "-q"]));
    assert!(all.starts_with(&quiet) && quiet.len() < all.len() && quiet.lines().count() > 1, "{quiet}");
    assert_eq!(wide("80", &["rules", "-q"]), wide("80", &["rules"]));
}

#[test]
fn quiet_commands_keep_their_answer_and_where_it_is() {
    let place = Place::new();
    let bundle = place.bundle("run", &gumbel(120, 1), |_, _| ());
    let other = place.bundle("other", &gumbel(120, 2), |_, _| ());
    let [run, capture, bare] = ["measured", "capture", "bare"].map(|name| place.path(name));
    std::fs::create_dir_all(format!("{bare}/proc/sys/kernel")).unwrap();
    let commands: [(&[&str], &[&str]); 6] = [
        (&["measure", "-p", "0", "-D", "100ms", "-o", &run], &["late", "expect", "fair", "next", "kept"]),
        (&["bounds", &bundle], &["answer", "basis", "next"]),
        (&["compare", &bundle, &other], &["answer", "fair", "next"]),
        (&["audit", "--root", &bare], &["next"]),
        (&["capture", "-o", &capture], &["kept"]),
        (&["report", &bundle], &["late", "fair", "next"]),
    ];
    for (args, rows) in commands {
        let text = wide("80", &[args, &["-q"]].concat());
        for row in rows {
            let found = text.lines().any(|line| line.split(' ').next() == Some(row));
            assert!(found, "{args:?}: {row}:\n{text}");
        }
    }
}
