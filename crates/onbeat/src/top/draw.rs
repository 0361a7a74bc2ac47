//! Screens of the state.

use model::text::{clean, several};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use super::columns::{TopColumn, fitted, short};
use super::histogram::bars;
use super::row::LiveRow;
use super::state::{TopScreen, TopState};

/// Lines above the list, the last of them the headings; and below.
const ABOVE: usize = 4;
const BELOW: usize = 1;

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const CURSOR: Style = Style::new().add_modifier(Modifier::REVERSED);
const WORST: Style = Style::new().fg(Color::Yellow);

const HELP: &[&str] = &[
    "Up Down PgUp PgDn Home End   move",
    "Enter    histogram of the row, as it grows; Enter again: back",
    "s        sort by the next of max, last, p99, mean, wake-ups, missed, name",
    "/ or f   filter by a part of the name or of the culprit; Esc: no filter",
    "Tab      list CPUs, threads, or both",
    "p        pause the screen; counting continues",
    "r        reset all counts",
    "S        save the counts since the reset",
    "q Ctrl-C quit",
    "",
    "last     largest latency of the last second",
    "max      largest latency since the reset; T and W are its parts",
    "T        lateness of the timer; W wait for the CPU; blank where unknown",
    "min mean p99   of T + W if most wake-ups have a timer, else of W",
    "minute   largest of each second: below 5 us the lowest sign, then from",
    "         5, 20, 50, 100, 500 us, 2 ms, and from 10 ms the highest",
    "culprit  cause of max, if one is proven",
    "A thread without latencies is beyond the 64 that have histograms.",
];

/// Draws the state; also fits its place in the list to the screen.
pub fn draw(state: &mut TopState, screen: &mut Buffer) {
    screen.reset();
    let Rect { width, height, .. } = screen.area;
    if width < 20 || height < 6 {
        put(screen, 0, "too small", BOLD);
        return;
    }
    head(state, screen);
    match state.screen {
        TopScreen::List => list(state, screen),
        TopScreen::Histogram(key) => {
            let lines = match state.row(key) {
                Some(row) => bars(row, usize::from(width), usize::from(height) - ABOVE),
                None => vec!["this thread has ended".to_owned()],
            };
            lines_below(screen, lines.iter().map(String::as_str));
        }
        TopScreen::Help => lines_below(screen, HELP.iter().copied()),
    }
    put(screen, height - 1, &foot(state), if state.message.is_empty() { DIM } else { BOLD });
}

/// The three lines on all screens: source, worst, cost.
fn head(state: &TopState, screen: &mut Buffer) {
    let (cpus, threads) = state.counts();
    let time = |seconds: i64| format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut first = format!(
        "onbeat top  {}  {}  {}, {}",
        state.title,
        time(state.counted.0 / model::units::Nanos::SECOND.0),
        several(cpus as u64, "CPU", "CPUs"),
        several(threads as u64, "thread", "threads")
    );
    if state.is_paused() {
        first = format!("PAUSED  {first}");
    }
    put(screen, 0, &first, BOLD);
    let worst = match state.worst() {
        None => "worst: no late wake-up yet".to_owned(),
        Some(row) => worst_line(row),
    };
    let lost = match state.lost {
        0 => String::new(),
        lost => format!("  LOST {lost}"),
    };
    put(screen, 1, &format!("{worst}{lost}"), WORST);
    put(screen, 2, &cost_line(state), DIM);
}

fn worst_line(row: &LiveRow) -> String {
    let (name, max) = (clean(&row.name), row.max().map(short).unwrap_or_default());
    // Threads of onbeat's own have no parts and no culprits.
    let has_parts = row.worst_timer().or(row.worst_wait()).is_some();
    let by = match row.culprit() {
        "" if has_parts => ", culprit unknown".to_owned(),
        "" => String::new(),
        culprit => format!(", by {}", clean(culprit)),
    };
    let victim = row.worst.as_ref().map(|worst| worst.victim.comm.as_str()).filter(|comm| !comm.is_empty());
    let whose = match victim {
        Some(comm) if !name.starts_with(comm) => format!("{name}, {}", clean(comm)),
        _ => name,
    };
    format!("worst {max} ({whose}){by}")
}

