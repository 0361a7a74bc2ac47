//! Environment of a machine: settings by name, with a digest that names them.

use std::collections::BTreeMap;

use model::run::Host;
use model::watch::WatchEnvironment;

/// Fields of a machine's description that are the process's, or have a separate mark.
const NO_SETTING: [&str; 7] = [
    "capabilities",
    "cgroup_rt_runtime_us",
    "idle_exit_ns",
    "memlock_limit",
    "online",
    "rtprio_limit",
    "unknown",
];

/// Environment of a machine, from its description.
pub fn environment_of(host: &Host) -> WatchEnvironment {
    let mut settings = BTreeMap::new();
    if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(host) {
        for (name, value) in fields.into_iter().filter(|(name, _)| !NO_SETTING.contains(&name.as_str())) {
            let text = match value {
                serde_json::Value::String(text) => text,
                serde_json::Value::Null => String::new(),
                other => other.to_string(),
            };
            if !text.is_empty() {
                settings.insert(name, text);
            }
        }
    }
    let text: String = settings.iter().map(|(name, value)| format!("{name}\0{value}\0")).collect();
    WatchEnvironment {
        env: format!("{:016x}", digest(text.as_bytes())),
        release: host.release.clone(),
        machine: host.machine.clone(),
        settings,
    }
}

/// FNV-1a: sufficient, because equal settings only have to have the same name.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_setting_is_another_environment_and_an_empty_text_is_none() {
        let host = Host { cmdline: "isolcpus=3".into(), release: "6.12".into(), ..Host::default() };
        let (one, same) = (environment_of(&host), environment_of(&host));
        assert_eq!(one, same);
        assert_eq!(one.settings["cmdline"], "isolcpus=3");
        assert!(!one.settings.contains_key("model"));
        let other = environment_of(&Host { cmdline: "isolcpus=2".into(), ..host });
        assert_ne!(one.env, other.env);
    }
}
