//! Rights of this process: resource limits and capabilities.
//!
//! Source: `/proc/PID/limits` and `/proc/PID/status` in Documentation/filesystems/proc.rst,
//! getrlimit(2) and capabilities(7).

/// A resource limit; none means "unlimited".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// The limit in force.
    pub soft: Option<u64>,
    /// Highest value to which the process may raise it without privilege.
    pub hard: Option<u64>,
}

/// Limits that affect real-time work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Highest real-time priority allowed without CAP_SYS_NICE.
    pub rt_priority: Limit,
    /// Bytes that may be locked in memory without CAP_IPC_LOCK.
    pub locked_memory: Limit,
}

/// Parses `/proc/self/limits`.
pub fn parse_limits(text: &str) -> Result<Limits, String> {
    Ok(Limits {
        rt_priority: parse_limit(text, "Max realtime priority")?,
        locked_memory: parse_limit(text, "Max locked memory")?,
    })
}

fn parse_limit(text: &str, name: &str) -> Result<Limit, String> {
    let columns = text.lines().find_map(|line| line.strip_prefix(name));
    let mut columns = columns.ok_or_else(|| format!("expected a line '{name}'"))?.split_whitespace();
    let mut column = || match columns.next() {
        Some("unlimited") => Ok(None),
        Some(number) => number.parse().map(Some).map_err(|_| format!("expected a number in '{name}'")),
        None => Err(format!("expected two columns in '{name}'")),
    };
    Ok(Limit { soft: column()?, hard: column()? })
}

/// A set of capabilities by their numbers in capabilities(7).
///
/// In a separate user namespace a process has them all and still may not set a real-time policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// CAP_IPC_LOCK: lock any amount of memory.
    pub fn ipc_lock(self) -> bool {
        self.has(14)
    }

    /// CAP_SYS_ADMIN: among much else, mount tracefs.
    pub fn sys_admin(self) -> bool {
        self.has(21)
    }

    /// CAP_SYS_NICE: any real-time priority.
    pub fn sys_nice(self) -> bool {
        self.has(23)
    }

    /// CAP_SYSLOG: read the kernel's log and its addresses.
    pub fn syslog(self) -> bool {
        self.has(34)
    }

    /// Names of the capabilities above that are in the set.
    pub fn names(self) -> Vec<String> {
        let known = [
            ("ipc_lock", self.ipc_lock()),
            ("sys_admin", self.sys_admin()),
            ("sys_nice", self.sys_nice()),
            ("syslog", self.syslog()),
        ];
        known.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned()).collect()
    }

    fn has(self, number: u32) -> bool {
        self.0 >> number & 1 == 1
    }
}

/// Parses the effective set in `/proc/self/status`.
pub fn parse_capabilities(text: &str) -> Result<Capabilities, String> {
    let set = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = set.ok_or("expected a line 'CapEff:'")?.trim();
    u64::from_str_radix(set, 16)
        .map(Capabilities)
        .map_err(|_| "expected a hexadecimal set after 'CapEff:'".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn limits_in_their_columns() {
        let limits = parse_limits(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max locked memory         8388608              unlimited            bytes     \n\
             Max realtime priority     0                    95                             \n\
             Max realtime timeout      unlimited            unlimited            us        \n",
        );
        let rt_priority = Limit { soft: Some(0), hard: Some(95) };
        let locked_memory = Limit { soft: Some(8_388_608), hard: None };
        assert_eq!(limits, Ok(Limits { rt_priority, locked_memory }));
        assert!(parse_limits("Max locked memory 1\n").is_err());
    }

    #[test]
    fn capabilities_by_their_bits() {
        let set = parse_capabilities("CapPrm:\t0000000000000000\nCapEff:\t0000000000804000\n").unwrap();
        assert_eq!(
            (set.sys_nice(), set.ipc_lock(), set.sys_admin(), set.syslog()),
            (true, true, false, false)
        );
        assert!(parse_capabilities("CapEff:\t1ffffffffffffffff\n").is_err());
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "((Max locked memory|Max realtime priority|CapEff:)?\\PC{0,20}\n?){0,6}") {
            let _ = (parse_limits(&text), parse_capabilities(&text));
        }
    }
}
