//! Steal time of each CPU: the time that the hypervisor took from it.
//!
//! Source: `/proc/stat` in Documentation/filesystems/proc.rst. Read every second during a
//! measurement: nothing here allocates, and reading stops after the per-CPU lines, before the long
//! line of interrupts.

use super::line::number;
use model::units::Cpu;

/// Calls `f` with each online CPU's steal time since boot in ticks of 10 ms (USER_HZ), in the
/// file's order.
///
/// Malformed lines are skipped; kernels before 2.6.11 have no such column.
pub fn steal_ticks(text: &[u8], mut f: impl FnMut(Cpu, u64)) {
    for line in text.split(|&b| b == b'\n') {
        let Some(line) = line.strip_prefix(b"cpu") else { return };
        // The first line is the sum of all CPUs, "cpu" and a blank; its empty number skips it.
        let mut words = line.split(|&b| b == b' ');
        let cpu = words.next().and_then(number).and_then(|n| u32::try_from(n).ok());
        // user nice system idle iowait irq softirq steal
        let steal = words.filter(|word| !word.is_empty()).nth(7).and_then(number);
        if let (Some(cpu), Some(steal)) = (cpu.and_then(|cpu| Cpu::try_from(cpu).ok()), steal) {
            f(cpu, steal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &[(u32, u64)]) {
        let mut found = Vec::new();
        steal_ticks(text.as_bytes(), |cpu, ticks| found.push((cpu.0, ticks)));
        assert_eq!(found, expected);
    }

    #[test]
    fn steal_is_the_eighth_column() {
        check(
            "cpu  9722 0 5429 261600 723 0 75 283 0 0\ncpu0 4122 0 2207 132322 63 0 8 144 0 0\n\
             cpu3 5599 0 3222 129277 660 0 66 139 0 0\nintr 5 1 2\ncpu9 1 1 1 1 1 1 1 1 1 1\n",
            &[(0, 144), (3, 139)],
        );
        check("cpu0 1 2 3\ncpu1 1 2 3 4 5 6 7 99999999999999999999\ncpux 1 2 3 4 5 6 7 8", &[]);
        check("cpu99999999 0 0 0 0 0 0 0 5\ncpu8191 0 0 0 0 0 0 0 5\n", &[(8191, 5)]);
        check("", &[]);
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "((cpu)?[0-9 ]{0,40}\\PC?\n?){0,6}") {
            steal_ticks(text.as_bytes(), |_, _| ());
        }
    }
}
