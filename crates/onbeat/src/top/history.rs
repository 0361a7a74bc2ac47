//! The last minute of a row: its largest latency of each second.

use model::units::Nanos;

/// Number of seconds.
pub const SECONDS: usize = 60;

/// Lower edges of the signs in us; the first sign is for all below.
const EDGES_US: [i64; 7] = [5, 20, 50, 100, 500, 2_000, 10_000];
const SIGNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Ring of the largest latencies.
#[derive(Clone, Debug)]
pub struct MinuteHistory {
    /// 0 for a second without a wake-up.
    ring: [u32; SECONDS],
    seconds: usize,
}

impl Default for MinuteHistory {
    fn default() -> MinuteHistory {
        MinuteHistory { ring: [0; SECONDS], seconds: 0 }
    }
}

impl MinuteHistory {
    /// Begins a second.
    pub fn begin(&mut self, second: usize) {
        self.seconds = second;
        self.ring[second % SECONDS] = 0;
    }

    /// Notes a latency of this second.
    pub fn note(&mut self, latency: Option<Nanos>) {
        let Some(latency) = latency else { return };
        let place = &mut self.ring[self.seconds % SECONDS];
        *place = (*place).max(u32::try_from(latency.0.max(1)).unwrap_or(u32::MAX));
    }

    /// The minute in this number of characters, the newest last. A character stands for whole
    /// seconds, and moves only when these are over.
    pub fn text(&self, width: usize) -> String {
        let width = width.clamp(1, SECONDS);
        let each = SECONDS.div_ceil(width);
        let newest = self.seconds / each;
        (0..width).map(|nth| self.sign((newest + nth + 1).checked_sub(width), each)).collect()
    }

    fn sign(&self, group: Option<usize>, each: usize) -> char {
        let Some(group) = group else { return ' ' };
        let seconds = group * each..(group + 1) * each;
        let known = |second: &usize| *second <= self.seconds && self.seconds - second < SECONDS;
        let worst = seconds.filter(known).map(|second| self.ring[second % SECONDS]).max().unwrap_or(0);
        if worst == 0 {
            return ' ';
        }
        SIGNS[EDGES_US.iter().take_while(|&&edge| i64::from(worst) >= edge * 1_000).count()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_kept_and_the_newest_is_last() {
        let mut history = MinuteHistory::default();
        for second in 1..=70 {
            history.begin(second);
            history.note(Some(Nanos(if second == 70 { 20_000_000 } else { 1_000 })));
        }
        assert_eq!(history.text(60), "▁".repeat(59) + "█");
        history.begin(71);
        assert_eq!(history.text(60), "▁".repeat(58) + "█ ");
        assert!(history.text(10).ends_with("▁█"), "{}", history.text(10));
    }

    #[test]
    fn a_new_row_is_blank_before_its_first_second() {
        let mut history = MinuteHistory::default();
        assert_eq!(history.text(10), " ".repeat(10));
        history.begin(1);
        history.note(Some(Nanos(60_000)));
        assert_eq!(history.text(60).trim_start(), "▄");
        history.note(None);
        history.note(Some(Nanos(i64::MAX)));
        assert_eq!(history.text(60).trim_start(), "█");
    }

    #[test]
    fn a_character_stays_in_its_place_while_its_seconds_last() {
        let mut history = MinuteHistory::default();
        let mut texts = Vec::new();
        for second in 60..66 {
            history.begin(second);
            history.note(Some(Nanos(1_000)));
            texts.push(history.text(10));
        }
        texts.dedup();
        assert_eq!(texts.len(), 1, "{texts:?}");
    }
}
