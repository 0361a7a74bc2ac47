//! User-defined properties of boards: state, tags, latency budget.

use model::units::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

const LONGEST_TAG: usize = 32;
const MOST_TAGS: usize = 20;

/// Operational state of a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BoardState {
    #[default]
    Active,
    /// Work on the board is in progress.
    Maintenance,
    /// Changes of the board are of no interest.
    Muted,
    /// Out of service for good.
    Retired,
    /// Active, with other hardware than before.
    Replaced,
    /// The store has none of these: damage, or a later version. Its changes are reported. It is
    /// not chosen.
    Unknown,
}

impl BoardState {
    /// States that can be chosen.
    pub const ALL: [BoardState; 5] = [
        BoardState::Active,
        BoardState::Maintenance,
        BoardState::Muted,
        BoardState::Retired,
        BoardState::Replaced,
    ];

    /// The word in the store and in requests.
    pub fn word(self) -> &'static str {
        match self {
            BoardState::Active => "active",
            BoardState::Maintenance => "maintenance",
            BoardState::Muted => "muted",
            BoardState::Retired => "retired",
            BoardState::Replaced => "replaced",
            BoardState::Unknown => "unknown",
        }
    }

    pub fn of_word(word: &str) -> Option<BoardState> {
        BoardState::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Displayed words.
    pub fn words(self) -> &'static str {
        match self {
            BoardState::Maintenance => "in maintenance",
            BoardState::Replaced => "hardware replaced",
            BoardState::Unknown => "in an unknown state",
            other => other.word(),
        }
    }

    /// True if changes of the board are not reported.
    pub fn is_quiet(self) -> bool {
        matches!(self, BoardState::Maintenance | BoardState::Muted | BoardState::Retired)
    }
}

/// User-defined properties of a board, and its latency budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BoardSettings {
    pub state: BoardState,
    /// Time of the last change of state, in seconds since 1970.
    pub state_since: i64,
    pub tags: Vec<String>,
    /// Location, from its tag `lab=NAME`.
    pub lab: String,
    /// Budget set for this board.
    #[serde(skip)]
    pub own_budget: Option<Nanos>,
    /// Effective budget.
    #[schemars(with = "Option<i64>")]
    pub budget_ns: Option<Nanos>,
    /// Origin of the effective budget: `board`, `tag NAME`, `fleet`.
    pub budget_of: String,
    /// Largest latency of the 24 hours up to its last sample, if it has a budget.
    #[schemars(with = "Option<i64>")]
    pub max24_ns: Option<Nanos>,
}

impl BoardSettings {
    /// Time at which its hardware was replaced, in seconds since 1970.
    pub fn hardware_since(&self) -> Option<i64> {
        (self.state == BoardState::Replaced).then_some(self.state_since)
    }

    /// Origin of its budget, in words.
    pub fn budget_words(&self) -> String {
        match self.budget_of.as_str() {
            "board" => "the board's own".to_owned(),
            "fleet" => "that of all boards".to_owned(),
            // The public does not see which.
            "tag" => OF_A_TAG.to_owned(),
            tag => format!("{OF_THE}{tag}"),
        }
    }

    /// True if its last 24 hours exceed its budget.
    pub fn is_over(&self) -> bool {
        self.max24_ns.zip(self.budget_ns).is_some_and(|(max, limit)| max > limit)
    }
}

/// Origin of a budget set for a tag, followed by `tag NAME`.
pub const OF_THE: &str = "that of the ";
/// The same without the name.
pub const OF_A_TAG: &str = "that of a tag";

/// The budgets of the fleet and of tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FarmBudgets {
    pub fleet: Option<Nanos>,
    pub tags: Vec<(String, Nanos)>,
}

impl FarmBudgets {
    /// Applies the budget of a board: its own, else the smallest of its tags, else the fleet's.
    pub fn apply(&self, to: &mut BoardSettings) {
        let of_tags =
            self.tags.iter().filter(|(tag, _)| to.tags.contains(tag)).min_by_key(|(_, limit)| *limit);
        let own = to.own_budget.map(|limit| (limit, "board".to_owned()));
        let tag = of_tags.map(|(tag, limit)| (*limit, format!("tag {tag}")));
        let fleet = self.fleet.map(|limit| (limit, "fleet".to_owned()));
        let found = own.or(tag).or(fleet);
        to.budget_ns = found.as_ref().map(|found| found.0);
        to.budget_of = found.map(|found| found.1).unwrap_or_default();
    }
}

/// All budgets that were set, in the syntax of commands and addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BudgetsDocument {
    pub schema: &'static str,
    /// Budget of all boards.
    #[schemars(with = "Option<i64>")]
    pub fleet_ns: Option<Nanos>,
    pub tags: Vec<TagBudget>,
    /// Boards that have their own.
    pub boards: Vec<BoardBudget>,
}

/// The budget of boards with a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TagBudget {
    pub tag: String,
    #[schemars(with = "i64")]
    pub budget_ns: Nanos,
}

/// A board's own budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BoardBudget {
    pub board: String,
    #[schemars(with = "i64")]
    pub budget_ns: Nanos,
}

