//! Answers of `bounds`: for textbook numbers, limits, lists, and runs with flaws.

use model::run::Integrity;
use model::units::Nanos;

use super::place::*;

#[test]
fn counting_bounds_are_those_of_the_textbook() {
    let place = Place::new();
    let list = place.list("hour.csv", &gumbel(3_600, 1));
    let answer = json(&["bounds", &list, "--resolution", "1us", "--limit", "90us", "--horizon", "1h"], 0);
    assert_eq!(
        (answer["schema"].as_str(), answer["blocks"].as_u64()),
        (Some("onbeat.bounds/1"), Some(3_600))
    );
    near(&answer["new_record_probability"], 0.5, 1e-9);
    near(&answer["rate_upper_per_hour"], 2.995_732_3, 1e-6);
    near(&answer["clean_seconds_needed"], 10_784.636, 1e-6);
    near(&answer["hidden_rate_per_hour"], 2.995_732_3, 1e-6);
    // An hour is too short to claim one an hour by counting; the extrapolation supports it.
    assert_eq!(
        (answer["verdict"].as_str(), answer["basis"].as_str()),
        (Some("supported"), Some("extrapolation"))
    );
    assert_eq!(answer["extrapolation"]["status"], "ok");
    let levels =
        ["typical_ns", "upper_ns", "guarded_upper_ns"].map(|name| number(&answer["extrapolation"][name]));
    assert!(levels[0] < levels[1] && levels[1] <= levels[2], "{levels:?}");
}

#[test]
fn limits_end_in_the_contract_s_codes() {
    let place = Place::new();
    let hour = place.list("hour.csv", &gumbel(3_600, 2));
    assert_eq!(
        json(&["bounds", &hour, "--resolution", "1us", "-l", "90us", "--horizon", "20m"], 0)["basis"],
        "counting"
    );
    assert_eq!(
        json(&["bounds", &hour, "--resolution", "1us", "-l", "22us", "--horizon", "1h"], 3)["verdict"],
        "failed"
    );
    assert_eq!(
        json(&["bounds", &hour, "--resolution", "1us", "-l", "50kHz", "--horizon", "1h"], 3)["claim"]["limit_ns"],
        20_000
    );
    assert_eq!(json(&["bounds", &hour, "--resolution", "1us", "-l", "90us"], 7)["verdict"], "inconclusive");
    let far = json(&["bounds", &hour, "--resolution", "1us", "--horizon", "30d"], 0);
    assert_eq!(
        (gate(&far, "G8")["passed"].as_bool(), far["extrapolation"]["status"].as_str()),
        (Some(false), Some("refused"))
    );
    assert!(far["extrapolation"]["reason"].as_str().unwrap().contains("10 h"));
}

#[test]
fn the_shortest_period_is_that_of_the_shortest_limit() {
    let place = Place::new();
    let hour = place.list("hour.csv", &gumbel(3_600, 2));
    let bounds = |more: &[&str], code| {
        json(&[&["bounds", &hour, "--resolution", "1us", "--horizon"], more].concat(), code)
    };
    let asked = bounds(&["20m", "--period=200us"], 0);
    let found = &asked["shortest_period"];
    let lateness = found["lateness_ns"].as_i64().unwrap();
    assert_eq!(
        (found["period_ns"].as_i64(), found["computing_ns"].as_i64()),
        (Some(lateness + 200_000), Some(200_000))
    );
    assert_eq!((&asked["verdict"], &asked["claim"]["limit_ns"]), (&"supported".into(), &lateness.into()));
    assert_eq!(bounds(&["20m", "-l", &format!("{lateness}ns")], 0)["verdict"], "supported");
    assert_ne!(
        json(
            &[
                "bounds",
                &hour,
                "--resolution",
                "1us",
                "--horizon",
                "20m",
                "-l",
                &format!("{}ns", lateness - 1)
            ],
            7
        )["verdict"],
        "supported"
    );
    assert_eq!(bounds(&["20m", "--period"], 0)["shortest_period"]["period_ns"], 2 * lateness);
    let none = bounds(&["365d", "--period"], 7);
    assert_eq!(
        (&none["shortest_period"]["period_ns"], &none["verdict"]),
        (&serde_json::Value::Null, &"inconclusive".into())
    );
    assert!(bounds(&["20m"], 0)["shortest_period"].is_null());
}

