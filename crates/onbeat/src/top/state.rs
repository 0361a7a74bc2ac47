//! State of the view: the rows, their order, and the place in them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::rows::RowSums;
use model::sort::CompactSort;
use model::units::Nanos;

use super::keys::PressedKey;
use super::row::LiveRow;
use super::{RowKey, TopTick};

/// Seconds for which an ended thread is shown.
const ENDED: u32 = 60;

/// Maximum length of a filter.
const FILTER: usize = 40;

/// Order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    Max,
    Last,
    P99,
    Mean,
    Rate,
    Missed,
    Name,
}

impl SortBy {
    const ALL: [SortBy; 7] =
        [SortBy::Max, SortBy::Last, SortBy::P99, SortBy::Mean, SortBy::Rate, SortBy::Missed, SortBy::Name];

    pub fn name(self) -> &'static str {
        ["max", "last", "p99", "mean", "wake-ups", "missed", "name"][self as usize]
    }

    fn next(self) -> SortBy {
        SortBy::ALL[(self as usize + 1) % SortBy::ALL.len()]
    }
}

/// Rows that are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedRows {
    All,
    Cpus,
    Threads,
}

/// Screen that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopScreen {
    List,
    Histogram(RowKey),
    Help,
}

/// Action outside the state that a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopAction {
    Quit,
    Save,
    /// The sums are empty again.
    Reset,
}

/// Cost of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TopCost {
    /// Share of one CPU.
    pub cpu: Option<f64>,
    pub wakeups: Option<f64>,
    pub resident_kib: Option<u64>,
    /// Kernel memory of the counters.
    pub kernel_bytes: usize,
}

/// State of the view.
#[derive(Clone, Debug)]
pub struct TopState {
    /// Source of the counts, for the first line.
    pub title: String,
    rows: BTreeMap<RowKey, LiveRow>,
    /// Rows as they were when the view was paused.
    frozen: Option<BTreeMap<RowKey, LiveRow>>,
    pub sort: SortBy,
    pub listed: ListedRows,
    pub filter: String,
    /// True while the filter is typed.
    pub typing: bool,
    pub screen: TopScreen,
    pub cursor: usize,
    pub top: usize,
    /// Rows that fit.
    page: usize,
    pub message: String,
    /// Lines about saved counts, to be printed at the end: the last line of a screen is short.
    pub saved: Vec<String>,
    /// Seconds since the start.
    pub seconds: usize,
    /// Time since the last reset.
    pub counted: Nanos,
    pub lost: u64,
    pub cost: TopCost,
    scratch: RowSums,
}

impl TopState {
    pub fn new(title: String) -> TopState {
        TopState {
            title,
            rows: BTreeMap::new(),
            frozen: None,
            sort: SortBy::Max,
            listed: ListedRows::All,
            filter: String::new(),
            typing: false,
            screen: TopScreen::List,
            cursor: 0,
            top: 0,
            page: 1,
            message: String::new(),
            saved: Vec::new(),
            seconds: 0,
            counted: Nanos(0),
            lost: 0,
            cost: TopCost::default(),
            scratch: RowSums::default(),
        }
    }

    /// Adds the results of a second.
    pub fn take(&mut self, tick: TopTick) {
        self.seconds += 1;
        self.counted = self.counted + tick.span;
        self.lost += tick.lost;
        self.rows.values_mut().for_each(|row| row.begin(self.seconds));
        for row_tick in tick.rows {
            let key = row_tick.key;
            let row = self.rows.entry(key).or_insert_with(|| {
                let mut row = LiveRow::new(key);
                row.begin(self.seconds);
                row
            });
            row.add(row_tick, tick.span, &mut self.scratch);
        }
        for tid in tick.ended {
            if let Some(row) = self.rows.get_mut(&RowKey::Thread(tid)) {
                row.ended_for.get_or_insert(0);
            }
        }
        self.rows.retain(|_, row| row.ended_for.is_none_or(|seconds| seconds < ENDED));
    }

    /// Largest latency of a row so far.
    pub fn max_of(&self, key: RowKey) -> Option<Nanos> {
        self.rows.get(&key).and_then(LiveRow::max)
    }

    /// True if a row has a name.
    pub fn knows(&self, key: RowKey) -> bool {
        self.rows.get(&key).is_some_and(|row| row.ended_for.is_none())
    }

    /// All rows as they are counted.
    pub fn counted_rows(&self) -> impl Iterator<Item = &LiveRow> {
        self.rows.values()
    }

    /// The row of a key, as it is shown.
    pub fn row(&self, key: RowKey) -> Option<&LiveRow> {
        self.shown().get(&key)
    }

    pub fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    fn shown(&self) -> &BTreeMap<RowKey, LiveRow> {
        self.frozen.as_ref().unwrap_or(&self.rows)
    }

