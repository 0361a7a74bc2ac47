//! Histograms as JSON or CSV, in parts.

use model::error::{Result, json};

use crate::changes::{InvalidRun, invalid_within};
use crate::records::{CpuRows, SeriesKey, Tier, TierRow};
use crate::store::{FarmStore, TimeStretch};
use crate::web::answers::answer_parts::{AnswerParts, RowsOfPart};
use crate::web::answers::data::{HistogramDocument, HistogramsDocument, histogram_lines, histograms_head};

/// Requested histograms.
#[derive(Clone, Debug)]
pub struct AskedHistograms {
    pub board: String,
    pub key: SeriesKey,
    pub tier: Tier,
    pub within: TimeStretch,
    pub cpu: Option<u32>,
}

/// Format of histograms.
pub enum HistogramForm {
    /// With the requested name of the tier, and the invalid runs.
    Json {
        tier: String,
        invalid: Vec<InvalidRun>,
    },
    Csv,
}

/// Rest of a response with histograms.
pub struct HistogramParts {
    store: FarmStore,
    asked: AskedHistograms,
    form: HistogramForm,
    rows: RowsOfPart,
    written: usize,
    is_begun: bool,
    is_over: bool,
}

impl HistogramParts {
    pub fn of(store: FarmStore, asked: AskedHistograms, form: HistogramForm) -> HistogramParts {
        let rows = RowsOfPart::default();
        HistogramParts { store, asked, form, rows, written: 0, is_begun: false, is_over: false }
    }

    /// Text before the first one and after the last.
    fn frame(&self) -> Result<(String, &'static str)> {
        const END: &str = "]}";
        let HistogramForm::Json { tier, .. } = &self.form else {
            return Ok((histograms_head().to_owned(), ""));
        };
        let empty = json(&HistogramsDocument {
            schema: "onbeat.farm-histograms/1",
            series: &self.asked.key.series,
            plan: &self.asked.key.plan,
            tier,
            histograms: Vec::new(),
        })?;
        Ok((empty.strip_suffix(END).unwrap_or(&empty).to_owned(), "]}\n"))
    }

    fn write(&mut self, text: &mut String, row: TierRow) -> Result<()> {
        match &self.form {
            HistogramForm::Csv => histogram_lines(text, &row, self.asked.cpu),
            HistogramForm::Json { invalid, .. } => {
                if self.written > 0 {
                    text.push(',');
                }
                let is_invalid = invalid_within(invalid, &self.asked.key, self.asked.tier, row.t).is_some();
                *text += &json(&HistogramDocument::of(row, self.asked.cpu).marked(is_invalid))?;
            }
        }
        self.written += 1;
        Ok(())
    }
}

impl AnswerParts for HistogramParts {
    async fn next(&mut self) -> Result<Option<String>> {
        if self.is_over {
            return Ok(None);
        }
        let (head, end) = self.frame()?;
        let mut text = if self.is_begun { String::new() } else { head };
        self.is_begun = true;
        loop {
            let (of, most) = (&self.asked, self.rows.most());
            let rows = self.store.first_tiers(&of.board, &of.key, of.tier, of.within, most).await?;
            let (count, before) = (rows.len(), text.len());
            let held: usize = rows.iter().map(bytes_of).sum();
            for row in rows {
                // There is one of each time.
                self.asked.within.from = row.t.saturating_add(1);
                self.write(&mut text, row)?;
            }
            if (count as i64) < most {
                self.is_over = true;
                return Ok(Some(text + end));
            }
            self.rows.fit(count, held.max(text.len() - before));
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
    }
}

fn bytes_of(row: &TierRow) -> usize {
    /// Of a row of a histogram: where it is, and its count.
    const EACH: usize = 16;
    let of_cpu = |one: &CpuRows| size_of::<CpuRows>() + one.rows.iter().count() * EACH;
    size_of::<TierRow>() + row.cpus.iter().map(of_cpu).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{MadeFleet, recorded_run};
    use crate::store::engines::on_page_engines;
    use crate::web::answers::answer_parts::parts_of;
    use crate::web::answers::data::histograms_csv;

    #[test]
    fn histograms_in_parts_are_those_that_are_written_at_once() {
        on_page_engines(async |store| {
            let (measured, hunt) = (recorded_run("measured", "a"), recorded_run("hunt", "a"));
            let end = 1_795_392_000;
            let fleet = MadeFleet { boards: 1, days: 3, end, measured, hunt, fine_days: 3 };
            fleet.fill(&store, |_| ()).await.unwrap();
            let board = store.boards().await.unwrap().remove(0).board;
            let within = TimeStretch { from: 0, to: i64::MAX };
            let mut longest = 0;
            for key in store.series(&board).await.unwrap().into_iter().map(|series| series.key) {
                for (tier, cpu) in [(Tier::Hour, None), (Tier::Day, None), (Tier::Hour, Some(0))] {
                    let all = store.tiers(&board, &key, tier, within).await.unwrap();
                    let asked = AskedHistograms { board: board.clone(), key: key.clone(), tier, within, cpu };
                    let csv = HistogramParts::of(store.clone(), asked.clone(), HistogramForm::Csv);
                    assert!(parts_of(csv).await.concat() == histograms_csv(&all, cpu));
                    let invalid = store.invalid_runs(&board, 0).await.unwrap();
                    let document = |row: TierRow| {
                        let is_invalid = invalid_within(&invalid, &key, tier, row.t).is_some();
                        HistogramDocument::of(row, cpu).marked(is_invalid)
                    };
                    let whole = json(&HistogramsDocument {
                        schema: "onbeat.farm-histograms/1",
                        series: &key.series,
                        plan: &key.plan,
                        tier: "x",
                        histograms: all.into_iter().map(document).collect(),
                    });
                    let form = HistogramForm::Json { tier: "x".into(), invalid: invalid.clone() };
                    let parts = parts_of(HistogramParts::of(store.clone(), asked, form)).await;
                    assert!(parts.concat() == whole.unwrap() + "\n", "{tier:?} {cpu:?}");
                    longest = longest.max(parts.len());
                }
            }
            assert!(longest > 1, "{longest}");
        });
    }
}
