//! State that changes by itself: patterns of keys, with reasons, in `lab/machine_state/noise.txt`.

use std::collections::BTreeMap;

use super::state::ChangedKey;

const NOISE: &str = include_str!("../../../../lab/machine_state/noise.txt");

/// A pattern of keys: `*` stands for any characters but `/`, `**` for any.
#[derive(Debug)]
struct Pattern {
    glob: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for those who read the list"))]
    reason: &'static str,
}

/// The list.
#[derive(Debug)]
pub struct Noise {
    patterns: Vec<Pattern>,
}

impl Noise {
    /// The repository's list.
    pub fn read() -> Noise {
        let lines = NOISE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let pattern = |line: &'static str| {
            let (glob, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            Pattern { glob, reason: reason.trim() }
        };
        Noise { patterns: lines.map(pattern).collect() }
    }

    /// The pattern that a key matches.
    pub fn pattern_of(&self, key: &str) -> Option<&'static str> {
        let found = self.patterns.iter().find(|pattern| matches(pattern.glob.as_bytes(), key.as_bytes()));
        found.map(|pattern| pattern.glob)
    }

    /// Differences other than noise, and the number of uses of each pattern.
    pub fn without(&self, differences: Vec<ChangedKey>) -> (Vec<ChangedKey>, BTreeMap<&'static str, usize>) {
        let (mut left, mut used) = (Vec::new(), BTreeMap::new());
        for difference in differences {
            match self.pattern_of(&difference.key) {
                Some(glob) => *used.entry(glob).or_default() += 1,
                None => left.push(difference),
            }
        }
        (left, used)
    }
}

fn matches(glob: &[u8], key: &[u8]) -> bool {
    match glob {
        [] => key.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=key.len()).any(|at| matches(rest, &key[at..])),
        [b'*', rest @ ..] => {
            let end = key.iter().position(|&byte| byte == b'/').unwrap_or(key.len());
            (0..=end).any(|at| matches(rest, &key[at..]))
        }
        [first, rest @ ..] => key.first() == Some(first) && matches(rest, &key[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_within_a_folder_or_across() {
        let fits = |glob: &str, key: &str| matches(glob.as_bytes(), key.as_bytes());
        assert!(fits("/a/*/c", "/a/b/c") && !fits("/a/*/c", "/a/b/d/c") && !fits("/a/*/c", "/a/b/cc"));
        assert!(fits("/a/**/c", "/a/b/d/c") && fits("/a/**", "/a/b/d") && !fits("/a/**", "/b"));
        assert!(fits("/a/b*", "/a/b") && fits("/a/*b*", "/a/xby"));
    }

    #[test]
    fn the_list_is_short_and_says_why() {
        let patterns = Noise::read().patterns;
        assert!((1..=30).contains(&patterns.len()), "{} patterns", patterns.len());
        for Pattern { glob, reason } in patterns {
            assert!(glob.starts_with('/') || glob.starts_with("task:"), "{glob}");
            assert!(reason.split(' ').count() > 1, "{glob} says no reason");
        }
    }

    /// A rule may write what it reads.
    #[test]
    fn no_pattern_hides_what_is_written() {
        let noise = Noise::read();
        let steps = [
            "/proc/irq/default_smp_affinity",
            "/proc/irq/24/smp_affinity",
            "/proc/irq/24/smp_affinity_list",
            "/proc/irq/24/effective_affinity_list",
            "/sys/fs/cgroup/cgroup.subtree_control",
            "/sys/fs/cgroup/onbeat",
            "/sys/fs/cgroup/onbeat/rt/cpuset.cpus",
            "/sys/fs/cgroup/onbeat/rt/cpuset.cpus.exclusive",
            "/sys/fs/cgroup/onbeat/rt/cpuset.cpus.partition",
            "/sys/fs/cgroup/system.slice/cpuset.cpus",
            "/sys/fs/cgroup/onbeat/rt/cpuset.mems",
            "/sys/devices/virtual/workqueue/cpumask",
            "/sys/devices/virtual/workqueue/writeback/cpumask",
            "task:12/345/mask",
            "task:12/345/policy",
            "task:12/345/group",
            "timers:watchdog",
        ];
        let reads = rules::survey_request().texts;
        assert!(reads.len() > 100, "{} texts", reads.len());
        let concrete = reads.iter().map(|text| text.replace('#', "0").replace('*', "x"));
        for key in concrete.chain(steps.map(String::from)) {
            assert_eq!(noise.pattern_of(&key), None, "{key}");
        }
    }
}
