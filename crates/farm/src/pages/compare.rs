//! Runs against runs, or days of boards against days: the form, and the answer in the words of
//! `onbeat compare` below it.

use maud::{Markup, html};
use model::text::excerpt;
use report::html::PageParts;

use super::frame::as_sentence;
use super::parts::{as_data, escaped};
use super::{Section, page};
use crate::records::SeriesKey;
use crate::sides::{FarmSide, OtherSeries};

/// The request: ids of runs, and names of boards for their last runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparisonForm {
    pub a: Vec<String>,
    pub b: Vec<String>,
    /// Alternatively days, by environments and times of boards.
    pub sides: [FarmSide; 2],
    /// Their series; empty for the one that both sides have most of.
    pub series: String,
    pub plan: String,
    pub limit: String,
}

impl ComparisonForm {
    /// True if days are compared rather than runs.
    pub fn is_of_days(&self) -> bool {
        self.sides.iter().any(|side| !side.is_empty())
    }

    /// The address of the same question about days of a series.
    fn address(&self, key: &SeriesKey) -> String {
        format!("/compare?{}", self.query(&key.series, &key.plan))
    }

    /// The request as a query; for days of this series.
    fn query(&self, series: &str, plan: &str) -> String {
        let part = |name: &str, value: &str| format!("{name}={}", escaped(value));
        let runs = [("a", &self.a), ("b", &self.b)];
        let runs = runs.into_iter().flat_map(|(name, ids)| ids.iter().map(move |id| part(name, id)));
        let sides = [("a", &self.sides[0]), ("b", &self.sides[1])].map(|(name, side)| side.query(name));
        let others = [("series", series), ("plan", plan), ("limit", self.limit.as_str())];
        let others = others.into_iter().filter(|(_, value)| !value.is_empty());
        let others = others.map(|(name, value)| part(name, value));
        let parts = runs.chain(sides.into_iter().filter(|side| !side.is_empty())).chain(others);
        parts.collect::<Vec<_>>().join("&")
    }
}

/// Choices offered by the form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparisonChoices {
    pub boards: Vec<String>,
    pub machines: Vec<String>,
    pub kernels: Vec<String>,
}

impl ComparisonChoices {
    /// Limit of the choices of each kind; others are typed in full.
    pub const OFFERED: usize = 300;

    /// Builds the choices from the names of boards, and of machines with their kernels.
    pub fn of(boards: Vec<String>, names: impl IntoIterator<Item = (String, String)>) -> ComparisonChoices {
        let (machines, kernels): (Vec<String>, Vec<String>) = names.into_iter().unzip();
        let each = |mut all: Vec<String>| {
            all.retain(|text| !text.is_empty());
            all.sort_unstable();
            all.dedup();
            all.truncate(ComparisonChoices::OFFERED);
            all
        };
        ComparisonChoices { boards, machines: each(machines), kernels: each(kernels) }
    }
}

/// The form alone, or with the reason for which there is no result.
pub fn form_page(form: &ComparisonForm, choices: &ComparisonChoices, refused: Option<&str>) -> String {
    let body = html! {
        @if let Some(reason) = refused { p.banner { (as_sentence(reason)) } }
        p.lead { "Is B better than A?" }
        (forms(form, choices, ""))
    };
    page(Some(Section::Compare), "Compare", body)
}

/// The result, and the form for another request; for days also the other series.
pub fn answer(
    form: &ComparisonForm,
    choices: &ComparisonChoices,
    parts: PageParts,
    others: &[OtherSeries],
) -> String {
    let named: Vec<String> = others.iter().map(OtherSeries::words).collect();
    // A board may have several series with the same words, or none.
    let plan = |at: usize| {
        let is_alike = named.iter().filter(|words| **words == named[at]).count() > 1;
        is_alike.then(|| format!(", plan {}", excerpt(&others[at].of.key.plan)))
    };
    let body = html! {
        (parts.body)
        (as_data("/v1/compare", &form.query(&form.series, &form.plan)))
        @if !others.is_empty() {
            h2 { "The same for another series" }
            ul.plain { @for (at, one) in others.iter().enumerate() { li {
                a href=(form.address(&one.of.key)) { (named[at]) (plan(at).unwrap_or_default()) } } } }
        }
        (forms(form, choices, "Compare others: "))
    };
    page(Some(Section::Compare), &parts.heading, body)
}

/// The form that was used is first, under a heading with this beginning.
fn forms(form: &ComparisonForm, choices: &ComparisonChoices, again: &str) -> Markup {
    html! {
        @if form.is_of_days() { (form_of_days(form, choices, again)) (form_of_runs(form, again)) }
        @else { (form_of_runs(form, again)) (form_of_days(form, choices, again)) }
    }
}

fn form_of_runs(form: &ComparisonForm, again: &str) -> Markup {
    let side = |name: &'static str, title: &str, lines: &[String]| {
        html! { p { label { (title) br; textarea name=(name) rows="4" { (lines.join("\n")) } } } }
    };
    html! {
        h2 { (again) "Runs" }
        form action="/compare" method="get" {
            p { "Enter ids of runs, one per line; the name of a board stands for its last ten runs. The run \
                 is the unit: a verdict needs several runs of each side, made in turns." }
            (side("a", "A", &form.a))
            (side("b", "B", &form.b))
            (limit(form))
        }
    }
}

