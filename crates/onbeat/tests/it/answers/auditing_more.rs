//! Additions to an audit: texts to copy, gains according to a hunt, and the difference of two
//! audits.

use std::fs;

use super::place::*;

const CORPUS: &str = "../../tests/corpus";
const HUNT: &str = "../../tests/fixtures/runs/hunt";

fn machine(name: &str) -> String {
    format!("{CORPUS}/{name}")
}

fn text(args: &[&str], expected: i32) -> String {
    let output = onbeat(args);
    assert_eq!(code(&output), expected, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn two_captures_beside_each_other_end_in_the_contract_s_codes() {
    let (stock, rt) = (machine("debian-6.12"), machine("debian-6.12-rt"));
    let worse = json(&["audit", "--diff", &rt, &stock], 3);
    assert_eq!((&worse["schema"], &worse["verdict"]), (&"onbeat.audit-diff/1".into(), &"worse".into()));
    let found = worse["findings"].as_array().unwrap();
    let model = found.iter().find(|one| one["rule"] == "preemption-model").expect("it differs");
    assert_eq!((&model["before"], &model["after"]), (&"pass".into(), &"fail".into()));
    assert_eq!((&model["before_value"], &model["after_value"]), (&"rt".into(), &"voluntary".into()));
    let better = json(&["audit", "--diff", &stock, &rt], 0);
    assert_eq!(better["findings"].as_array().unwrap().len(), found.len());
    assert_eq!(better["verdict"], "better");
    let same = json(&["audit", "--diff", &rt, &rt], 0);
    assert_eq!((same["findings"].as_array().unwrap().len(), &same["verdict"]), (0, &"same".into()));
    assert_eq!(json(&["audit", "--diff", &rt, "--bundle", &stock], 3), worse, "the second as --bundle");
    assert!(text(&["audit", "--diff", &rt, &stock], 3).ends_with("that did not.\n"));
    let quiet = text(&["audit", "-q", "--diff", &rt, &stock], 3);
    assert!(quiet.ends_with("that did not.\n") && quiet.lines().count() == 1, "{quiet}");
}

#[test]
fn what_is_unknown_now_is_worse_only_where_it_is_asked_for() {
    let place = Place::new();
    let bare = place.path("bare");
    fs::create_dir_all(format!("{bare}/host/proc/sys/kernel")).unwrap();
    fs::write(format!("{bare}/capture.json"), "{\"schema\":\"onbeat.capture/1\"}").unwrap();
    let rt = machine("debian-6.12-rt");
    let lost = json(&["audit", "--diff", &rt, &bare], 0);
    assert!(lost["findings"].as_array().unwrap().iter().all(|one| one["change"] == "unknown"), "{lost:#}");
    json(&["audit", "--strict", "--diff", &rt, &bare], 3);
    refused(&["audit", "--diff", &rt, &bare, "--root", &bare], 2);
    refused(&["audit", "--diff", &place.path("none")], 2);
    refused(&["audit", "--diff", &rt, "--fail-on", "high"], 2);
    // One capture is compared with the present machine.
    assert!([0, 3].contains(&code(&onbeat(&["audit", "-q", "--diff", &rt]))));
}

#[test]
fn a_hunt_orders_text_and_page_and_leaves_the_document_as_it_is() {
    let place = Place::new();
    let stock = machine("debian-6.12");
    let run = fs::read_to_string(format!("{HUNT}/run.json")).unwrap();
    let mut run: serde_json::Value = serde_json::from_str(&run).unwrap();
    run["culprits"][0]["knobs"] = serde_json::json!(["proactive-compaction"]);
    let bundle = place.path("lost");
    fs::create_dir(&bundle).unwrap();
    fs::write(format!("{bundle}/run.json"), run.to_string()).unwrap();
    let plain = text(&["audit", "--bundle", &stock], 0);
    let ordered = text(&["audit", "--bundle", &stock, "--hunt", &bundle], 0);
    let place_of = |text: &str, rule: &str| text.find(rule).expect("it fails there");
    assert!(place_of(&plain, "proactive-compaction") > place_of(&plain, "preemption-model"));
    assert!(place_of(&ordered, "proactive-compaction") < place_of(&ordered, "preemption-model"), "{ordered}");
    assert!(ordered.contains("up to 96 % of the time"), "{ordered}");
    let args = ["audit", "--bundle", &stock];
    assert_eq!(json(&[&args[..], &["--hunt", &bundle]].concat(), 0), json(&args, 0));
    let page = place.path("audit.html");
    onbeat(&["audit", "-q", "--bundle", &stock, "--hunt", &bundle, "--html", &page]);
    let page = fs::read_to_string(page).unwrap();
    assert!(place_of(&page, "#proactive-compaction") < place_of(&page, "#preemption-model"));
    assert!(!page.contains("://"), "a page holds no address");
    let measured = "../../tests/fixtures/runs/measured";
    assert!(refused(&["audit", "--bundle", &stock, "--hunt", measured], 2).contains("onbeat measure"));
    refused(&["audit", "--bundle", &stock, "--hunt", &place.path("none")], 2);
}

#[test]
fn what_to_copy_is_a_block_for_each_place() {
    let copied = text(&["audit", "--bundle", &machine("debian-6.12-rt"), "--cpus", "1", "--copy"], 0);
    for place in [
        "the kernel's command line\n",
        "/etc/sysctl.d/90-onbeat.conf\n",
        "interrupt affinities\n",
        ">/proc/irq/",
    ] {
        assert!(copied.contains(place), "{place}: {copied}");
    }
    // Names of disks in the present line are masked: it is not for typing.
    assert!(!copied.contains("root=") && copied.contains("\n# add:\n"), "{copied}");
}
