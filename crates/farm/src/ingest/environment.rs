//! Environment of a machine, identified by its contents: equal settings have equal digests.

use facts::differences::Settings;
use model::run::{Host, Run};
pub use model::text::hex;
use model::text::{excerpt, several};
use model::watch::WatchEnvironment;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

use crate::environments::{KERNEL_CONFIGURATION, is_of_board};
use crate::records::EnvironmentRecord;

/// Limit of the settings of an environment as text, in bytes.
const MOST_BYTES: usize = 128 << 10;
/// Limit of their number: decoded, each takes more than its text. A machine of 64 CPUs has 1,500 in
/// 85 KB.
const MOST_SETTINGS: usize = 4_096;

/// An environment as the store has it.
#[derive(Debug)]
pub struct ReadEnvironment {
    pub record: EnvironmentRecord,
    /// Message on the settings beyond the limits; `None` if it is complete.
    pub left_out: Option<String>,
}

/// The environment of a run, from its document and the kernel's files in its bundle.
pub fn environment(run: &Run, files: &[(String, Vec<u8>)]) -> ReadEnvironment {
    let settings = Settings::of(run, files);
    let mut kept: BTreeMap<String, String> = settings
        .values()
        .iter()
        // The method, the load and the user of a measurement belong to the series, and the version
        // that measured is not a setting of the board.
        .filter(|(name, value)| !name.starts_with("plan.") && *name != "onbeat" && !value.is_empty())
        .filter(|(name, _)| is_of_board(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let options = settings.options();
    if !options.is_empty() {
        let mut all = Sha256::new();
        options.iter().for_each(|(name, value)| all.update(format!("{name}={value}\n")));
        kept.insert(KERNEL_CONFIGURATION.to_owned(), hex(&all.finalize()[..8]));
    }
    record(kept, &run.host.model, &run.host.release, run.host.preempt.as_str())
}

/// The environment recorded by a watch, with its settings named as those of a run. It lacks the
/// kernel's files.
pub fn watch_environment(of: &WatchEnvironment) -> ReadEnvironment {
    let setting = |name: &str| of.settings.get(name).map(String::as_str).unwrap_or_default();
    let host = Host { cmdline: setting("cmdline").to_owned(), ..Host::default() };
    let words = Settings::of(&Run { host, ..Run::default() }, &[]);
    let words = words.values().iter().filter(|(name, _)| name.starts_with("cmdline "));
    let mut kept: BTreeMap<String, String> =
        words.map(|(name, value)| (name.clone(), value.clone())).collect();
    let others = of.settings.iter().filter(|(name, value)| *name != "cmdline" && !value.is_empty());
    kept.extend(others.map(|(name, value)| (format!("host.{name}"), value.clone())));
    for (name, value) in [("host.release", &of.release), ("host.machine", &of.machine)] {
        if !value.is_empty() {
            kept.entry(name.to_owned()).or_insert_with(|| value.clone());
        }
    }
    record(kept, setting("model"), &of.release, setting("preempt"))
}

/// Record of settings; the longest are omitted until the rest fits.
fn record(mut kept: BTreeMap<String, String>, model: &str, release: &str, preempt: &str) -> ReadEnvironment {
    let before = kept.len();
    let bytes = |(name, value): (&String, &String)| {
        let text = |text: &String| serde_json::to_string(text).map_or(text.len(), |text| text.len());
        text(name) + text(value) + ",:".len()
    };
    let mut sizes: Vec<(usize, String)> = kept.iter().map(|one| (bytes(one), one.0.clone())).collect();
    sizes.sort_unstable();
    let mut all = sizes.iter().map(|(bytes, _)| bytes).sum::<usize>() + "{}".len();
    while (all > MOST_BYTES || kept.len() > MOST_SETTINGS)
        && let Some((bytes, name)) = sizes.pop()
    {
        all -= bytes;
        kept.remove(&name);
    }
    let gone = before - kept.len();
    let left_out = (gone > 0).then(|| {
        format!(
            "an environment may have at most {MOST_SETTINGS} settings and {MOST_BYTES} bytes, exceeded by \
             {}: shorten the longest, the kernel's command line first",
            several(gone as u64, "setting", "settings")
        )
    });
    let document = serde_json::to_string(&kept).unwrap_or_default();
    let record = EnvironmentRecord {
        digest: hex(&Sha256::digest(&document)[..16]),
        model: excerpt(model),
        release: excerpt(release),
        preempt: excerpt(preempt),
        settings: document,
    };
    ReadEnvironment { record, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::load::LoadRun;

    #[test]
    fn what_the_machine_was_decides_and_not_how_it_was_measured() {
        let mut run = Run::default();
        run.host.release = "6.12.1-rt".into();
        run.host.cmdline = "isolcpus=1 quiet".into();
        let first = environment(&run, &[]).record;
        run.plan.interval_ns = Some(model::units::Nanos(1_000));
        run.version = "9".into();
        run.loads = vec![LoadRun { spec: "cpu:1".into(), ..LoadRun::default() }];
        run.host.capabilities = vec!["sys_nice".into()];
        run.host.rtprio_limit = Some(99);
        let own = ("/sys/fs/cgroup/cpu/cpu.rt_runtime_us".to_owned(), b"950000\n".to_vec());
        assert_eq!(environment(&run, &[own]).record, first);
        let file = ("/proc/sys/kernel/sched_rt_runtime_us".to_owned(), b"-1\n".to_vec());
        let other = environment(&run, &[file]).record;
        assert_ne!(other.digest, first.digest);
        assert!(other.settings.contains("sched_rt_runtime_us"));
        assert_eq!(first.release, "6.12.1-rt");
    }

    #[test]
    fn settings_of_a_watch_are_named_as_those_of_a_run() {
        let mut run = Run::default();
        run.host.cmdline = "isolcpus=1 quiet".into();
        run.host.governor = "performance".into();
        let of_run: BTreeMap<String, String> =
            serde_json::from_str(&environment(&run, &[]).record.settings).unwrap();
        let settings = [
            ("cmdline", "isolcpus=1 quiet"),
            ("governor", "performance"),
            ("model", "a board"),
            ("preempt", "full-rt"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let watch = WatchEnvironment {
            env: "1a".into(),
            release: "6.12.1-rt".into(),
            settings: settings.into(),
            ..WatchEnvironment::default()
        };
        let record = watch_environment(&watch).record;
        let of_watch: BTreeMap<String, String> = serde_json::from_str(&record.settings).unwrap();
        for name in ["cmdline isolcpus", "cmdline quiet", "host.governor"] {
            assert!(
                of_run.contains_key(name) && of_run.get(name) == of_watch.get(name),
                "{name}: {of_watch:?}"
            );
        }
        assert!(!of_watch.contains_key("host.cmdline"));
        assert_eq!(of_watch["host.release"], "6.12.1-rt");
        assert_eq!((record.model.as_str(), record.release.as_str()), ("a board", "6.12.1-rt"));
        assert_eq!(record.preempt, "full-rt");
        // It is identified by its contents, whatever name the board uses.
        assert_eq!(watch_environment(&WatchEnvironment { env: "2b".into(), ..watch }).record, record);
    }

    #[test]
    fn settings_beyond_the_limits_are_left_out_longest_first_and_counted() {
        let of = |settings: BTreeMap<String, String>| {
            watch_environment(&WatchEnvironment { env: "1a".into(), settings, ..WatchEnvironment::default() })
        };
        let whole = of((0..100).map(|n| (format!("s{n}"), "\u{1}".repeat(n % 9 + 1))).collect());
        assert!(whole.left_out.is_none() && whole.record.settings.len() > 2_000);
        let long = [("long", MOST_BYTES / 2), ("longer", MOST_BYTES / 2 + 1), ("short", 9)];
        let read = of(long.map(|(name, bytes)| (name.to_owned(), "x".repeat(bytes))).into());
        let left: BTreeMap<String, String> = serde_json::from_str(&read.record.settings).unwrap();
        assert_eq!(left.into_keys().collect::<Vec<_>>(), ["host.long", "host.short"]);
        assert!(read.left_out.unwrap().contains("by 1 setting: shorten"));
        let read = of((0..9_000).map(|n| (n.to_string(), "x".into())).collect());
        let left: BTreeMap<String, String> = serde_json::from_str(&read.record.settings).unwrap();
        assert_eq!((left.len(), read.record.settings.len() <= MOST_BYTES), (MOST_SETTINGS, true));
        // Escaped characters count as they are written.
        let read =
            of([("a".to_owned(), "\u{1}".repeat(MOST_BYTES / 5)), ("b".to_owned(), "1".to_owned())].into());
        assert!(read.left_out.is_some() && read.record.settings.len() < 100);
    }
}