fn limit(form: &ComparisonForm) -> Markup {
    html! {
        p { label { "Limit " input name="limit" value=(form.limit) placeholder="100us" maxlength="20"; } }
        p { button type="submit" { "Compare" } }
    }
}

/// The fields of a side: title, example.
const FIELDS: [(&str, &str); 7] = [
    ("Boards", "press-01, press-02"),
    ("Machine", ""),
    ("Kernel", "6.12"),
    ("Setting", "cmdline isolcpus=2-3"),
    ("Environment", ""),
    ("From", ""),
    ("Before", ""),
];

fn form_of_days(form: &ComparisonForm, choices: &ComparisonChoices, again: &str) -> Markup {
    let lists = [("boards", &choices.boards), ("machines", &choices.machines), ("kernels", &choices.kernels)];
    let fields = |name: &str, side: &FarmSide| {
        let all = FarmSide::FIELDS.iter().zip(FIELDS).zip(side.values());
        html! {
            @for ((field, (title, example)), value) in all {
                @let list = match *field { "board" => Some("boards"), "machine" => Some("machines"),
                    "kernel" => Some("kernels"), _ => None };
                @let kind = if matches!(*field, "from" | "before") { "date" } else { "text" };
                label { (title)
                    input type=(kind) name={ (name) "_" (field) } value=(value) placeholder=(example)
                        list=[list] maxlength="400"; }
            }
        }
    };
    html! {
        h2 { (again) "Boards, kernels, settings, spans of time" }
        form action="/compare" method="get" {
            p { "A side names boards, a machine, a kernel, a setting or an environment; an empty field \
                 matches anything. A kernel is the beginning of its release, in whole parts; a setting is \
                 one of a board's environment with its value, as on the page of its environments, with \
                 nothing after the = if it is not set (\"cmdline nohz_full=\"). With six boards or more, the \
                 board is the unit, and a board on both sides is compared with itself; with fewer, the day \
                 is." }
            div.sides {
                @for (name, title, side) in [("a", "A", &form.sides[0]), ("b", "B", &form.sides[1])] {
                    fieldset { legend { (title) } (fields(name, side)) }
                }
            }
            @for (name, value) in [("series", &form.series), ("plan", &form.plan)] {
                @if !value.is_empty() { input type="hidden" name=(name) value=(value); }
            }
            (limit(form))
        }
        @for (id, all) in lists { datalist id=(id) { @for one in all { option value=(one) {} } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::SeriesOfBoard;

    #[test]
    fn what_was_asked_stays_in_the_form_as_text() {
        let form = ComparisonForm {
            a: vec!["</textarea><b>".into()],
            b: vec!["r2".into()],
            limit: "\"x".into(),
            ..ComparisonForm::default()
        };
        let text = form_page(&form, &ComparisonChoices::default(), Some("no run of this id: <b>"));
        assert!(!text.contains("<b>") && text.contains("r2") && text.contains("&quot;x"));
        assert!(text.find(">Runs<") < text.find(">Boards, kernels"));
        assert!(text.contains(
            "A side names boards, a machine, a kernel, a setting or an environment; an empty field"
        ));
        assert!(text.contains("with nothing after the = if it is not set"));
    }

    #[test]
    fn a_question_about_days_is_its_address() {
        let mut form = ComparisonForm { limit: "50us".into(), ..ComparisonForm::default() };
        form.sides[0].board = "a\"><b>".into();
        form.sides[1].kernel = "6.12".into();
        form.plan = "p".into();
        let key = SeriesKey { series: "hunt".into(), plan: "q".into() };
        let of = SeriesOfBoard { key, words: "every 1 ms".into(), days: 3, last: 0 };
        let other = OtherSeries { of, boards: [["x".to_owned()].into(), ["x".to_owned()].into()] };
        let mut twin = other.clone();
        twin.of.key.plan = "r".into();
        let parts = PageParts { heading: "h".into(), body: html! { p { "said" } }, script: None };
        let known = ["a", "b"].map(|machine| (machine.to_owned(), "6.12.9".to_owned()));
        let choices = ComparisonChoices::of(Vec::new(), known);
        let text = answer(&form, &choices, parts, &[other, twin]);
        assert!(
            !text.contains("<b>") && text.contains("name=\"a_board\"") && text.contains("value=\"6.12\"")
        );
        assert!(text.contains(
            "b_kernel=6.12&amp;series=hunt&amp;plan=q&amp;limit=50us\">hunt: every 1 ms, of x, plan q<"
        ));
        assert!(text.contains(">hunt: every 1 ms, of x, plan r<"), "{text}");
        assert!(text.contains("name=\"plan\" value=\"p\"") && !text.contains("name=\"series\""));
        let data = "/v1/compare.csv?a_board=a%22%3E%3Cb%3E&amp;b_kernel=6.12&amp;plan=p&amp;limit=50us\"";
        assert!(text.contains(data), "{text}");
        assert_eq!(text.matches("<option value=\"6.12.9\">").count(), 1);
        assert!(text.find(">Compare others: Boards") < text.find(">Compare others: Runs<"));
    }
}
