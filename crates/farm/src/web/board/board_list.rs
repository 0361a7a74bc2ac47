//! First page: boards and their changes. The page, its JSON and its CSV are forms of one answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use serde::Deserialize;

use crate::board_names::BoardNames;
use crate::board_settings::BoardState;
use crate::changes::{ChangeKind, lead};
use crate::pages::fleet::{BoardOrder, Fleet, FleetAnswer, ListedBoard, fleet, matches};
use crate::records::FarmBoard;
use crate::wall_clock::now;
use crate::web::answers::tables::table;
use crate::web::answers::unnamed;
use crate::web::changes::acknowledge::mark;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::state::app::App;
use crate::web::state::found_changes::newest;

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct FleetQuery {
    q: String,
    sort: String,
    state: String,
}

impl FleetQuery {
    /// The state that boards are to be in, if any is asked for.
    fn state(&self) -> Result<Option<BoardState>, Refusal> {
        if self.state.is_empty() {
            return Ok(None);
        }
        let why = "invalid `state`: expected active, maintenance, muted, retired or replaced";
        BoardState::of_word(&self.state).map(Some).ok_or_else(|| Refusal::bad(why))
    }

    /// The order in which boards are to be, if any is asked for.
    fn order(&self) -> Result<Option<BoardOrder>, Refusal> {
        if self.sort.is_empty() {
            return Ok(None);
        }
        let why = "invalid sort: expected worst, name or last";
        BoardOrder::of_word(&self.sort).map(Some).ok_or_else(|| Refusal::bad(why))
    }
}

const COLUMNS: &str = "board,name,state,tags,model,release,preempt,runs,last,max_ns,max24_ns,budget_ns,lab,\
                       last_slot,max_day,state_since,budget_of,changes,last_day,sends,enrolled,environment";

pub async fn boards(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<AnswerForm>,
    Query(query): Query<FleetQuery>,
) -> WebOutcome {
    let order = query.order()?.or((form == AnswerForm::Page).then(BoardOrder::default));
    let answer = listed(&app, &visitor, &query, order).await?;
    match form {
        AnswerForm::Page => {
            let refused = if visitor.is_unnamed() { Default::default() } else { app.refused() };
            let view = Fleet {
                answer: &answer,
                order: order.unwrap_or_default(),
                filter: &query.q,
                state: query.state()?,
                now: now(),
                refused: &refused,
                unnamed: visitor.is_unnamed(),
                keeps: app.intake.is_some(),
            };
            Ok(WebAnswer::page(fleet(&view)))
        }
        AnswerForm::Csv => table(COLUMNS, &answer.boards),
        _ => WebAnswer::json(&answer),
    }
}

/// The boards that are asked for, as who asks may see them, with what changed on all of them.
async fn listed(
    app: &App,
    visitor: &Visitor,
    query: &FleetQuery,
    order: Option<BoardOrder>,
) -> Result<FleetAnswer, Refusal> {
    let state = query.state()?;
    let mut boards = app.store.boards().await?;
    let mut changes = app.changes.known(&boards).await;
    mark(app, &mut changes).await?;
    let before = boards.len();
    unnamed::boards(visitor, &mut boards);
    unnamed::changes(visitor, &boards, &mut changes);
    let (of, hidden) = (boards.len(), before - boards.len());
    let lead = lead(&changes, &BoardNames::of_boards(&boards), visitor.is_unnamed());
    let unsearched = app.changes.unsearched(&boards).await;
    let is_heard = |board: &&FarmBoard| board.max_ns.is_some() && !board.settings.state.is_quiet();
    let worst = boards.iter().filter(is_heard).max_by_key(|board| board.max_ns).cloned();
    let runs = boards.iter().map(|board| board.runs).fold(0, u64::saturating_add);
    let newest = newest(&boards);
    boards
        .retain(|board| matches(board, &query.q) && state.is_none_or(|state| board.settings.state == state));
    if let Some(order) = order {
        boards.sort_by(|a, b| order.compare(a, b));
    }
    let mut open: BTreeMap<String, Vec<ChangeKind>> = BTreeMap::new();
    for one in changes.into_iter().filter(|one| one.is_open()) {
        open.entry(one.board).or_default().push(one.kind);
    }
    // The gravest first, as they lead.
    open.values_mut().for_each(|kinds| kinds.sort());
    let list = |board: FarmBoard| ListedBoard {
        max_day: board.worst_day().map(|day| day.t),
        changes: open.remove(&board.board).unwrap_or_default(),
        board,
    };
    let boards = boards.into_iter().map(list).collect();
    let schema = "onbeat.farm-boards/1";
    Ok(FleetAnswer { schema, lead, unsearched, boards, of, hidden, runs, newest, worst })
}
