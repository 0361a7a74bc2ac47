//! What a machine was, by its content: the same settings have the same digest.

use facts::differences::Settings;
use model::run::Run;
use model::text::excerpt;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

use crate::records::EnvironmentRecord;

/// The environment of a run, from its document and the kernel's files in its bundle.
pub fn environment(run: &Run, files: &[(String, Vec<u8>)]) -> EnvironmentRecord {
    let settings = Settings::of(run, files);
    let mut kept: BTreeMap<String, String> = settings
        .values()
        .iter()
        // How it was measured is the series', and which version measured is no setting of the
        // board.
        .filter(|(name, value)| !name.starts_with("plan.") && *name != "onbeat" && !value.is_empty())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let options = settings.options();
    if !options.is_empty() {
        let mut all = Sha256::new();
        options.iter().for_each(|(name, value)| all.update(format!("{name}={value}\n")));
        kept.insert("kernel configuration".to_owned(), hex(&all.finalize()[..8]));
    }
    let document = serde_json::to_string(&kept).unwrap_or_default();
    EnvironmentRecord {
        digest: hex(&Sha256::digest(&document)[..16]),
        model: excerpt(&run.host.model),
        release: excerpt(&run.host.release),
        preempt: run.host.preempt.as_str().to_owned(),
        settings: document,
    }
}

/// Bytes as people compare them.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_was_decides_and_not_how_it_was_measured() {
        let mut run = Run::default();
        run.host.release = "6.12.1-rt".into();
        run.host.cmdline = "isolcpus=1 quiet".into();
        let first = environment(&run, &[]);
        run.plan.interval_ns = Some(model::units::Nanos(1_000));
        run.version = "9".into();
        assert_eq!(environment(&run, &[]), first);
        let file = ("/proc/sys/kernel/sched_rt_runtime_us".to_owned(), b"-1\n".to_vec());
        let other = environment(&run, &[file]);
        assert_ne!(other.digest, first.digest);
        assert!(other.settings.contains("sched_rt_runtime_us"));
        assert_eq!(first.release, "6.12.1-rt");
    }
}
