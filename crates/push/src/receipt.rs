//! Checks that an answer is a farm's: an acknowledgement names what it acknowledges. A gateway
//! under maintenance may answer every request with 200 and a document, and what that seemed to
//! acknowledge would be lost.

use bundle::manifest::{BundleManifest, RECEIVED_SCHEMA};
use serde_json::Value;

use super::link::FarmAnswer;

/// True if the answer acknowledges an item by its id: the digest of a piece or an environment.
pub fn is_of(answer: &FarmAnswer, id: &str) -> bool {
    answer.body["schema"] == RECEIVED_SCHEMA && answer.body["id"] == id
}

/// True if the answer acknowledges a run in the state of the manifest with this digest.
pub fn is_of_run(answer: &FarmAnswer, id: &str, manifest: &str) -> bool {
    is_of(answer, id) && answer.body["manifest"] == manifest
}

/// Pieces that the answer asks for: at least one, all of them of the manifest; else none.
pub fn asked_for<'a>(answer: &'a FarmAnswer, manifest: &BundleManifest) -> Option<Vec<&'a str>> {
    let pieces = manifest.pieces();
    let named = answer.body["missing"].as_array()?.iter();
    let known = |piece: &'a Value| piece.as_str().filter(|piece| pieces.contains(piece));
    named.map(known).collect::<Option<Vec<&str>>>().filter(|some| !some.is_empty())
}

/// True if the answer accounts for each of the rows with these numbers.
pub fn is_of_rows(answer: &FarmAnswer, rows: &[u64]) -> bool {
    let number = |name: &str| answer.body[name].as_u64();
    let Some(other) = answer.body["seq"].as_array() else { return false };
    let is_sent = |seq: &Value| seq.as_u64().is_some_and(|seq| rows.contains(&seq));
    let there = number("stored").zip(number("had")).and_then(|(stored, had)| stored.checked_add(had));
    let told = there.and_then(|there| there.checked_add(other.len() as u64));
    told == Some(rows.len() as u64) && other.iter().all(is_sent)
}

/// True if the answer lists what the farm has of a board.
pub fn is_of_board(answer: &FarmAnswer) -> bool {
    let has = |one: &Value, names: &[&str]| names.iter().all(|name| one[*name].is_string());
    let all = |name: &str, is_one: &dyn Fn(&Value) -> bool| {
        answer.body[name].as_array().is_some_and(|all| all.iter().all(is_one))
    };
    let is_run = |run: &Value| has(run, &["id", "digest"]);
    let is_stretch = |one: &Value| {
        has(one, &["boot", "recording", "series"]) && one["first"].is_u64() && one["last"].is_u64()
    };
    let next = &answer.body["next"];
    has(&answer.body, &["board"])
        && answer.body["whole"].is_boolean()
        && (next.is_null() || next.is_string())
        && all("runs", &is_run)
        && all("stretches", &is_stretch)
}

/// Runs among `asked` that the answer lists as removed; none if it is not such a list.
pub fn removed_of<'a>(answer: &'a FarmAnswer, asked: &[&str]) -> Option<Vec<&'a str>> {
    let named = answer.body["removed"].as_array()?.iter();
    named.map(|one| one.as_str().filter(|id| asked.contains(id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::manifest::ManifestFile;
    use serde_json::json;

    fn of(body: Value) -> FarmAnswer {
        FarmAnswer { status: 200, body }
    }

    #[test]
    fn an_acknowledgement_names_what_it_is_of() {
        let whole = json!({ "schema": "onbeat.received/1", "id": "r1", "manifest": "ab", "remarks": [] });
        assert!(is_of_run(&of(whole.clone()), "r1", "ab") && is_of(&of(whole.clone()), "r1"));
        assert!(!is_of_run(&of(whole.clone()), "r1", "cd") && !is_of_run(&of(whole.clone()), "r2", "ab"));
        for member in ["schema", "id", "manifest"] {
            let mut other = whole.clone();
            other[member] = json!(null);
            assert!(!is_of_run(&of(other), "r1", "ab"), "{member}");
        }
        assert!(!is_of(&of(json!({})), "r1") && !is_of(&of(json!({ "status": "maintenance" })), "r1"));
    }

    #[test]
    fn of_rows_each_is_told_and_no_other() {
        let rows = [3, 4, 9];
        for (body, is_one) in [
            (json!({ "stored": 3, "had": 0, "seq": [] }), true),
            (json!({ "stored": 1, "had": 1, "seq": [9], "undated": 1 }), true),
            (json!({ "stored": 0, "had": 0, "seq": [3, 4, 9] }), true),
            (json!({ "status": 409, "detail": "other", "stored": 1, "had": 1, "seq": [4] }), true),
            (json!({ "stored": 2, "had": 0, "seq": [] }), false),
            (json!({ "stored": 3, "had": 1, "seq": [] }), false),
            (json!({ "stored": 2, "had": 0, "seq": [5] }), false),
            (json!({ "stored": u64::MAX, "had": u64::MAX, "seq": [] }), false),
            (json!({ "stored": 3, "seq": [] }), false),
            (json!({ "stored": 3, "had": 0 }), false),
            (json!({ "seq": [] }), false),
            (json!({ "status": "maintenance", "code": 42 }), false),
        ] {
            assert_eq!(is_of_rows(&of(body.clone()), &rows), is_one, "{body}");
        }
    }

    #[test]
    fn pieces_are_asked_for_by_their_names() {
        let pieces = ["a", "b"].map(|one| one.repeat(64));
        let file = ManifestFile { path: "run.json".into(), bytes: 9, pieces: pieces.to_vec() };
        let manifest = BundleManifest { files: vec![file], ..BundleManifest::default() };
        let [a, b] = &pieces;
        assert_eq!(asked_for(&of(json!({ "missing": [b] })), &manifest), Some(vec![b.as_str()]));
        for odd in [json!([]), json!([a, "c"]), json!([a, 1]), json!({ "a": 1 }), json!(null)] {
            assert_eq!(asked_for(&of(json!({ "missing": odd })), &manifest), None, "{odd}");
        }
    }

    #[test]
    fn what_a_board_has_there_is_said_whole() {
        let run = json!({ "id": "r1", "complete": true, "digest": "ab" });
        let rows = json!({ "boot": "b", "recording": "r", "series": "timer", "first": 0, "last": 9 });
        let whole = json!({
            "board": "a", "rows": [], "runs": [run], "stretches": [rows], "whole": false, "next": "most=1"
        });
        assert!(is_of_board(&of(whole.clone())));
        let odd = [
            ("board", json!(null)),
            ("runs", json!(5)),
            ("runs", json!([{ "id": "r1" }])),
            ("stretches", json!("x")),
            ("stretches", json!([{ "boot": "b", "first": 0, "last": 9 }])),
            ("whole", json!(null)),
            ("next", json!(7)),
        ];
        for (name, value) in odd {
            let mut other = whole.clone();
            other[name] = value;
            assert!(!is_of_board(&of(other.clone())), "{other}");
        }
        let asked = ["r1", "r2"];
        assert_eq!(removed_of(&of(json!({ "removed": ["r2"] })), &asked), Some(vec!["r2"]));
        assert_eq!(removed_of(&of(json!({ "removed": [] })), &asked), Some(Vec::new()));
        for odd in [json!(["r3"]), json!([1]), json!(true), json!(null)] {
            assert_eq!(removed_of(&of(json!({ "removed": odd })), &asked), None, "{odd}");
        }
    }
}
