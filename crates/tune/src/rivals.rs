//! Programs that own settings: what one of them would set again is left to it.

use facts::survey::Survey;
use model::plan::PlanDocument;

/// Leaves out what a running program owns, unless it is to be taken over.
pub fn leave_out(_survey: &Survey, _plan: &mut PlanDocument, _take_over: bool) {}
