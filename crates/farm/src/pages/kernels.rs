//! Kinds of machines and kernels: what each was seen to do, and what may be compared.

use maud::{Markup, html};
use report::html::cards;
use report::words::{span, us_or_dash};

use super::parts::{as_data, escaped, known};
use super::{Section, page};
use crate::records::KernelRecord;
use crate::sides::FarmSide;

/// The page; the records come by machine, series and kernel.
pub fn kernels(all: &[KernelRecord]) -> String {
    let mut groups: Vec<&[KernelRecord]> =
        all.chunk_by(|a, b| (&a.model, &a.series) == (&b.model, &b.series)).collect();
    // What can be compared comes first.
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let body = html! {
        (lead(all))
        @for (at, group) in groups.iter().enumerate() {
            (machine(group))
            @if at == 0 { p.muted { "p99.99 is that of the median run." } }
        }
        p.muted { "Runs that are over and count. A largest latency grows with the hours it is of; boards of \
         one machine may differ. A verdict takes runs of the same board, made in turns, or many days: "
         a href="/compare" { "compare" } "." }
        (as_data("/v1/kernels", ""))
    };
    page(Some(Section::Kernels), "Kernels", body)
}

fn lead(all: &[KernelRecord]) -> Markup {
    let Some(worst) = all.iter().filter(|one| one.max_ns.is_some()).max_by_key(|one| one.max_ns) else {
        return html! { p.lead { "No run that counts is here yet." } };
    };
    html! {
        p.lead { "The largest latency of all: "
            a href={ "/runs/" (escaped(&worst.worst_run)) } { (worst.max_ns.map(span).unwrap_or_default()) }
            " with " (known(&worst.release)) " on " a href={ "/b/" (escaped(&worst.worst_board)) } {
            (worst.worst_board) } "." }
    }
}

fn machine(group: &[KernelRecord]) -> Markup {
    let Some(first) = group.first() else { return html! {} };
    html! {
        h2 { (known(&first.model)) ", " (first.series) }
        (cards(&format!("Kernels of {}, {}", known(&first.model), first.series), html! {
            table {
                thead { tr { th.left { "kernel" } th.left.more { "preemption" } th { "boards" }
                    th.more { "runs" } th.more { "hours" } th { "p99.99, us" } th { "max, us" }
                    th.left { "compare" } } }
                tbody { @for (at, one) in group.iter().enumerate() { tr {
                    th.left { (known(&one.release)) } td.left.more { (known(&one.preempt)) }
                    td data-of="boards" { (one.boards) } td.more { (one.runs) }
                    td.more { (format!("{:.1}", one.length_ns as f64 / 3.6e12)) }
                    td data-of="p99.99, us" { (us_or_dash(one.median_p9999())) }
                    td.top data-of="max, us" { a href={ "/runs/" (escaped(&one.worst_run)) } {
                        (us_or_dash(one.max_ns)) } }
                    td.left { @if let Some(before) = at.checked_sub(1).and_then(|at| group.get(at)) {
                        a href=(comparison(before, one)) { "with " (known(&before.release)) }
                        @if before.release != one.release { ", " a href=(of_days(before, one)) {
                            "by days" } } } }
                } } }
            }
        }))
    }
}

fn comparison(a: &KernelRecord, b: &KernelRecord) -> String {
    let side = |name: &str, of: &KernelRecord| {
        of.latest.iter().map(|id| format!("{name}={}", escaped(id))).collect::<Vec<_>>().join("&")
    };
    format!("/compare?{}&{}", side("a", a), side("b", b))
}

/// The days of all boards of that machine with one kernel against those with the other.
fn of_days(a: &KernelRecord, b: &KernelRecord) -> String {
    let side = |of: &KernelRecord| FarmSide {
        machine: of.model.clone(),
        kernel: of.release.clone(),
        ..FarmSide::default()
    };
    let series = escaped(&a.series);
    format!("/compare?{}&{}&series={series}", side(a).query("a"), side(b).query("b"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

    #[test]
    fn kernels_of_a_machine_stand_together_and_lead_to_a_comparison() {
        let of = |model: &str, release: &str, max| KernelRecord {
            model: model.into(),
            release: release.into(),
            worst_run: "w".into(),
            max_ns: Some(Nanos(max)),
            p9999_ns: vec![Nanos(3_000), Nanos(1_000), Nanos(2_000)],
            latest: vec![format!("{release}-run")],
            ..KernelRecord::default()
        };
        let all = [of("<b>", "6.1", 5_000), of("x", "6.1", 9_000), of("x", "6.12", 7_000)];
        let text = kernels(&all);
        assert!(!text.contains("<b>") && text.contains("/compare?a=6.1-run&amp;b=6.12-run"));
        assert!(text.contains("a_machine=x&amp;a_kernel=6.1&amp;b_machine=x&amp;b_kernel=6.12&amp;series="));
        assert!(text.contains("2.0") && text.find("<h2>x").unwrap() < text.find("<h2>&lt;b").unwrap());
        assert_eq!(text.matches("of the median run").count(), 1);
        assert!(kernels(&[]).contains("No run that counts"));
    }
}