    /// Rows in their order: CPUs before threads.
    pub fn listed_rows(&self) -> Vec<&LiveRow> {
        let wanted = self.filter.to_lowercase();
        let is_listed = |row: &&LiveRow| {
            let kind = match self.listed {
                ListedRows::All => true,
                ListedRows::Cpus => matches!(row.key, RowKey::Cpu(_)),
                ListedRows::Threads => matches!(row.key, RowKey::Thread(_)),
            };
            let has = |text: &str| text.to_lowercase().contains(&wanted);
            kind && (wanted.is_empty() || has(&row.name) || has(row.culprit()))
        };
        let mut rows: Vec<&LiveRow> = self.shown().values().filter(is_listed).collect();
        let span = |span: Option<Nanos>| Reverse(span.map_or(i64::MIN, |span| span.0));
        let is_thread = |row: &LiveRow| matches!(row.key, RowKey::Thread(_));
        // Each value once: a quantile reads its histogram.
        match self.sort {
            SortBy::Name => rows.compact_sort_by_key(|row| (is_thread(row), thread_name(row), row.key)),
            by => {
                let mut keyed: Vec<_> = rows
                    .into_iter()
                    .map(|row| {
                        let value = match by {
                            SortBy::Last => span(row.last),
                            SortBy::P99 => span(row.main().quantile(990_000)),
                            SortBy::Mean => span(row.main().mean()),
                            SortBy::Rate => Reverse(row.rate.map_or(-1, |rate| (rate * 10.0) as i64)),
                            SortBy::Missed => Reverse(row.missed.map_or(-1, |missed| missed as i64)),
                            SortBy::Max | SortBy::Name => span(row.max()),
                        };
                        ((is_thread(row), value, row.key), row)
                    })
                    .collect();
                keyed.compact_sort_by_key(|(key, _)| *key);
                rows = keyed.into_iter().map(|(_, row)| row).collect();
            }
        }
        rows
    }

    /// Numbers of CPUs and threads.
    pub fn counts(&self) -> (usize, usize) {
        let rows = self.shown();
        let cpus = rows.keys().filter(|key| matches!(key, RowKey::Cpu(_))).count();
        (cpus, rows.len() - cpus)
    }

    /// Row with the largest latency of all.
    pub fn worst(&self) -> Option<&LiveRow> {
        let threads = self.shown().values().filter(|row| row.worst.is_some());
        threads.max_by_key(|row| (row.max(), matches!(row.key, RowKey::Thread(_))))
    }

    /// Fits the place in the list to the number of rows and of lines.
    pub fn fit(&mut self, rows: usize, page: usize) {
        self.page = page.max(1);
        self.cursor = self.cursor.min(rows.saturating_sub(1));
        self.top = self.top.min(rows.saturating_sub(self.page));
        self.top = self.top.clamp((self.cursor + 1).saturating_sub(self.page), self.cursor);
    }

    /// Follows a key.
    pub fn press(&mut self, key: PressedKey) -> Option<TopAction> {
        self.message.clear();
        if key == PressedKey::Interrupt {
            return Some(TopAction::Quit);
        }
        if self.typing {
            self.type_filter(key);
            return None;
        }
        match (key, self.screen) {
            (PressedKey::Char('q'), _) => return Some(TopAction::Quit),
            (PressedKey::Char('S'), _) => return Some(TopAction::Save),
            (PressedKey::Char('p' | ' '), _) => {
                self.frozen = if self.is_paused() { None } else { Some(self.rows.clone()) };
            }
            (PressedKey::Char('r'), _) => {
                self.reset();
                return Some(TopAction::Reset);
            }
            (PressedKey::Char('?' | 'h'), TopScreen::Help) => self.screen = TopScreen::List,
            (PressedKey::Char('?' | 'h'), _) => self.screen = TopScreen::Help,
            (
                PressedKey::Escape | PressedKey::Enter | PressedKey::Backspace,
                TopScreen::Histogram(_) | TopScreen::Help,
            ) => {
                self.screen = TopScreen::List;
            }
            (_, TopScreen::List) => self.press_in_list(key),
            _ => {}
        }
        None
    }

    fn press_in_list(&mut self, key: PressedKey) {
        let page = self.page.max(1);
        match key {
            PressedKey::Up | PressedKey::Char('k') => self.cursor = self.cursor.saturating_sub(1),
            PressedKey::Down | PressedKey::Char('j') => self.cursor += 1,
            PressedKey::PageUp => self.cursor = self.cursor.saturating_sub(page),
            PressedKey::PageDown => self.cursor += page,
            PressedKey::Home | PressedKey::Char('g') => self.cursor = 0,
            PressedKey::End | PressedKey::Char('G') => self.cursor = usize::MAX / 2,
            PressedKey::Char('s') => self.sort = self.sort.next(),
            PressedKey::Tab => {
                self.listed = match self.listed {
                    ListedRows::All => ListedRows::Cpus,
                    ListedRows::Cpus => ListedRows::Threads,
                    ListedRows::Threads => ListedRows::All,
                };
            }
            PressedKey::Char('/' | 'f') => self.typing = true,
            PressedKey::Escape => self.filter.clear(),
            PressedKey::Enter => {
                let key = self.listed_rows().get(self.cursor).map(|row| row.key);
                self.screen = key.map_or(TopScreen::List, TopScreen::Histogram);
            }
            _ => {}
        }
    }

