//! Farm in memory that follows the contract, and fails as asked.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use bundle::manifest::BundleManifest;
use model::text::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::link::{FarmAnswer, FarmLink, LinkFault, judged};

/// Failures of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    None,
    /// The request does not reach the farm.
    Lost,
    /// The farm handles the request, and the answer is lost.
    Unanswered,
    /// A proxy refuses the request with an error page.
    Refused(u16),
    /// A gateway answers the request with another document.
    Gateway(u16),
}

#[derive(Default)]
pub struct FakeFarm {
    /// Rows by boot, recording, series and number.
    pub rows: BTreeMap<(String, u64), String>,
    /// Keys of rows, in order of arrival.
    pub order: Vec<(String, u64)>,
    pub had: u64,
    pub runs: BTreeMap<String, BundleManifest>,
    /// True if it lists runs with their manifests, as those that are not over.
    pub says_manifests: bool,
    /// Ids of runs that were removed and may not come again.
    pub removed: BTreeSet<String>,
    pub pieces: BTreeSet<String>,
    pub requests: u64,
    /// Number of requests for what the farm has.
    pub asked: u64,
    /// True if it lists only a part of what it has.
    pub is_cut: bool,
    /// Limit of runs, and of stretches of rows, per answer.
    pub most_named: Option<usize>,
    /// Runs and rows that the board dropped.
    pub dropped: (u64, u64),
    /// Environments by the names that rows use.
    pub environments: BTreeMap<String, Value>,
    /// True if rows must name known environments.
    pub wants_environments: bool,
    /// Number of runs that the board leaves out.
    pub left_out: u64,
    /// Numbers of rows that it calls malformed.
    pub malformed: BTreeSet<u64>,
    /// Limit of lines per request.
    pub most_lines: Option<usize>,
    pub trouble: Option<Box<dyn FnMut(u64) -> Trouble>>,
}

type Answered = Result<FarmAnswer, LinkFault>;

fn answer(status: u16, mut body: Value) -> FarmAnswer {
    if body.get("detail").is_some() {
        body["status"] = status.into();
    }
    FarmAnswer { status, body }
}

/// Acknowledgement of the item with this id.
fn received(id: &str) -> Value {
    json!({ "schema": "onbeat.received/1", "id": id })
}

fn received_run(id: &str, manifest: &[u8]) -> Value {
    let mut told = received(id);
    told["manifest"] = json!(hex(&Sha256::digest(manifest)));
    told
}

impl FakeFarm {
    fn troubled(&mut self, act: impl FnOnce(&mut FakeFarm) -> FarmAnswer) -> Answered {
        self.requests += 1;
        let lost = || LinkFault::Later { detail: "lost".into(), after_s: None };
        let number = self.requests;
        match self.trouble.as_mut().map_or(Trouble::None, |trouble| trouble(number)) {
            Trouble::None => Ok(act(self)),
            Trouble::Lost => Err(lost()),
            Trouble::Refused(status) => judged(status, Value::Null, None),
            Trouble::Gateway(status) => judged(status, json!({ "status": "maintenance", "code": 42 }), None),
            Trouble::Unanswered => {
                act(self);
                Err(lost())
            }
        }
    }

    fn put_rows(&mut self, path: &str, text: &str) -> FarmAnswer {
        let (of, first) = path.trim_start_matches("/v1/rows/").rsplit_once('/').unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let header: Value = serde_json::from_str(lines[0]).unwrap();
        let named =
            ["boot", "recording", "series"].map(|field| header[field].as_str().unwrap().to_owned()).join("/");
        assert_eq!((header["schema"].as_str(), named.as_str()), (Some("onbeat.rows/1"), of));
        if self.most_lines.is_some_and(|most| lines.len() - 1 > most) {
            return answer(413, json!({ "detail": "too many" }));
        }
        let seq = |line: &str| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap();
        let rows: Vec<(u64, &str)> = lines[1..].iter().map(|line| (seq(line), *line)).collect();
        assert_eq!(rows[0].0.to_string(), first);
        assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "{rows:?}");
        if self.wants_environments {
            let env =
                |line: &str| serde_json::from_str::<Value>(line).unwrap()["env"].as_str().unwrap().to_owned();
            assert!(rows.iter().all(|row| self.environments.contains_key(&env(row.1))), "{of}/{first}");
        }
        if let Some(at) = rows.iter().position(|row| self.malformed.contains(&row.0)) {
            return answer(422, json!({ "line": at + 2, "detail": "no row" }));
        }
        let (mut stored, mut had, mut other) = (0, 0, Vec::new());
        for (seq, line) in rows {
            let key = (of.to_owned(), seq);
            match self.rows.get(&key) {
                None => {
                    stored += 1;
                    self.rows.insert(key.clone(), line.to_owned());
                    self.order.push(key);
                }
                Some(known) if known == line => had += 1,
                Some(_) => other.push(seq),
            }
        }
        self.had += had;
        let status = if !other.is_empty() {
            409
        } else if stored > 0 {
            201
        } else {
            200
        };
        answer(status, json!({ "stored": stored, "had": had, "seq": other }))
    }

    fn put_environment(&mut self, digest: &str, bytes: &[u8]) -> FarmAnswer {
        assert_eq!(hex(&Sha256::digest(bytes)), digest);
        let document: Value = serde_json::from_slice(bytes).unwrap();
        let env = document["env"].as_str().unwrap().to_owned();
        let is_new = self.environments.insert(env, document).is_none();
        answer(if is_new { 201 } else { 200 }, received(digest))
    }

    fn put_run(&mut self, id: &str, text: &[u8]) -> FarmAnswer {
        let manifest = BundleManifest::read(text).unwrap();
        if self.removed.contains(id) {
            return answer(409, json!({ "detail": "it was removed", "removed": true }));
        }
        if self.runs.get(id) == Some(&manifest) {
            return answer(200, received_run(id, text));
        }
        let missing: Vec<&str> =
            manifest.pieces().into_iter().filter(|piece| !self.pieces.contains(*piece)).collect();
        if !missing.is_empty() {
            return answer(202, json!({ "missing": missing }));
        }
        self.runs.insert(id.to_owned(), manifest);
        answer(201, received_run(id, text))
    }
}