fn cost_line(state: &TopState) -> String {
    let cost = &state.cost;
    let share = cost.cpu.map_or_else(|| "?".to_owned(), |share| format!("{:.1}", share * 100.0));
    let wakeups = cost.wakeups.map_or_else(|| "?".to_owned(), |wakeups| format!("{wakeups:.1}"));
    let mib = |bytes: f64| format!("{:.1} MiB", bytes / f64::from(1 << 20));
    let resident = cost.resident_kib.map_or_else(|| "?".to_owned(), |kib| mib(kib as f64 * 1024.0));
    let kernel = match cost.kernel_bytes {
        0 => String::new(),
        bytes => format!(", kernel {}", mib(bytes as f64)),
    };
    format!("own cost {share} % of a CPU, {wakeups} wake-ups/s, {resident}{kernel}")
}

fn foot(state: &TopState) -> String {
    if state.typing {
        return format!("filter: {}_", state.filter);
    }
    if !state.message.is_empty() {
        return state.message.clone();
    }
    let filter = match state.filter.as_str() {
        "" => String::new(),
        filter => format!("  filter {filter:?}"),
    };
    match state.screen {
        TopScreen::List => {
            format!(
                "q quit  s sort: {}  / filter  p pause  r reset  Enter  S save  ? help{filter}",
                state.sort.name()
            )
        }
        TopScreen::Histogram(_) | TopScreen::Help => "Enter back  p pause  r reset  q quit".into(),
    }
}

fn list(state: &mut TopState, screen: &mut Buffer) {
    let (width, height) = (usize::from(screen.area.width), usize::from(screen.area.height));
    let page = height - ABOVE - BELOW;
    let count = state.listed_rows().len();
    state.fit(count, page);
    let rows = state.listed_rows();
    let has_missed = rows.iter().any(|row| row.missed.is_some());
    let columns = fitted(width, has_missed);
    let mut x = 1;
    for (column, width) in &columns {
        let title = column.title();
        let pad = if column.is_text() { 0 } else { width.saturating_sub(title.len()) };
        screen.set_stringn((x + pad) as u16, ABOVE as u16 - 1, title, width - pad, BOLD);
        x += width + 1;
    }
    if rows.is_empty() {
        let why = if state.filter.is_empty() { "no wake-up yet" } else { "nothing matches the filter" };
        put(screen, ABOVE as u16, why, PLAIN);
    }
    for (nth, row) in rows.iter().enumerate().skip(state.top).take(page) {
        let y = (ABOVE + nth - state.top) as u16;
        let style = if nth == state.cursor { CURSOR } else { PLAIN };
        if nth == state.cursor {
            put(screen, y, &" ".repeat(width), style);
            screen.set_stringn(0, y, ">", 1, style);
        }
        draw_row(screen, y, row, &columns, style);
    }
    let below = rows.len().saturating_sub(state.top + page);
    if below > 0 {
        let more = format!(" {below} more ");
        let at = width.saturating_sub(more.len());
        screen.set_stringn(at as u16, ABOVE as u16 - 1, &more, more.len(), DIM);
    }
}

fn draw_row(screen: &mut Buffer, y: u16, row: &LiveRow, columns: &[(TopColumn, usize)], style: Style) {
    let mut x = 1;
    for &(column, width) in columns {
        let text = column.text(row, width);
        if column.is_text() {
            screen.set_stringn(x as u16, y, clean(&text), width, style);
        } else {
            // A sign may use the blank before the column.
            let at = (x + width).saturating_sub(text.len()).max(x - 1);
            screen.set_stringn(at as u16, y, &text, x + width - at, style);
        }
        x += width + 1;
    }
}

fn lines_below<'a>(screen: &mut Buffer, lines: impl Iterator<Item = &'a str>) {
    let last = screen.area.height - BELOW as u16;
    for (y, line) in (ABOVE as u16 - 1..last).zip(lines) {
        put(screen, y, line, PLAIN);
    }
}

