//! Lists of threads and interrupts for one screen: the answer, a table, and what is not shown.

pub mod irqs;
pub mod threads;

use crate::folded::{FoldedColumn, write_columns};
use crate::map::{DEADLINE, STOP};
use crate::palette::{PLAIN, Palette};
use crate::words::{UNKNOWN, clean, wrapped};
use model::placement::{PlacedThread, ThreadOrigin, ThreadPolicy};
use model::units::CpuSet;

/// Space for a list, and its colours.
#[derive(Clone, Copy)]
pub struct ListLayout {
    pub columns: usize,
    /// Rows of the terminal; none if the list may have any length.
    pub rows: Option<usize>,
    pub color: bool,
}

/// Row of a table, with the number of entries in it.
struct ListRow {
    cells: Vec<String>,
    entries: usize,
}

/// Headings of a table, each with the least width of its column; 0 if it is never folded.
type Heads = [(&'static str, usize)];

/// Parts of a list.
struct List<'a> {
    answer: String,
    heads: &'a Heads,
    rows: Vec<ListRow>,
    /// Rows with alike entries joined, for a screen on which the others do not fit.
    joined: &'a dyn Fn() -> Vec<ListRow>,
    remarks: &'a [String],
}

/// List of as many rows as fit the screen. `foot` has the last line, for the number of entries that
/// are not shown, and true if alike entries are joined.
fn render(list: List, foot: impl Fn(usize, bool) -> String, layout: ListLayout) -> String {
    let page = |rows: &[ListRow], left: usize, joined: bool| {
        let mut page = String::new();
        wrapped(&mut page, &list.answer, layout.columns);
        table(&mut page, list.heads, rows, layout);
        list.remarks.iter().for_each(|line| wrapped(&mut page, &clean(line), layout.columns));
        match foot(left, joined) {
            line if line.is_empty() => {}
            line => wrapped(&mut page, &line, layout.columns),
        }
        page
    };
    let whole = page(&list.rows, 0, false);
    // The last row of the screen is the shell's.
    let fits = |page: &String| layout.rows.is_none_or(|rows| page.lines().count() < rows.max(10));
    if fits(&whole) {
        return whole;
    }
    let joined = (list.joined)();
    let most = joined.len().min(layout.rows.unwrap_or(usize::MAX));
    let shortened = |count: usize| {
        let left = joined[count..].iter().map(|row| row.entries).sum();
        page(&joined[..count], left, true)
    };
    (0..=most).rev().map(shortened).find(fits).unwrap_or(whole)
}

fn table(page: &mut String, heads: &Heads, rows: &[ListRow], layout: ListLayout) {
    if rows.is_empty() {
        return;
    }
    page.push('\n');
    let column = |(at, &(head, least)): (usize, &(&'static str, usize))| {
        let cells: Vec<String> = rows.iter().map(|row| clean(&row.cells[at])).collect();
        FoldedColumn { head, least: if least == 0 { usize::MAX } else { least }, cells }
    };
    let columns = heads.iter().enumerate().map(column).collect();
    write_columns(page, columns, layout.columns, &|_| PLAIN, Palette(layout.color));
    page.push('\n');
}

/// Position of a thread on the scale of the scheduler: stop threads, deadline threads, priorities
/// 99 to 1; 0 for all others.
pub fn rank(thread: &PlacedThread) -> u32 {
    let is_kernel = thread.kind == ThreadOrigin::Kernel;
    match thread.policy {
        ThreadPolicy::Other => 0,
        _ if is_kernel && !thread.movable && thread.comm.starts_with("migration/") => STOP,
        ThreadPolicy::Deadline => DEADLINE,
        ThreadPolicy::Fifo | ThreadPolicy::Rr => thread.priority,
    }
}

/// Policy and priority: `FIFO 50`.
fn policy(policy: ThreadPolicy, priority: u32) -> String {
    match policy {
        ThreadPolicy::Other => "other".to_owned(),
        ThreadPolicy::Deadline => "DEADLINE".to_owned(),
        ThreadPolicy::Fifo => format!("FIFO {priority}"),
        ThreadPolicy::Rr => format!("RR {priority}"),
    }
}

/// CPUs of several entries: those that all have, or those of which each has a part.
fn cpus<'a>(sets: impl Iterator<Item = &'a CpuSet> + Clone) -> String {
    let all = sets.clone().fold(CpuSet::default(), |all, set| all.or(set));
    let part = sets.into_iter().any(|set| set.len() < all.len());
    match (all.is_empty(), part) {
        (true, _) => UNKNOWN.to_owned(),
        (false, true) => format!("each in {all}"),
        (false, false) => all.to_string(),
    }
}

/// Entries in groups with the same key, in the order of their first.
fn grouped<'a, T, K: PartialEq>(entries: &[&'a T], key: impl Fn(&T) -> K) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<(K, Vec<&T>)> = Vec::new();
    for &entry in entries {
        let its = key(entry);
        match groups.iter_mut().find(|(known, _)| *known == its) {
            Some((_, group)) => group.push(entry),
            None => groups.push((its, vec![entry])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}