impl FarmLink for FakeFarm {
    fn say_dropped(&mut self, runs: u64, rows: u64) {
        self.dropped = (runs, rows);
    }

    fn say_left_out(&mut self, runs: u64) {
        self.left_out = runs;
    }

    fn get(&mut self, path: &str) -> Answered {
        if let Some(ids) = path.strip_prefix("/v1/me/removed?runs=") {
            return self.troubled(|farm| {
                let still: Vec<&str> = ids.split(',').filter(|id| farm.removed.contains(*id)).collect();
                answer(200, json!({ "removed": still }))
            });
        }
        let page = path.strip_prefix("/v1/me?").unwrap();
        self.asked += u64::from(page == "most=1000");
        self.troubled(|farm| {
            let stretch = |(of, seq): &(String, u64)| {
                let names: Vec<&str> = of.split('/').collect();
                let [boot, recording, series] = names[..] else { panic!("{of}") };
                json!({ "boot": boot, "recording": recording, "series": series, "first": seq, "last": seq })
            };
            let stretches: Vec<Value> = farm.rows.keys().map(stretch).collect();
            let runs: Vec<Value> = farm
                .runs
                .iter()
                .map(|(id, manifest)| {
                    let mut told = json!({ "id": id, "digest": manifest.run_digest() });
                    if farm.says_manifests {
                        told["manifest"] = json!(hex(&Sha256::digest(serde_json::to_vec(manifest).unwrap())));
                    }
                    told
                })
                .collect();
            let Some(most) = farm.most_named else {
                let mut told = json!({ "board": "board", "runs": runs, "stretches": stretches });
                told["whole"] = json!(!farm.is_cut);
                return answer(200, told);
            };
            // Pages of `most` items each, regardless of the number that the board asks for.
            let from = page.strip_prefix("page=").map_or(0, |page| page.parse::<usize>().unwrap());
            let part = |all: &[Value]| all.iter().skip(from * most).take(most).cloned().collect::<Vec<_>>();
            let is_whole = (from + 1) * most > runs.len().max(stretches.len());
            let (runs, stretches) = (part(&runs), part(&stretches));
            let mut told =
                json!({ "board": "board", "runs": runs, "stretches": stretches, "whole": is_whole });
            if !is_whole {
                told["next"] = json!(format!("page={}", from + 1));
            }
            answer(200, told)
        })
    }

    fn put(&mut self, path: &str, bytes: &[u8]) -> Answered {
        self.troubled(|farm| {
            if let Some(id) = path.strip_prefix("/v1/runs/") {
                return farm.put_run(id, bytes);
            }
            match path.strip_prefix("/v1/environments/") {
                Some(digest) => farm.put_environment(digest, bytes),
                None => farm.put_rows(path, std::str::from_utf8(bytes).unwrap()),
            }
        })
    }

    fn stream(&mut self, path: &str, body: &mut dyn Read) -> Answered {
        let name = path.trim_start_matches("/v1/pieces/").to_owned();
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes).unwrap();
        self.troubled(|farm| {
            if hex(&Sha256::digest(&bytes)) != name {
                return answer(422, json!({ "detail": "other bytes" }));
            }
            let told = received(&name);
            answer(if farm.pieces.insert(name) { 201 } else { 200 }, told)
        })
    }
}