fn put(screen: &mut Buffer, y: u16, text: &str, style: Style) {
    let width = usize::from(screen.area.width);
    screen.set_stringn(0, y, clean(text), width, style);
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{second, thread};
    use super::super::keys::PressedKey;
    use super::super::state::TopCost;
    use super::*;
    use proptest::prelude::*;

    fn shown(state: &mut TopState, width: u16, height: u16) -> Vec<String> {
        let mut screen = Buffer::empty(Rect::new(0, 0, width, height));
        draw(state, &mut screen);
        let line =
            |y: u16| (0..width).map(|x| screen[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    fn state() -> TopState {
        let mut state = TopState::new("BPF".into());
        state.take(second(vec![thread(7, "control", 40), thread(8, "camera-with-name", 12_345)]));
        state.take(second(vec![thread(7, "control", 60), thread(8, "camera-with-name", 3)]));
        state.cost = TopCost {
            cpu: Some(0.0042),
            wakeups: Some(1.0),
            resident_kib: Some(5_222),
            kernel_bytes: 2 << 20,
        };
        state
    }

    #[test]
    fn the_list_at_60_columns() {
        let expected = "\
onbeat top  BPF  0:00:02  1 CPU, 2 threads
worst 12.3ms (camera-with-name:8), by hog12345
own cost 0.4 % of a CPU, 1.0 wake-ups/s, 5.1 MiB, kernel 2.0
 cpu, thread       last    p99    max wake/s culprit
>CPU 0           60.0us 12.3ms 12.3ms    1.0 hog12345
 camera-with-nam 3.00us 12.3ms 12.3ms    1.0 hog12345
 control:7       60.0us 60.0us 60.0us    1.0 hog60


q quit  s sort: max  / filter  p pause  r reset  Enter  S sa";
        assert_eq!(shown(&mut state(), 60, 10).join("\n"), expected);
    }

    #[test]
    fn the_list_at_80_columns() {
        let expected = "\
onbeat top  BPF  0:00:02  1 CPU, 2 threads
worst 12.3ms (camera-with-name:8), by hog12345
own cost 0.4 % of a CPU, 1.0 wake-ups/s, 5.1 MiB, kernel 2.0 MiB
 cpu, thread       last   mean    p99    max wake/s minute     culprit
>CPU 0           60.0us 6.20ms 12.3ms 12.3ms    1.0          █ hog12345
 camera-with-nam 3.00us 6.17ms 12.3ms 12.3ms    1.0          █ hog12345
 control:7       60.0us 50.0us 60.0us 60.0us    1.0          ▄ hog60


q quit  s sort: max  / filter  p pause  r reset  Enter  S save  ? help";
        assert_eq!(shown(&mut state(), 80, 10).join("\n"), expected);
    }

    #[test]
    fn the_list_at_120_columns() {
        let lines = shown(&mut state(), 120, 10);
        let expected = "\
\x20cpu, thread     pri cpu   last    min   mean    p99    max      T      W wake/s minute     culprit
>CPU 0                   60.0us 60.0us 6.20ms 12.3ms 12.3ms 9.88ms 2.47ms    1.0          █ hog12345
 camera-with-nam  50   0 3.00us 3.00us 6.17ms 12.3ms 12.3ms 9.88ms 2.47ms    1.0          █ hog12345
 control:7        50   0 60.0us 40.0us 50.0us 60.0us 60.0us 48.0us 12.0us    1.0          ▄ hog60";
        assert_eq!(lines[3..7].join("\n"), expected);
    }

    #[test]
    fn other_screens_have_their_lines_and_the_way_back() {
        let mut state = state();
        state.press(PressedKey::Char('?'));
        let help = shown(&mut state, 80, 24);
        assert!(help.join("\n").contains("S        save") && help[23].starts_with("Enter back"), "{help:?}");
        state.press(PressedKey::Escape);
        state.press(PressedKey::Enter);
        let histogram = shown(&mut state, 80, 24).join("\n");
        assert!(histogram.contains("CPU 0") && histogram.contains("10ms"), "{histogram}");
    }

    #[test]
    fn more_rows_than_lines_are_counted() {
        let mut state = TopState::new("BPF".into());
        state.take(second((0..1_000).map(|tid| thread(tid, "t", 5)).collect()));
        let lines = shown(&mut state, 80, 24);
        assert!(lines[3].ends_with("982 more"), "{}", lines[3]);
        state.press(PressedKey::End);
        assert!(shown(&mut state, 80, 24)[22].starts_with(">t:999"));
    }

    proptest! {
        #[test]
        fn any_size_and_any_name_are_drawn(
            width in 1u16..320, height in 1u16..100, name: String, us in -5i64..1 << 40,
        ) {
            let mut state = TopState::new("BPF".into());
            state.take(second(vec![thread(7, &name, us)]));
            let lines = shown(&mut state, width, height);
            prop_assert_eq!(lines.len(), usize::from(height));
        }
    }
}
