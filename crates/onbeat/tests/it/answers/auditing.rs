//! `audit`, `capture` and `rules` as used by a script.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use super::place::*;

/// A Debian machine with a stock kernel, as a copy of its file system.
const STOCK: &str = "\
/proc/sys/kernel/osrelease=6.1.0-50-amd64
/proc/sys/kernel/version=#1 SMP PREEMPT_DYNAMIC Debian 6.1.170-1 (2026-05-01)
/proc/sys/kernel/arch=x86_64
/proc/sys/kernel/sched_rt_runtime_us=950000
/proc/sys/kernel/sched_rt_period_us=1000000
/proc/cmdline=BOOT_IMAGE=/vmlinuz ro quiet preempt=voluntary
/sys/devices/system/cpu/online=0-3
/sys/devices/system/cpu/isolated=
/boot/config-6.1.0-50-amd64=# Linux/x86 6.1.170 Kernel Configuration
/etc/hostname=secret";

fn tree(place: &Place, name: &str, files: &str) -> String {
    let root = place.path(name);
    for line in files.lines() {
        let (path, text) = line.split_once('=').unwrap();
        let path = Path::new(&root).join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let options = if path.to_string_lossy().contains("config-") {
            "\nCONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_HIGH_RES_TIMERS=y"
        } else {
            ""
        };
        fs::write(path, format!("{text}{options}\n")).unwrap();
    }
    root
}

/// Findings by rule.
fn findings(audit: &Value) -> BTreeMap<String, Value> {
    let all = audit["findings"].as_array().unwrap().iter();
    all.map(|found| (found["rule"].as_str().unwrap().to_owned(), found.clone())).collect()
}

