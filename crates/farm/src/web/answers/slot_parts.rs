//! Slots as JSON or CSV, in parts. Slots of a step are joined, also across parts.

use std::slice::from_ref;

use model::error::{Result, json};

use crate::joined_slots::join;
use crate::records::{FarmSlot, SLOT, SlotPeak};
use crate::store::{AfterSlot, AskedSlots, FarmStore};
use crate::web::answers::answer_parts::{AnswerParts, RowsOfPart};
use crate::web::answers::data::{by_cpu, csv_head, csv_row};
use crate::web::answers::unnamed;
use crate::web::edge::visitor::Visitor;

/// Format of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotForm {
    Json,
    Csv,
    /// A line for each CPU.
    CsvByCpu,
}

/// Rest of a response with slots.
pub struct SlotParts {
    store: FarmStore,
    asked: AskedSlots,
    visitor: Visitor,
    form: SlotForm,
    joined: JoinedSlots,
    rows: RowsOfPart,
    after: Option<AfterSlot>,
    written: usize,
    progress: PartProgress,
}

/// Progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartProgress {
    Begin,
    Middle,
    Over,
}

impl SlotParts {
    pub fn of(store: FarmStore, asked: AskedSlots, visitor: Visitor, form: SlotForm, step: i64) -> SlotParts {
        SlotParts {
            store,
            asked,
            visitor,
            form,
            joined: JoinedSlots::of(step),
            rows: RowsOfPart::default(),
            after: None,
            written: 0,
            progress: PartProgress::Begin,
        }
    }

    fn write(&mut self, text: &mut String, slot: &FarmSlot) -> Result<()> {
        match self.form {
            SlotForm::Json => {
                if self.written > 0 {
                    text.push(',');
                }
                *text += &json(slot)?;
            }
            SlotForm::Csv => *text += &(csv_row(slot) + "\n"),
            SlotForm::CsvByCpu => {
                by_cpu(from_ref(slot)).iter().for_each(|one| *text += &(csv_row(one) + "\n"));
            }
        }
        self.written += 1;
        Ok(())
    }
}

impl AnswerParts for SlotParts {
    async fn next(&mut self) -> Result<Option<String>> {
        let mut text = String::new();
        match (self.progress, self.form) {
            (PartProgress::Over, _) => return Ok(None),
            (PartProgress::Begin, SlotForm::Json) => text.push('['),
            (PartProgress::Begin, _) => text += &(csv_head().to_owned() + "\n"),
            (PartProgress::Middle, _) => {}
        }
        self.progress = PartProgress::Middle;
        // Of a long step many rows are one slot, which is written when the next one begins.
        loop {
            let most = self.rows.most();
            let (mut slots, last) = self.store.slots_after(&self.asked, self.after.as_ref(), most).await?;
            unnamed::slots(&self.visitor, &mut slots);
            let (rows, before) = (slots.len(), text.len());
            let held: usize = slots.iter().map(bytes_of).sum();
            for slot in slots {
                if let Some(whole) = self.joined.take(slot) {
                    self.write(&mut text, &whole)?;
                }
            }
            if last.is_none() || (rows as i64) < most {
                if let Some(whole) = self.joined.end() {
                    self.write(&mut text, &whole)?;
                }
                if self.form == SlotForm::Json {
                    text += "]\n";
                }
                self.progress = PartProgress::Over;
                return Ok(Some(text));
            }
            self.after = last;
            self.rows.fit(rows, held.max(text.len() - before));
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
    }
}

fn bytes_of(slot: &FarmSlot) -> usize {
    size_of::<FarmSlot>() + slot.cpus.len() * size_of::<SlotPeak>()
}

/// Joins slots to one per step: a recorder may have shorter intervals, and two recordings the same
/// five minutes. The largest latency keeps its time and names.
pub struct JoinedSlots {
    step: i64,
    last: Option<FarmSlot>,
}

impl JoinedSlots {
    pub fn of(step: i64) -> JoinedSlots {
        JoinedSlots { step: step.max(SLOT), last: None }
    }

    /// Adds a slot; returns the previous joined one if it is complete.
    pub fn take(&mut self, slot: FarmSlot) -> Option<FarmSlot> {
        let t = slot.t - slot.t.rem_euclid(self.step);
        match self.last.as_mut().filter(|last| last.t == t) {
            Some(last) => {
                join(last, slot);
                None
            }
            None => self.last.replace(FarmSlot { t, ..slot }),
        }
    }

