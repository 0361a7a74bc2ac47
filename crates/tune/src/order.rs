//! Order in which rules are applied, by their records (`after`); undo uses the reverse order.

use rules::knob::Knob;

/// Sorts the knobs after those that must precede them; otherwise in the order of the rules.
pub fn ordered(mut knobs: Vec<&'static Knob>) -> Vec<&'static Knob> {
    let mut sorted: Vec<&'static Knob> = Vec::with_capacity(knobs.len());
    while !knobs.is_empty() {
        let waits =
            |knob: &&Knob| knobs.iter().any(|other| other.id != knob.id && knob.after.contains(&other.id));
        // A cycle, which the tests of the rules exclude, is broken at its first rule.
        let next = knobs.iter().position(|knob| !waits(knob)).unwrap_or(0);
        sorted.push(knobs.remove(next));
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::ordered;
    use rules::knobs::ALL;

    #[test]
    fn each_rule_comes_after_those_that_it_names() {
        let backwards: Vec<_> = ALL.iter().rev().copied().collect();
        let sorted = ordered(backwards);
        assert_eq!(sorted.len(), ALL.len());
        for (at, knob) in sorted.iter().enumerate() {
            for before in knob.after {
                let there = sorted.iter().position(|other| other.id == *before);
                assert!(there.is_some_and(|there| there < at), "{} is to come after {before}", knob.id);
            }
        }
    }

    #[test]
    fn what_comes_before_a_rule_at_any_depth_is_set_before_it_and_never_is_itself() {
        let sorted = ordered(ALL.to_vec());
        let place = |id: &str| sorted.iter().position(|knob| knob.id == id);
        for knob in ALL {
            let (mut seen, mut next) = (Vec::new(), knob.after.to_vec());
            while let Some(id) = next.pop() {
                assert_ne!(id, knob.id, "{} has to be set before itself", knob.id);
                assert!(place(id) < place(knob.id), "{id} is to come before {}", knob.id);
                if !seen.contains(&id) {
                    seen.push(id);
                    next.extend(ALL.iter().find(|other| other.id == id).map_or(&[][..], |other| other.after));
                }
            }
        }
    }
}
