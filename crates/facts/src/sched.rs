//! The share of a CPU that the scheduler withholds from real-time tasks.
//!
//! Source: Documentation/scheduler/sched-rt-group.rst for `sched_rt_runtime_us`, and
//! `kernel/sched/debug.c` (6.12 on) for
//! `/sys/kernel/debug/sched/fair_server/cpuN/{runtime,period}`. The two are independent: -1 in the
//! first leaves the fair server at its 50 ms in each second.

use model::units::Cpu;

/// Fair server of one CPU: the time that it may take from real-time tasks for ordinary ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairServer {
    pub cpu: Cpu,
    /// Runtime in each period; 0 if it is off.
    pub runtime_ns: u64,
    pub period_ns: u64,
}

/// Longest runtime per period of any CPU's fair server.
pub fn fair_server_runtime_ns(servers: &[FairServer]) -> Option<u64> {
    servers.iter().map(|server| server.runtime_ns).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_share_counts() {
        let server = |cpu, runtime_ns| FairServer { cpu: Cpu(cpu), runtime_ns, period_ns: 1_000_000_000 };
        assert_eq!(fair_server_runtime_ns(&[server(0, 0), server(1, 50_000_000)]), Some(50_000_000));
        assert_eq!(fair_server_runtime_ns(&[]), None);
    }
}
