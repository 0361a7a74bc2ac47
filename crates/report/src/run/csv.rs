//! Histograms as a table: the conditions as comments, a row per range of latency, a column per CPU
//! and their sum.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{conditions, sentences};
use crate::words;
use model::histogram::Bucket;
use model::run::{CpuRun, Run};
use model::units::Nanos;

/// Histograms of a run.
pub fn csv(run: &Run) -> String {
    let mut text = String::new();
    comments(run, &mut text);
    text.push_str("lower_ns,upper_ns");
    for cpu in &run.cpus {
        let _ = write!(text, ",{}", column_name(cpu));
    }
    text.push_str(",sum\n");
    let mut rows: BTreeMap<(Nanos, Nanos), BTreeMap<usize, u64>> = BTreeMap::new();
    for (column, cpu) in run.cpus.iter().enumerate() {
        for &Bucket { lower, upper, count: n } in &cpu.histogram {
            rows.entry((lower, upper)).or_default().insert(column, n);
        }
    }
    for ((lower, upper), counts) in rows {
        let _ = write!(text, "{},{}", lower.0, upper.0);
        let mut sum = 0u64;
        for column in 0..run.cpus.len() {
            let n = counts.get(&column).copied().unwrap_or(0);
            sum = sum.saturating_add(n);
            let _ = write!(text, ",{n}");
        }
        let _ = writeln!(text, ",{sum}");
    }
    text
}

fn comments(run: &Run, text: &mut String) {
    let _ = writeln!(
        text,
        "# onbeat {}, run {}",
        no_formula(&words::clean(&run.version)),
        no_formula(&words::clean(&run.id))
    );
    if let Some(sentence) = sentences::incomplete(run) {
        let _ = writeln!(text, "# {sentence}");
    }
    for (name, value) in conditions::conditions(run) {
        let _ = writeln!(text, "# {name}: {}", no_formula(&value));
    }
    for entry in &run.integrity {
        let what = if entry.invalidates { "INVALID" } else { "note" };
        let _ = writeln!(text, "# {what}: {}", no_formula(&sentences::integrity(entry)));
    }
    for note in sentences::oddities(run) {
        let _ = writeln!(text, "# {note}");
    }
    for cpu in &run.cpus {
        let ns = |value: Option<Nanos>| words::or_dash(value.map(|ns| ns.0));
        let (min, mean, max) = (ns(cpu.min_ns), ns(cpu.mean_ns), ns(cpu.max_ns));
        let missed = words::or_dash(cpu.missed);
        let _ = writeln!(
            text,
            "# {}: cycles {}, missed {missed}, min_ns {min}, mean_ns {mean}, max_ns {max}",
            column_name(cpu),
            words::or_dash(cpu.cycles)
        );
    }
}

/// Thread in one word: `cpu2`, `thread0`, `cpu2_irq`.
fn column_name(cpu: &CpuRun) -> String {
    cpu.name().to_ascii_lowercase().replacen(' ', "", 1).replace(' ', "_")
}

/// Comment without formulas. A spreadsheet splits comments at separators like any line, and takes a
/// cell that begins with one of these signs for a formula (OWASP, "CSV Injection"): an apostrophe
/// before it keeps it text.
pub fn no_formula(comment: &str) -> String {
    let (mut safe, mut begins) = (String::with_capacity(comment.len()), false);
    for c in comment.chars() {
        if begins && matches!(c, '=' | '+' | '-' | '@') {
            safe.push('\'');
        }
        begins = matches!(c, ',' | ';') || begins && matches!(c, ' ' | '"' | '\'');
        safe.push(c);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// Sum of each column, by its name.
    fn columns(text: &str) -> Vec<(String, u64)> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let mut sums = vec![0u64; names.len()];
        for line in lines {
            let fields: Vec<i64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            assert_eq!(fields.len(), names.len());
            for (sum, field) in sums.iter_mut().zip(&fields).skip(2) {
                *sum += *field as u64;
            }
        }
        names.into_iter().map(String::from).zip(sums).skip(2).collect()
    }

    #[test]
    fn columns_add_up_to_the_cycles() {
        for sample in [fixture::quiet(), fixture::early(), fixture::many(), fixture::empty()] {
            let columns = columns(&csv(&sample.run));
            for (cpu, (name, sum)) in sample.run.cpus.iter().zip(&columns) {
                assert_eq!((name.as_str(), Some(*sum)), (column_name(cpu).as_str(), cpu.cycles));
            }
            let (name, sum) = columns.last().unwrap();
            assert_eq!((name.as_str(), Some(*sum)), ("sum", sample.run.samples()));
        }
    }

    #[test]
    fn no_cell_of_a_comment_is_a_formula() {
        for (text, safe) in [
            ("isolcpus=2,3 a=-1", "isolcpus=2,3 a=-1"),
            ("a,=1+1", "a,'=1+1"),
            ("a; \"@SUM(1)\"", "a; \"'@SUM(1)\""),
            ("x,+1,-2", "x,'+1,'-2"),
        ] {
            assert_eq!(no_formula(text), safe);
        }
        let mut run = fixture::quiet().run;
        run.host.cmdline = "quiet,=cmd|' /C calc'!A0".into();
        run.host.release = "6.1;@x".into();
        let text = csv(&run);
        assert!(!text.contains(",=") && !text.contains(";@"), "{text}");
    }

    #[test]
    fn external_text_cannot_break_out_of_a_comment() {
        let text = csv(&fixture::hostile().run);
        let outside = text.lines().filter(|line| !line.starts_with("# "));
        assert!(
            outside.skip(1).all(|line| line.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'-'))
        );
    }
}
