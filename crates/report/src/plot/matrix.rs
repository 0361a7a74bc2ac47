//! Largest latency of each CPU over time as a matrix: a row per CPU, time to the right, the latency
//! as colour in fixed steps. A bad core among many is a row, a bad moment a column.

use maud::{Markup, html};

use super::axis::Scale;
use super::history::History;
use super::max_over_time::TimeAxis;
use super::svg;
use super::svg::{PathData, Picture, Plot, Px, Size, text};
use super::theme::{HEATS, Theme};
use crate::words::{several, span};
use model::units::{Cpu, Nanos};

/// Least number of CPUs for a matrix: lines of fewer can be distinguished.
const LEAST: usize = 8;
/// Limit of cells in a row: more could not be distinguished, and would enlarge the page.
const ACROSS: [usize; 2] = [400, 150];
/// Lower bound of each shade, in us: the same in every report, so that two can be compared.
const FROM_US: [i64; HEATS - 1] = [10, 30, 100, 300, 1_000, 3_000, 10_000];
/// Height of all rows together, unless they have the least height.
const HIGH: f64 = 520.0;
const ROW: [f64; 2] = [2.0, 14.0];

/// Picture; none for few CPUs.
pub fn draw(history: &History, size: Size, theme: &Theme) -> Option<Picture> {
    let peaks = history.peaks();
    let cpus: Vec<(Cpu, &[Option<Nanos>])> = peaks.cpus().collect();
    let columns = cpus.iter().map(|(_, columns)| columns.len()).max().unwrap_or(0);
    if cpus.len() < LEAST || columns == 0 {
        return None;
    }
    let across = ACROSS[usize::from(size == Size::Narrow)];
    let each = columns.div_ceil(across).max(1);
    let row = (HIGH / cpus.len() as f64).clamp(ROW[0], ROW[1]);
    let plot = Plot::new(size, 12.0, row * cpus.len() as f64);
    let (width, cells) = (peaks.width().0 as f64 * each as f64, columns.div_ceil(each));
    let scale = Scale::linear(0.0, width * cells as f64, plot.left, plot.right);
    let time = TimeAxis::along(scale, size);
    let (key, key_height) = legend(&plot, theme);
    let body = html! {
        (plot.x_axis(&time.scale, &time.ticks, &time.title, theme))
        (paint(&cpus, each, row, &plot, theme))
        (names(&cpus, row, &plot, theme))
        (plot.frame(theme))
        (key)
    };
    let worst = cpus.iter().filter_map(|(cpu, columns)| Some((columns.iter().copied().max()??, *cpu))).max();
    let worst =
        worst.map_or_else(String::new, |(max, cpu)| format!(" The largest is {}, on CPU {cpu}.", span(max)));
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 48.0 + key_height,
        body: svg::group(theme, body),
        label: format!("Largest latency of {} over time.{worst}", several(cpus.len() as u64, "CPU", "CPUs")),
        notes: Vec::new(),
    })
}

/// Shade of a latency.
fn shade(max: Nanos) -> usize {
    FROM_US.iter().filter(|from| max.0 >= **from * 1_000).count()
}

/// Draws a path per shade; neighbours of one shade are one stroke as high as a row.
fn paint(cpus: &[(Cpu, &[Option<Nanos>])], each: usize, row: f64, plot: &Plot, theme: &Theme) -> Markup {
    let mut paths: Vec<PathData> = (0..HEATS).map(|_| PathData::default()).collect();
    let cells = cpus.iter().map(|(_, columns)| columns.len().div_ceil(each)).max().unwrap_or(1).max(1);
    let x = |cell: usize| plot.left + (plot.right - plot.left) * cell as f64 / cells as f64;
    for (at, (_, columns)) in cpus.iter().enumerate() {
        let y = plot.top + row * (at as f64 + 0.5);
        let shades: Vec<Option<usize>> =
            columns.chunks(each).map(|some| some.iter().copied().max().flatten().map(shade)).collect();
        let mut from = 0;
        while from < shades.len() {
            let alike = shades[from..].iter().take_while(|one| **one == shades[from]).count();
            if let Some(shade) = shades[from] {
                paths[shade].go(x(from), y);
                paths[shade].across(x(from + alike));
            }
            from += alike;
        }
    }
    html! {
        @for (shade, path) in paths.iter().enumerate().filter(|(_, path)| !path.0.is_empty()) {
            path d=(path.0) fill="none" stroke=(colour(shade, theme)) stroke-opacity=(strength(shade))
                stroke-width=(Px(row)) {}
        }
    }
}