impl BudgetsDocument {
    /// Collects the budgets of the fleet and of tags, and of boards with their own.
    pub fn of(budgets: FarmBudgets, own: impl Iterator<Item = (String, Nanos)>) -> BudgetsDocument {
        let tags = budgets.tags.into_iter().map(|(tag, budget_ns)| TagBudget { tag, budget_ns });
        BudgetsDocument {
            schema: "onbeat.farm-budgets/1",
            fleet_ns: budgets.fleet,
            tags: tags.collect(),
            boards: own.map(|(board, budget_ns)| BoardBudget { board, budget_ns }).collect(),
        }
    }
}

/// A budget as it can be written again.
pub fn budget_text(limit: Nanos) -> String {
    if limit.0 % 1_000 == 0 { format!("{}us", limit.0 / 1_000) } else { format!("{}ns", limit.0) }
}

/// Parses tags separated by blanks or commas; drops duplicates.
pub fn parse_tags(text: &str) -> Result<Vec<String>, &'static str> {
    let mut tags: Vec<String> = Vec::new();
    for tag in text.split([',', ' ', '\t', '\n', '\r']).filter(|tag| !tag.is_empty()) {
        check_tag(tag)?;
        tags.push(tag.to_lowercase());
    }
    tags.sort_unstable();
    tags.dedup();
    if tags.len() > MOST_TAGS { Err("too many tags: expected at most 20 for a board") } else { Ok(tags) }
}

/// Prefix of the tag that names a board's location.
const LAB: &str = "lab=";

/// Location of a board, from its tags.
pub fn lab_of(tags: &[String]) -> String {
    tags.iter().find_map(|tag| tag.strip_prefix(LAB)).unwrap_or_default().to_owned()
}

/// The tag of a lab from its name, `lab=west` of `west`; none of an empty name.
pub fn lab_tag(lab: &str) -> Result<Vec<String>, &'static str> {
    let lab = lab.trim();
    if lab.is_empty() {
        return Ok(Vec::new());
    }
    let tag = format!("{LAB}{}", lab.to_lowercase());
    match check_tag(&tag) {
        Ok(()) => Ok(vec![tag]),
        Err(_) => Err("invalid name of a lab: expected 1 to 28 letters, digits and - _ . = : /"),
    }
}

/// Checks a tag.
pub fn check_tag(tag: &str) -> Result<(), &'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=:/".contains(c);
    if !tag.is_empty() && tag.len() <= LONGEST_TAG && tag.chars().all(plain) {
        Ok(())
    } else {
        Err("invalid tag: expected 1 to 32 letters, digits and - _ . = : /")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_budget_wins_and_of_tags_the_smallest() {
        let budgets = FarmBudgets {
            fleet: Some(Nanos(500)),
            tags: vec![("arm".into(), Nanos(300)), ("lab".into(), Nanos(200)), ("x".into(), Nanos(1))],
        };
        let of = |tags: &str, own| {
            let tags = parse_tags(tags).unwrap();
            let mut one = BoardSettings { tags, own_budget: own, ..BoardSettings::default() };
            budgets.apply(&mut one);
            (one.budget_ns, one.budget_of)
        };
        assert_eq!(of("", None), (Some(Nanos(500)), "fleet".into()));
        assert_eq!(of("lab,arm", None), (Some(Nanos(200)), "tag lab".into()));
        assert_eq!(of("lab", Some(Nanos(900))), (Some(Nanos(900)), "board".into()));
        let words = |of: &str| BoardSettings { budget_of: of.into(), ..Default::default() }.budget_words();
        let all = ["board", "tag lab", "tag", "fleet"].map(words);
        assert_eq!(all, ["the board's own", "that of the tag lab", "that of a tag", "that of all boards"]);
        let mut none = BoardSettings::default();
        FarmBudgets::default().apply(&mut none);
        assert_eq!((none.budget_ns, none.is_over()), (None, false));
    }

    #[test]
    fn tags_are_plain_and_each_is_there_once() {
        assert_eq!(parse_tags(" Lab=west, arm\narm").unwrap(), ["arm", "lab=west"]);
        assert!(parse_tags("<b>").is_err() && parse_tags(&"x".repeat(33)).is_err());
        let many: Vec<String> = (0..21).map(|n| n.to_string()).collect();
        assert!(parse_tags(&many.join(" ")).is_err() && parse_tags("").unwrap().is_empty());
    }

    #[test]
    fn a_lab_is_a_tag() {
        assert_eq!(lab_tag(" West-2 ").unwrap(), ["lab=west-2"]);
        assert_eq!(lab_of(&parse_tags("arm lab=west-2").unwrap()), "west-2");
        assert!(lab_tag("").unwrap().is_empty() && lab_of(&[]).is_empty());
        assert!(lab_tag("a b").is_err() && lab_tag(&"x".repeat(29)).is_err());
    }

    #[test]
    fn states_have_words() {
        assert_eq!(BoardState::ALL.map(|state| BoardState::of_word(state.word())), BoardState::ALL.map(Some));
        assert!(BoardState::of_word("gone").is_none() && !BoardState::Replaced.is_quiet());
        assert!(BoardState::of_word("unknown").is_none() && !BoardState::Unknown.is_quiet());
    }
}