    fn type_filter(&mut self, key: PressedKey) {
        match key {
            PressedKey::Char(letter) if self.filter.chars().count() < FILTER => self.filter.push(letter),
            PressedKey::Backspace => drop(self.filter.pop()),
            PressedKey::Enter => self.typing = false,
            PressedKey::Escape => {
                self.filter.clear();
                self.typing = false;
            }
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.rows.values_mut().for_each(LiveRow::reset);
        self.rows.retain(|_, row| row.ended_for.is_none());
        (self.counted, self.lost, self.frozen) = (Nanos(0), 0, None);
        self.message = "counts reset".into();
    }
}

/// Name by which threads are ordered; CPUs have their number.
fn thread_name(row: &LiveRow) -> &str {
    match row.key {
        RowKey::Cpu(_) => "",
        RowKey::Thread(_) => &row.name,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{second, thread};
    use super::*;

    fn names(state: &TopState) -> Vec<&str> {
        state.listed_rows().iter().map(|row| row.name.as_str()).collect()
    }

    fn state() -> TopState {
        let mut state = TopState::new("test".into());
        state.take(second(vec![thread(7, "control", 40), thread(8, "camera", 900), thread(9, "audio", 5)]));
        state
    }

    #[test]
    fn rows_are_sorted_and_filtered() {
        let mut state = state();
        assert_eq!(names(&state), ["CPU 0", "camera:8", "control:7", "audio:9"]);
        while state.sort != SortBy::Name {
            state.press(PressedKey::Char('s'));
        }
        assert_eq!(names(&state), ["CPU 0", "audio:9", "camera:8", "control:7"]);
        for key in [
            PressedKey::Char('/'),
            PressedKey::Char('C'),
            PressedKey::Char('o'),
            PressedKey::Char('q'),
            PressedKey::Backspace,
            PressedKey::Enter,
        ] {
            assert_eq!(state.press(key), None, "a letter of a filter is no command");
        }
        assert_eq!(names(&state), ["control:7"]);
        state.press(PressedKey::Escape);
        state.press(PressedKey::Tab);
        assert_eq!(names(&state), ["CPU 0"]);
    }

    #[test]
    fn a_paused_view_stands_still_and_goes_on_counting() {
        let mut state = state();
        state.press(PressedKey::Char('p'));
        state.take(second(vec![thread(7, "control", 5_000)]));
        let shown = |state: &TopState| state.row(RowKey::Thread(7)).and_then(LiveRow::max);
        assert_eq!(shown(&state), Some(Nanos(40_000)));
        state.press(PressedKey::Char('p'));
        assert_eq!(shown(&state), Some(Nanos(5_000_000)));
        state.press(PressedKey::Char('r'));
        assert_eq!((shown(&state), state.counted), (None, Nanos(0)));
    }

    #[test]
    fn the_cursor_stays_in_the_list_and_on_the_screen() {
        let mut state = state();
        state.fit(100, 10);
        state.press(PressedKey::End);
        state.fit(100, 10);
        assert_eq!((state.cursor, state.top), (99, 90));
        state.press(PressedKey::PageUp);
        state.press(PressedKey::Up);
        state.fit(100, 10);
        assert_eq!((state.cursor, state.top), (88, 88));
        state.fit(3, 10);
        assert_eq!((state.cursor, state.top), (2, 0));
        state.fit(0, 10);
        assert_eq!((state.cursor, state.top), (0, 0));
    }

    #[test]
    fn an_ended_thread_is_forgotten_after_a_minute() {
        let mut state = state();
        state.take(TopTick { ended: vec![7], ..second(vec![]) });
        assert!(state.row(RowKey::Thread(7)).is_some() && !state.knows(RowKey::Thread(7)));
        (0..60).for_each(|_| state.take(second(vec![])));
        assert!(state.row(RowKey::Thread(7)).is_none() && state.row(RowKey::Thread(8)).is_some());
    }

    #[test]
    fn quit_save_and_the_histogram_have_keys() {
        let mut state = state();
        assert_eq!(state.press(PressedKey::Interrupt), Some(TopAction::Quit));
        assert_eq!(state.press(PressedKey::Char('S')), Some(TopAction::Save));
        state.press(PressedKey::Down);
        state.press(PressedKey::Enter);
        assert_eq!(state.screen, TopScreen::Histogram(RowKey::Thread(8)));
        state.press(PressedKey::Escape);
        assert_eq!(state.screen, TopScreen::List);
        assert_eq!(state.press(PressedKey::Char('q')), Some(TopAction::Quit));
    }
}
