//! Records of `onbeat watch` as read by a user.

use std::fs;
use std::path::Path;

use bundle::record::made::MadeRecord;
use bundle::record::write::{DEFAULT_SIZE, RecordWriter};
use model::units::Nanos;
use model::watch::{WatchMark, WatchMarkKind};

use super::place::{Place, code, json, onbeat, refused};

const HOURLY: MadeRecord =
    MadeRecord { cpus: 2, span: Nanos(3_600 * Nanos::SECOND.0), reboot: 25, wakeups: 3_600_000 };

fn record(path: &str, made: &MadeRecord, intervals: u64) {
    let (mut writer, remarks) = RecordWriter::open_folder(Path::new(path), DEFAULT_SIZE).unwrap();
    assert!(remarks.is_empty(), "{remarks:?}");
    for n in 0..intervals {
        let appended = writer.append(&made.run(n), &made.interval(n)).unwrap();
        assert_eq!(appended.trouble, None);
    }
}

#[test]
fn a_record_is_shown_with_its_worst_by_name() {
    let place = Place::new();
    let folder = place.path("record");
    record(&folder, &HOURLY, 40);
    let output = onbeat(&["report", &folder]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{text}");
    assert!(text.starts_with("The longest wake-up in 40 h: "), "{text}");
    for words in ["control/1 (2211, fifo 80)", "nvme0q1", "logger", "ktimers/0", "over 99.9 %"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let document = json(&["report", &folder], 0);
    assert_eq!(document["schema"], "onbeat.watch-report/1");
    assert_eq!((&document["intervals"], &document["boots"]), (&40.into(), &2.into()));
    assert_eq!(document["coverage"]["recorded"], 40 * 7_200_000u64);
    let counted = &document["series"][0]["cpus"][0]["n"];
    assert_eq!(counted.as_u64(), Some(40 * 3_600_000));
    for (format, words) in [("html", "sleeps in"), ("svg", "<svg"), ("csv", "timer+wakeup/system/cpu1")] {
        let file = place.path(&format!("report.{format}"));
        assert_eq!(code(&onbeat(&["report", &folder, "-o", &file])), 0);
        assert!(fs::read_to_string(&file).unwrap().contains(words), "{format}");
    }
}

/// A continuing run is marked in each interval, with a start that is read again when the watch
/// restarts: it is one run. Another with the same command line is separate.
#[test]
fn a_run_beside_a_watch_is_one_mark() {
    let place = Place::new();
    let folder = place.path("record");
    let (mut writer, _) = RecordWriter::open_folder(Path::new(&folder), DEFAULT_SIZE).unwrap();
    let begins = [(0, 7), (0, 9), (HOURLY.span.0, 9)];
    for n in 0..3 {
        let mut interval = HOURLY.interval(n);
        let end = interval.mono_ns + interval.span_ns;
        let of = |&(begin, jitter): &(i64, i64)| WatchMark {
            kind: WatchMarkKind::Measure.into(),
            from_mono_ns: Nanos(40 * Nanos::SECOND.0 + begin + jitter * n as i64),
            to_mono_ns: end,
            detail: format!("measure {jitter}"),
            ..WatchMark::default()
        };
        interval.marks = begins.iter().map(of).collect();
        writer.append(&HOURLY.run(n), &interval).unwrap();
    }
    drop(writer);
    let document = json(&["report", &folder], 0);
    let marks = document["marks"].as_array().unwrap();
    let runs: Vec<_> = marks.iter().filter(|mark| mark["kind"] == "measure").collect();
    assert_eq!(runs.len(), begins.len(), "{runs:?}");
    let end = 40 * Nanos::SECOND.0 + 3 * HOURLY.span.0;
    assert!(runs.iter().all(|mark| mark["to_mono_ns"] == end), "{runs:?}");
}

#[test]
fn what_is_wrong_with_a_record_is_one_line_each() {
    let place = Place::new();
    let folder = place.path("record");
    record(&folder, &HOURLY, 5);
    assert!(refused(&["report", &folder, "--hist", &place.path("hist")], 2).contains("alone: `report DIR`"));
    for command in ["bounds", "explain"] {
        assert!(refused(&[command, &folder], 2).contains("record of `onbeat watch`"), "{command}");
    }
    let at = |name: &str| Path::new(&folder).join(name);
    let manifest = fs::read_to_string(at("record.json")).unwrap();
    fs::write(at("record.json"), manifest.replace("onbeat.watch/1", "onbeat.watch/9")).unwrap();
    assert!(refused(&["report", &folder], 2).contains("newer onbeat"));
    fs::remove_file(at("record.json")).unwrap();
    let tail = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let tail = tail.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "tail")).unwrap();
    let bytes = fs::read(&tail).unwrap();
    fs::write(&tail, &bytes[..bytes.len() - 100]).unwrap();
    let output = onbeat(&["report", &folder]);
    let (text, remarks) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && text.contains("4 intervals in 1 boot"), "{text}");
    assert!(
        remarks.contains("record.json is missing") && remarks.contains("an incomplete interval"),
        "{remarks}"
    );
}
