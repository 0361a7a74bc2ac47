//! Interrupt counts of each CPU.
//!
//! Source: `/proc/interrupts` in Documentation/filesystems/proc.rst. Read every second during a
//! measurement: nothing here allocates.

use super::line::number;
use model::units::{CPU_LIMIT, Cpu};

/// Sums each CPU's column over all lines, the architecture's own (LOC, RES, NMI, ...) included,
/// into `totals`, which is indexed by CPU number; CPUs that are not in the file come out as 0.
///
/// The columns are those of the online CPUs, so their numbers can have gaps. False if the text has
/// no such header. The kernel's counters are 32 bits wide: a decreasing total has wrapped, or its
/// CPU was taken offline in between.
pub fn per_cpu_totals(text: &[u8], totals: &mut [u64]) -> bool {
    totals.fill(0);
    let mut lines = text.split(|&b| b == b'\n');
    let header = lines.next().unwrap_or_default();
    let columns = cpus(header).count();
    if columns == 0 || columns != words(header).count() {
        return false;
    }
    for line in lines {
        let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
        let (label, rest) = (line[..colon].trim_ascii(), &line[colon + 1..]);
        // These count for the whole machine, in what looks like the first CPU's column. On a
        // machine with one CPU the number of columns does not distinguish them, so they are matched
        // by name.
        let shared =
            matches!(label, b"ERR" | b"MIS" | b"Err") || counts(rest).take(columns).count() < columns;
        if shared {
            continue;
        }
        for (cpu, count) in cpus(header).zip(counts(rest)) {
            if let Some(total) = totals.get_mut(cpu) {
                *total = total.wrapping_add(count);
            }
        }
    }
    true
}

/// One line of the table: counts of an interrupt by CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptLine {
    /// Its number, or the architecture's abbreviation.
    pub irq: String,
    /// Rest of the line: controller, type and devices, or the meaning of the abbreviation.
    pub name: String,
    pub counts: Vec<(Cpu, u64)>,
}

/// All lines with counts by CPU; empty if the text has no header that names its columns.
pub fn named_counts(text: &str) -> Vec<InterruptLine> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default().as_bytes();
    let columns: Vec<Cpu> =
        cpus(header).filter(|&cpu| cpu < CPU_LIMIT as usize).map(|cpu| Cpu(cpu as u32)).collect();
    if columns.is_empty() || columns.len() != words(header).count() {
        return Vec::new();
    }
    let line = |line: &str| {
        let (label, rest) = line.split_once(':')?;
        let irq = label.trim();
        let counts: Vec<(Cpu, u64)> =
            columns.iter().copied().zip(counts(rest.as_bytes()).take(columns.len())).collect();
        let shared = matches!(irq, "ERR" | "MIS" | "Err") || counts.len() < columns.len();
        let name: Vec<&str> = rest.split_ascii_whitespace().skip(columns.len()).collect();
        (!shared).then(|| InterruptLine { irq: irq.to_owned(), name: name.join(" "), counts })
    };
    lines.filter_map(line).collect()
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

/// CPU number of each column.
fn cpus(header: &[u8]) -> impl Iterator<Item = usize> {
    words(header).map_while(|word| usize::try_from(number(word.strip_prefix(b"CPU")?)?).ok())
}

/// Counts of a line up to its description.
fn counts(rest: &[u8]) -> impl Iterator<Item = u64> {
    words(rest).map_while(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: Option<[u64; 4]>) {
        let mut totals = [7; 4];
        let understood = per_cpu_totals(text.as_bytes(), &mut totals);
        assert_eq!(understood.then_some(totals), expected, "{text}");
    }

    #[test]
    fn columns_belong_to_the_cpus_of_the_header() {
        check(
            "           CPU0       CPU2       \n 24:          1          5  IO-APIC   5-edge      ACPI:Ged\n\
             LOC:        100        200   Local timer interrupts\nERR:          9\nMIS:          9\n",
            Some([101, 0, 205, 0]),
        );
    }

    #[test]
    fn errors_are_no_cpus_on_one_cpu_either() {
        check(
            "           CPU0       \n  1:         10   GIC-0  27 Level     arch_timer\nErr:          3\n",
            Some([10, 0, 0, 0]),
        );
    }

    #[test]
    fn hostile_tables() {
        check("", None);
        check("CPU0 CPUx\n1: 5 6\n", None);
        check("CPU0 CPU99999\n1: 5 6 x\n", Some([5, 0, 0, 0]));
        check("CPU1\n1: 18446744073709551615\n2: 2\n", Some([0, 1, 0, 0]));
        check("CPU0\nno colon\n1:\n2: x\n", Some([0; 4]));
    }

    #[test]
    fn lines_have_their_names() {
        let text = "     CPU0   CPU2       \n 24:     1      5  IO-APIC   5-edge      ACPI:Ged\n\
                    LOC:        100        200   Local timer interrupts\nERR:          9\n";
        let line = |irq: &str, name: &str, counts: [u64; 2]| InterruptLine {
            irq: irq.into(),
            name: name.into(),
            counts: vec![(Cpu(0), counts[0]), (Cpu(2), counts[1])],
        };
        assert_eq!(
            named_counts(text),
            [
                line("24", "IO-APIC 5-edge ACPI:Ged", [1, 5]),
                line("LOC", "Local timer interrupts", [100, 200])
            ]
        );
        assert_eq!(named_counts("nothing\n1: 2\n"), []);
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "(CPU[0-9]{1,3} ?){0,3}\n([ A-Z0-9:]{0,20}\\PC?\n){0,6}") {
            per_cpu_totals(text.as_bytes(), &mut [0; 4]);
            named_counts(&text);
        }
    }
}