fn verdict(audit: &Value, rule: &str) -> String {
    findings(audit)[rule]["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn a_tree_is_judged_in_the_contract_s_words() {
    let place = Place::new();
    let root = tree(&place, "stock", STOCK);
    let audit = json(&["audit", "--root", &root], 0);
    assert_eq!(
        (audit["schema"].as_str(), audit["profile"].as_str()),
        (Some("onbeat.audit/1"), Some("control-loop"))
    );
    let found = findings(&audit);
    let rules = json(&["rules"], 0);
    let knobs = rules["rules"].as_array().unwrap().iter().filter(|rule| rule["kind"] == "knob");
    assert_eq!(found.len(), knobs.count(), "every knob has a finding");
    for field in ["value", "wanted", "why", "lasts", "fix", "source", "severity"] {
        assert!(found.values().all(|one| one[field].is_string()), "{field}");
    }
    assert_eq!(
        (verdict(&audit, "preemption-model"), verdict(&audit, "rt-throttling")),
        ("fail".into(), "fail".into())
    );
    assert_eq!(found["preemption-model"]["value"], "voluntary");
    assert_eq!(verdict(&audit, "fair-server"), "not-applicable");
    let counted: BTreeMap<String, usize> = found.values().fold(BTreeMap::new(), |mut counts, one| {
        *counts.entry(one["verdict"].as_str().unwrap().to_owned()).or_default() += 1;
        counts
    });
    for name in ["pass", "fail", "unknown", "not-applicable"] {
        let told = audit["summary"][name].as_u64().unwrap() as usize;
        assert_eq!(told, counted.get(name).copied().unwrap_or(0), "{name}");
    }
    assert_eq!(json(&["audit", "--root", &root], 0), audit);
}

#[test]
fn gates_end_in_the_contract_s_codes() {
    let place = Place::new();
    let root = tree(&place, "stock", STOCK);
    for (args, expected) in [
        (&["--fail-on", "fatal"][..], 3),
        (&["--fail-on", "info", "-q"], 3),
        (&["-q"], 0),
        (&["--profile", "audio", "--fail-on", "fatal", "-q"], 0),
    ] {
        let output = onbeat(&[&["audit", "--root", &root], args].concat());
        assert_eq!(code(&output), expected, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let empty = tree(&place, "empty", "/proc/version=Linux");
    assert_eq!(code(&onbeat(&["audit", "-q", "--root", &empty, "--fail-on", "info"])), 0);
    let strict = onbeat(&["audit", "-q", "--root", &empty, "--fail-on", "info", "--strict"]);
    assert_eq!(code(&strict), 3, "what is unknown is no pass");
    assert!(refused(&["audit", "--root", &root, "--cpus", "9"], 2).contains("choose among 0-3"));
    refused(&["audit", "--root", &root, "--cpus", "3-1"], 2);
    refused(&["audit", "--root", &place.path("none")], 2);
    refused(&["audit", "--bundle", &place.path("none")], 2);
    refused(&["audit", "--bundle", &empty], 2);
    refused(&["audit", "--profile", "fast"], 2);
    refused(&["audit", "--strict"], 2);
    refused(&["audit", "--root", &root, "--json", "-", "--junit", "-"], 2);
}

#[test]
fn nothing_is_known_of_an_empty_tree_and_nothing_passes() {
    let place = Place::new();
    let empty = tree(&place, "empty", "/proc/version=Linux");
    for profile in ["control-loop", "busy-poll", "audio", "guest"] {
        let audit = json(&["audit", "--root", &empty, "--profile", profile], 0);
        assert_eq!(
            (audit["summary"]["pass"].as_u64(), audit["summary"]["fail"].as_u64()),
            (Some(0), Some(0)),
            "{audit:#}"
        );
    }
}

#[test]
fn a_capture_of_this_machine_is_judged_as_the_machine() {
    let place = Place::new();
    // Threads come and go on a machine at work: only a capture between two equal audits counts.
    let still = (0..20).find_map(|n| {
        let before = onbeat(&["audit", "--json", "-"]).stdout;
        let bundle = place.path(&format!("bundle{n}"));
        let output = onbeat(&["capture", "-q", "-o", &bundle]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!((code(&output), said.lines().count()), (0, 1), "{said}");
        (before == onbeat(&["audit", "--json", "-"]).stdout).then_some((before, bundle))
    });
    let (live, bundle) = still.expect("a machine whose settings stand still for a second");
    for path in [bundle.clone(), format!("{bundle}/capture.json")] {
        let again = onbeat(&["audit", "--bundle", &path, "--json", "-"]).stdout;
        assert!(live == again, "{}{}", String::from_utf8_lossy(&live), String::from_utf8_lossy(&again));
    }
    assert!(refused(&["capture", "-o", &bundle], 2).contains("not empty"));
}

#[test]
fn the_bundle_of_a_run_says_of_its_machine_what_a_capture_says() {
    let place = Place::new();
    // Threads come and go on a machine at work.
    let still = (0..20).find_map(|n| {
        let (run, capture) = (place.path(&format!("run{n}")), place.path(&format!("capture{n}")));
        let measured = onbeat(&["measure", "-p", "0", "-D", "100ms", "-q", "-o", &run]);
        assert_eq!(code(&measured), 0, "{}", String::from_utf8_lossy(&measured.stderr));
        assert_eq!(code(&onbeat(&["capture", "-q", "-o", &capture])), 0);
        let audit = |bundle: &str| onbeat(&["audit", "--bundle", bundle, "--json", "-"]).stdout;
        (audit(&run) == audit(&capture)).then_some(run)
    });
    let run = still.expect("a machine whose settings stand still for a second");
    // Files that no fact of a run comes from are stored in one file: a block of the disk for each
    // would be too much.
    let texts = fs::read_to_string(format!("{run}/host.texts")).unwrap();
    let files = |path: &str| fs::metadata(format!("{run}/host{path}")).is_ok();
    assert!(files("/proc/sys/kernel/osrelease") && !files("/proc/sys/vm/stat_interval"));
    assert!(texts.lines().count() > 20 && texts.contains("\"/proc/sys/kernel/timer_migration\""), "{texts}");
}

#[test]
fn a_capture_from_before_a_rule_leaves_it_unknown() {
    let place = Place::new();
    let bundle = place.path("old");
    fs::create_dir_all(format!("{bundle}/host/proc/sys/kernel")).unwrap();
    fs::write(format!("{bundle}/capture.json"), "{\"schema\":\"onbeat.capture/1\"}").unwrap();
    fs::write(format!("{bundle}/host/proc/sys/kernel/osrelease"), "6.12.9\n").unwrap();
    let audit = json(&["audit", "--bundle", &bundle], 0);
    assert_eq!(audit["summary"]["pass"], 0, "{audit:#}");
    let found = findings(&audit);
    assert_eq!(found["fair-server"]["verdict"], "unknown");
    assert!(found["fair-server"]["why"].as_str().unwrap().contains("not in this capture"));
}

#[test]
fn trees_that_lead_elsewhere_or_never_end_are_harmless() {
    let place = Place::new();
    let root = tree(&place, "evil", STOCK);
    let at = |path: &str| format!("{root}{path}");
    for path in
        ["/proc/sys/kernel/version", "/proc/sys/kernel/sched_rt_runtime_us", "/sys/devices/system/cpu/online"]
    {
        fs::remove_file(at(path)).unwrap();
    }
    symlink("/proc/sys/kernel/version", at("/proc/sys/kernel/version")).unwrap();
    symlink("../../../../../../../../proc/version", at("/proc/sys/kernel/sched_rt_runtime_us")).unwrap();
    fs::write(at("/sys/devices/system/cpu/online"), [0xff, 0xfe, b'\n']).unwrap();
    fs::create_dir_all(at("/proc/irq")).unwrap();
    symlink("/", at("/proc/irq/7")).unwrap();
    fs::create_dir(at("/proc/swaps")).unwrap();
    let sparse = fs::File::create(at("/proc/cpuinfo")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let audit = json(&["audit", "--root", &root], 0);
    assert_eq!(verdict(&audit, "rt-throttling"), "unknown");
    assert_ne!(verdict(&audit, "preemption-model"), "pass");
    assert!(!audit.to_string().contains("secret"));
}

#[test]
fn rules_are_told_one_by_one_and_together() {
    let rules = json(&["rules"], 0);
    assert_eq!(rules["schema"], "onbeat.rules/1");
    for rule in rules["rules"].as_array().unwrap() {
        assert!(rule["kind"] == "knob" || rule["kind"] == "culprit" || rule["kind"] == "check");
        for field in ["id", "title", "doc"] {
            assert!(!rule[field].as_str().unwrap().is_empty(), "{field}");
        }
        for field in ["sources", "cures", "cured_by"] {
            assert!(rule[field].is_array(), "{field}");
        }
        // A knob is settable, or names the reason why not.
        let why = rule["unsettable_why"].as_str().map(str::is_empty);
        assert_eq!(rule["settable"].as_bool(), why, "{rule}");
        assert_eq!(rule["settable"].is_boolean(), rule["kind"] == "knob", "{rule}");
    }
    let settable = |rule: &&Value| rule["settable"] == true && rule["lasts"] == "runtime";
    assert!(rules["rules"].as_array().unwrap().iter().filter(settable).count() >= 35);
    let one = |id: &str| json(&["rules", id], 0)["rules"][0].clone();
    let (knob, culprit) = (one("fair-server"), one("fair-server-turn"));
    assert_eq!(culprit["kind"], "culprit");
    let names =
        |rule: &Value, field: &str, id: &str| rule[field].as_array().unwrap().iter().any(|it| it == id);
    assert!(names(&culprit, "cured_by", "fair-server") && names(&knob, "cures", "fair-server-turn"));
    assert!(names(&knob, "cures", "fair-server"), "the kinds of slices stay");
    let one = json(&["rules", "rt-throttling"], 0);
    assert_eq!(one["rules"].as_array().unwrap().len(), 1);
    let page = String::from_utf8(onbeat(&["rules", "fair-server"]).stdout).unwrap();
    assert!(page.starts_with("fair-server\n") && page.contains("https://docs.kernel.org/"), "{page}");
    let page = String::from_utf8(onbeat(&["rules", "irqs-off-section"]).stdout).unwrap();
    assert!(page.starts_with("irqs-off-section\n") && page.contains("\nTriggers\n"), "{page}");
    assert!(refused(&["rules", "throttle-rt"], 2).contains("rt-throttling"));
}

#[test]
fn continuous_integration_reads_it() {
    let place = Place::new();
    let root = tree(&place, "stock", STOCK);
    let output = onbeat(&["audit", "--root", &root, "--junit", "-"]);
    let xml = String::from_utf8(output.stdout).unwrap();
    let count = |what: &str| xml.matches(what).count();
    let audit = json(&["audit", "--root", &root], 0);
    assert_eq!(count("<testcase "), audit["findings"].as_array().unwrap().len());
    assert_eq!(count("<failure ") as u64, audit["summary"]["fail"].as_u64().unwrap());
    assert_eq!(count("<error ") as u64, audit["summary"]["unknown"].as_u64().unwrap());
    assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>"));
}