    /// The last one.
    pub fn end(&mut self) -> Option<FarmSlot> {
        self.last.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{MadeFleet, recorded_run};
    use crate::store::TimeStretch;
    use crate::store::engines::on_page_engines;
    use crate::web::answers::answer_parts::parts_of;
    use crate::web::edge::visitor::FarmView;
    use model::units::{Cpu, Nanos};

    fn slot(t: i64, n: u64, max: i64) -> FarmSlot {
        let cpus = vec![SlotPeak { cpu: Cpu(1), n, max_ns: Some(Nanos(max)), ..SlotPeak::default() }];
        FarmSlot {
            t,
            n,
            missed: 1,
            max_ns: Some(Nanos(max)),
            victim: format!("v{max}"),
            cpus,
            ..FarmSlot::default()
        }
    }

    fn stepped(slots: Vec<FarmSlot>, step: i64) -> Vec<FarmSlot> {
        let mut joined = JoinedSlots::of(step);
        let mut all: Vec<FarmSlot> = slots.into_iter().filter_map(|slot| joined.take(slot)).collect();
        all.extend(joined.end());
        all
    }

    #[test]
    fn joined_slots_lose_no_sample_and_no_maximum() {
        let joined = stepped(vec![slot(0, 1, 5), slot(300, 2, 9), slot(900, 4, 7), slot(3_600, 8, 1)], 3_600);
        assert_eq!(joined.len(), 2);
        assert_eq!((joined[0].t, joined[0].n, joined[0].missed, joined[0].max_ns), (0, 7, 3, Some(Nanos(9))));
        assert_eq!((joined[0].victim.as_str(), joined[0].cpus[0].n, joined[1].n), ("v9", 7, 8));
    }

    #[test]
    fn intervals_below_five_minutes_and_recordings_beside_each_other_are_one_slot() {
        let minutes = [slot(0, 1, 5), slot(0, 2, 9), slot(0, 4, 7), slot(300, 8, 1)];
        for step in [i64::MIN, 0, 60, 300] {
            let joined = stepped(minutes.to_vec(), step);
            let told = |one: &FarmSlot| (one.t, one.n, one.missed, one.max_ns, one.victim.clone());
            let wanted =
                [(0, 7, 3, Some(Nanos(9)), "v9".to_owned()), (300, 8, 1, Some(Nanos(1)), "v1".to_owned())];
            assert_eq!(joined.iter().map(told).collect::<Vec<_>>(), wanted, "{step}");
            assert_eq!((joined[0].cpus.len(), joined[0].cpus[0].max_ns), (1, Some(Nanos(9))));
        }
        assert!(stepped(Vec::new(), 0).is_empty());
    }

    #[test]
    fn an_answer_in_parts_is_the_one_that_is_made_at_once() {
        on_page_engines(async |store| {
            let (measured, hunt) = (recorded_run("measured", "a"), recorded_run("hunt", "a"));
            let end = 1_795_392_000;
            let fleet = MadeFleet { boards: 1, days: 4, end, measured, hunt, fine_days: 4 };
            fleet.fill(&store, |_| ()).await.unwrap();
            let board = store.boards().await.unwrap().remove(0).board;
            let within = TimeStretch { from: 0, to: i64::MAX };
            let mut longest = 0;
            for key in store.series(&board).await.unwrap().into_iter().map(|series| series.key) {
                let all = store.slots(&board, &key, within, 9_999).await.unwrap();
                for step in [0, 3_600, 90 * 86_400] {
                    let whole = stepped(all.clone(), step);
                    let lines = |slots: &[FarmSlot]| {
                        let rows: String = slots.iter().map(|slot| csv_row(slot) + "\n").collect();
                        csv_head().to_owned() + "\n" + &rows
                    };
                    for (form, wanted) in [
                        (SlotForm::Json, json(&whole).unwrap() + "\n"),
                        (SlotForm::Csv, lines(&whole)),
                        (SlotForm::CsvByCpu, lines(&by_cpu(&whole))),
                    ] {
                        let board = board.clone();
                        let asked = AskedSlots { board, key: key.clone(), within, labels: Vec::new() };
                        let visitor = Visitor { view: FarmView::All, ..Visitor::default() };
                        let parts = parts_of(SlotParts::of(store.clone(), asked, visitor, form, step)).await;
                        longest = longest.max(parts.len());
                        assert!(parts.concat() == wanted, "{form:?} {step}");
                        assert!(parts.iter().all(|part| part.len() < 256 << 10));
                    }
                }
            }
            assert!(longest > 2, "{longest}");
        });
    }
}