/// Colour of a shade; the lowest is close to the background.
fn colour(shade: usize, theme: &Theme) -> &'static str {
    if shade == 0 { theme.grid } else { theme.heat[shade] }
}

/// Opacity of a shade: low latencies are faint, so that a row or column of later ones stands out.
fn strength(shade: usize) -> &'static str {
    ["1", "0.2", "0.4", "0.7"].get(shade).copied().unwrap_or("1")
}

/// As many names as fit.
fn names(cpus: &[(Cpu, &[Option<Nanos>])], row: f64, plot: &Plot, theme: &Theme) -> Markup {
    let every = [1, 2, 4, 8, 16, 32, 64].into_iter().find(|every| *every as f64 * row >= 13.0).unwrap_or(128);
    html! {
        @for (at, (cpu, _)) in cpus.iter().enumerate().step_by(every) {
            @let y = plot.top + row * (at as f64 + 0.5) + 4.0;
            (text(plot.left - 7.0, y, "end", theme.muted, &format!("CPU {cpu}")))
        }
    }
}

fn legend(plot: &Plot, theme: &Theme) -> (Markup, f64) {
    let width = (plot.right - plot.left) / HEATS as f64;
    let y = plot.bottom + 52.0;
    let from = |shade: usize| FROM_US.get(shade.wrapping_sub(1)).map(|us| span(Nanos(us * 1_000)));
    let markup = html! {
        (text(plot.left, y, "start", theme.ink, "largest latency, from"))
        @for shade in 0..HEATS {
            @let x = plot.left + shade as f64 * width;
            rect x=(Px(x)) y=(Px(y + 7.0)) width=(Px(width - 2.0)) height="11" fill=(colour(shade, theme))
                fill-opacity=(strength(shade)) {}
            @let words = from(shade).unwrap_or_else(|| "0".into());
            (text(x + width / 2.0, y + 31.0, "middle", theme.muted, &words))
        }
    };
    (markup, 40.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plot::theme::PAPER;

    fn history(cpus: u32, seconds: i64, late: impl Fn(u32, i64) -> i64) -> History {
        let mut history = History::new(Nanos(0), Nanos(seconds * 1_000_000_000), 240);
        for second in 0..seconds {
            for cpu in 0..cpus {
                let mono = Nanos(second * 1_000_000_000);
                history.add(&fixture::block_of(Cpu(cpu), mono, &[3_000, late(cpu, second)]));
            }
        }
        history
    }

    #[test]
    fn a_late_core_is_a_row_of_its_own_colour() {
        let of = history(8, 60, |cpu, second| if cpu == 5 && second > 20 { 400_000 } else { 5_000 });
        let text = draw(&of, Size::Wide, &PAPER).unwrap().body.into_string();
        let late = format!("stroke=\"{}\"", PAPER.heat[4]);
        let at = text.find(&late).expect("the shade from 300 us on");
        assert_eq!(text[text[..at].rfind("<path").unwrap()..at].matches('M').count(), 1, "one stroke");
        assert!(text.contains("CPU 7") && text.contains("10 ms"), "{text}");
        assert!(draw(&history(7, 3, |_, _| 5_000), Size::Wide, &PAPER).is_none());
        assert!(draw(&History::new(Nanos(0), Nanos(1), 4), Size::Wide, &PAPER).is_none());
    }

    #[test]
    fn hundreds_of_cpus_over_an_hour_stay_small() {
        let noise = |cpu: u32, second: i64| 3_000 + (i64::from(cpu) * 7_919 + second * 104_729) % 400_000;
        let of = history(256, 3_600, noise);
        let picture = draw(&of, Size::Wide, &PAPER).unwrap();
        assert!(picture.height < 700.0, "{}", picture.height);
        let size = picture.body.into_string().len();
        assert!(size < 1_500_000, "{size}");
    }
}
