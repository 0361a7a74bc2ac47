//! A line of the table: the result, the published value, and the permitted bounds.

/// Above the table.
pub fn head() -> String {
    format!(
        "{:<14} {:<63} {:>6}  {:<5} {:<16} {:<16}",
        "experiment", "what", "result", "of", "published", "bound"
    )
}

/// One result.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultLine {
    what: String,
    /// The result: a rate, or a mean.
    pub result: f64,
    reps: u32,
    /// Published rate and its number of repetitions; `None` if there is none, or another quantity.
    published: Option<(f64, u32)>,
    least: Option<f64>,
    most: Option<f64>,
    note: String,
}

impl ResultLine {
    /// A rate of that many repetitions.
    pub fn rate(what: impl Into<String>, result: f64, reps: u32) -> ResultLine {
        ResultLine {
            what: what.into(),
            result,
            reps,
            published: None,
            least: None,
            most: None,
            note: String::new(),
        }
    }

    /// Requires this published rate, up to three standard deviations of chance.
    pub fn near(mut self, rate: f64, reps: u32) -> ResultLine {
        self.published = Some((rate, reps));
        self
    }

    /// Requires this or more.
    pub fn at_least(mut self, least: f64) -> ResultLine {
        self.least = Some(least);
        self
    }

    /// Requires this or less.
    pub fn at_most(mut self, most: f64) -> ResultLine {
        self.most = Some(most);
        self
    }

    /// Words behind the line.
    pub fn note(mut self, note: impl Into<String>) -> ResultLine {
        self.note = note.into();
        self
    }

    /// True if it is within its bounds. Few repetitions scatter: a quick run permits two standard
    /// deviations beyond.
    pub fn holds(&self, quick: bool) -> bool {
        let near = self.published.is_none_or(|(rate, of)| {
            // One more of each kind: a published 0 or 1 is not a certainty.
            let n = f64::from(of);
            let p = (rate * n + 1.0) / (n + 2.0);
            let error = (p * (1.0 - p) * (1.0 / n + 1.0 / f64::from(self.reps.max(1)))).sqrt();
            (self.result - rate).abs() <= 3.0 * error
        });
        let slack = |bound: f64| {
            let p = bound.clamp(0.0, 1.0);
            if quick { 2.0 * (p * (1.0 - p) / f64::from(self.reps.max(1))).sqrt() } else { 0.0 }
        };
        let least = self.least.is_none_or(|least| self.result >= least - slack(least));
        near && least && self.most.is_none_or(|most| self.result <= most + slack(most))
    }

    /// The line of the table.
    pub fn print(&self, experiment: &str, quick: bool) -> String {
        let published = self.published.map_or("-".to_string(), |(rate, of)| format!("{rate:.3} of {of}"));
        let bound = match (self.least, self.most) {
            (None, None) => "-".to_string(),
            (Some(least), None) => format!(">= {least}"),
            (None, Some(most)) => format!("<= {most}"),
            (Some(least), Some(most)) => format!("{least} to {most}"),
        };
        let verdict = if self.holds(quick) { "ok" } else { "BROKEN" };
        let line = format!(
            "{experiment:<14} {:<63} {:>6.3}  {:<5} {published:<16} {bound:<16} {verdict:<7} {}",
            self.what, self.result, self.reps, self.note
        );
        line.trim_end().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_held_against_what_was_published_and_against_its_bounds() {
        assert!(ResultLine::rate("a", 0.93, 1000).near(0.945, 1000).at_least(0.92).holds(false));
        assert!(!ResultLine::rate("a", 0.90, 1000).near(0.945, 1000).holds(false), "beyond chance");
        assert!(!ResultLine::rate("a", 0.93, 1000).at_least(0.94).holds(false), "below the bound");
        assert!(ResultLine::rate("a", 0.93, 100).at_least(0.94).holds(true), "of a hundred that is chance");
        assert!(!ResultLine::rate("a", 0.81, 100).at_least(0.94).holds(true));
        assert!(!ResultLine::rate("a", 0.09, 300).at_most(0.08).holds(false));
        assert!(
            ResultLine::rate("a", 0.99, 100).near(1.0, 100).holds(false)
                && !ResultLine::rate("a", f64::NAN, 9).at_most(1.0).holds(true)
        );
    }

    #[test]
    fn a_line_says_its_bounds_and_its_verdict() {
        let line = ResultLine::rate("a", 0.5, 10).at_most(0.1).note("why").print("b", false);
        assert!(line.contains("<= 0.1") && line.ends_with("BROKEN  why"), "{line}");
        assert!(ResultLine::rate("a", 0.5, 10).print("b", false).ends_with("ok"));
    }
}
