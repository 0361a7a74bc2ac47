//! The tail beyond what was seen: extreme value laws fitted to values that were recorded in steps, with profile bounds.