#[test]
fn a_comb_is_a_mechanism_and_no_tail() {
    let place = Place::new();
    let mut us = gumbel(600, 3);
    us.iter_mut().skip(17).step_by(60).for_each(|us| *us = 51.0);
    let answer = json(&["bounds", &place.list("comb.csv", &us), "--resolution", "1us"], 0);
    assert_eq!(answer["extrapolation"]["status"], "refused");
    let reason = answer["extrapolation"]["reason"].as_str().unwrap();
    assert!(reason.contains("recur every 60.0"), "{reason}");
    near(&answer["periods"][0]["period_s"], 60.0, 1e-3);
    assert_eq!(answer["periods"][0]["members"], 10);
    assert!(answer["extrapolation"]["upper_ns"].is_null() && answer["extrapolation"]["gev"].is_object());
}

#[test]
fn what_carries_no_tail_is_said_and_is_no_error() {
    let place = Place::new();
    for (name, us) in
        [("few", gumbel(20, 4)), ("equal", vec![5.0; 600]), ("zero", vec![0.0; 600]), ("one", vec![7.0])]
    {
        let answer = json(&["bounds", &place.list(name, &us)], 0);
        assert_eq!(answer["extrapolation"]["status"], "refused", "{name}");
        assert_eq!(gate(&answer, "G7")["passed"], false, "{name}");
        assert!(answer["extrapolation"]["reason"].as_str().unwrap().starts_with("Too little data"), "{name}");
        assert_eq!(answer["observed_max_ns"], us.iter().copied().fold(0.0, f64::max) as i64 * 1_000);
    }
}

#[test]
fn a_run_is_as_good_as_a_list_and_its_flaws_are_named() {
    let place = Place::new();
    let us = gumbel(600, 5);
    let plain = place.bundle("plain", &us, |_, _| {});
    let answer = json(&["bounds", &plain], 0);
    assert_eq!(
        (answer["extrapolation"]["status"].as_str(), answer["blocks"].as_u64()),
        (Some("ok"), Some(600))
    );
    let joined = place.bundle("joined", &us, |_, blocks| {
        blocks.drain(301..310);
        blocks[300].span_ns = Some(Nanos(10 * SECOND));
        blocks[300].max_mono_ns = Some(Nanos(305 * SECOND));
    });
    let answer = json(&["bounds", &joined], 0);
    assert!(
        gate(&answer, "G11")["detail"].as_str().unwrap().contains("1 record spans several blocks"),
        "{answer}"
    );
    assert_eq!(answer["blocks"], 591);
    let spoiled = place.bundle("spoiled", &us, |run, _| {
        run.integrity.push(Integrity { kind: "suspend".into(), invalidates: true, ..Integrity::default() });
    });
    let answer = json(&["bounds", &spoiled, "--limit", "90us", "--horizon", "1m"], 7);
    assert_eq!(
        (answer["basis"].as_str(), gate(&answer, "G11")["passed"].as_bool()),
        (Some("integrity"), Some(false))
    );
    assert!(refused(&["bounds", &plain, "-a", "3"], 2).contains("CPU 3 was not measured"));
    let empty = place.bundle("empty", &us, |run, blocks| {
        blocks.clear();
        run.cpus.clear();
        run.plan.cpus.clear();
    });
    assert!(refused(&["bounds", &empty], 2).contains("no wake-up"));
}

#[test]
fn lists_that_are_none_are_refused_in_a_line() {
    let place = Place::new();
    for (name, text, word) in [
        ("negative", "5\n-7\n", "line 2"),
        ("fraction", "5.5\n", "whole number"),
        ("huge", "99999999999999999999\n", "292 years"),
        ("columns", "1,2\n", "several columns"),
        ("nothing", "", "no values"),
        ("json", "{}\n", "is JSON"),
    ] {
        let said = refused(&["bounds", &place.text(name, text)], 2);
        assert!(said.contains(word), "{name}: {said}");
    }
    assert!(refused(&["bounds", "/nonexistent"], 2).contains("cannot read"));
    let list = place.text("ok.csv", "max_ns\n5\n\n7\n");
    let output = onbeat(&["bounds", &list]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("'max_ns'") && said.contains("blank"), "{said}");
    let answer = json(&["bounds", &list, "-q"], 0);
    assert_eq!((answer["blocks"].as_u64(), answer["observed_ns"].as_i64()), (Some(2), Some(3 * SECOND)));
    for flags in
        [["--block", "0"], ["--block", "x"], ["--resolution", "-1"], ["--horizon", "0"], ["--reach", "500"]]
    {
        refused(&["bounds", &list, flags[0], flags[1]], 2);
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let place = Place::new();
    let mut us = gumbel(600, 11);
    us[70] = 80.0;
    let list = place.list("list.csv", &us);
    let first = onbeat(&["bounds", &list, "--json", "-"]);
    assert_eq!(first.stdout, onbeat(&["bounds", &list, "--json", "-"]).stdout);
    for word in [["WC", "ET"].concat(), "guarantee".into()] {
        assert!(!String::from_utf8_lossy(&onbeat(&["bounds", &list]).stdout).contains(&word));
    }
}
