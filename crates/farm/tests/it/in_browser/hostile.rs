//! Names from boards and users that are markup, or control a terminal: whatever the farm accepts of
//! them is text on its pages.

use std::fs;

use farm::ingest::board_key::board_key;
use serde_json::{Value, json};

use super::browser::Browser;
use super::links::on_each_kind;
use super::made_store::{MadeStore, runs};
use crate::server::{ask, codes};

/// Names in the recorded hunt: culprit, its function, the kernel, the machine; and their
/// replacements, as JSON.
const RECORDED: [(&str, &str); 4] = [
    ("fault_hogger", r"<img src=x onerror=alert(1)>\u202e\u0007"),
    ("fault_hog_function", r#"\"><iframe src=//evil.test>"#),
    ("6.12.117+deb12-rt-amd64", "6.12<script>alert(2)</script>"),
    ("QEMU TCG CPU version 2.5+", r"<svg onload=alert(3)>\u2066"),
];
/// A label of it.
const LABELLED: &str = r#""labels":{"build":"<b onclick=alert(4)>1</b>"},"started":"#;
/// Names given by recorders and boards.
const CULPRIT: &str = "<img src=x onerror=alert(5)>\u{202e}";
const BOARD: &str = "<em onclick=alert(6)>\u{202e}b";
/// Names of boards: one with an imported run, and one that enrols and sends nothing.
const IMPORTED: &str = "<u>hostile</u>\u{202e}";
const SILENT: &str = "<marquee>";
/// Names given by users.
const NAME: &str = "<script>alert(7)</script>";
const NOTE: &str = "</p><base href=//evil.test><p style=\"all:unset\">";

/// Imports a run with hostile names only, of a board with a hostile name.
pub fn import(store: &MadeStore) {
    let (from, to) = (runs().join("hunt"), store.at("hostile"));
    fs::create_dir_all(to.join("events")).unwrap();
    for file in ["run.json", "blocks.jsonl", "events/spikes.jsonl"] {
        let mut text = fs::read_to_string(from.join(file)).unwrap();
        if file == "run.json" {
            assert!(RECORDED.iter().all(|(name, _)| text.contains(name)));
            text = text.replacen("\"started\":", LABELLED, 1);
        }
        for (name, hostile) in RECORDED {
            text = text.replace(name, hostile);
        }
        fs::write(to.join(file), text).unwrap();
    }
    store.import(IMPORTED, &to);
}

/// Sends five minutes of a board that enrols; another enrols and sends nothing.
pub fn send(store: &MadeStore, server: &str) {
    let tokens: Vec<Value> = codes(&store.url, 2)
        .iter()
        .zip([BOARD, SILENT])
        .map(|(code, name)| {
            let asked = json!({ "code": code, "name": name }).to_string();
            let (status, answer) = ask(server, "POST", "/v1/enrol", "", "", asked).unwrap();
            assert_eq!(status, 201, "{answer}");
            answer["token"].clone()
        })
        .collect();
    // One wake-up, in row 200 of its histogram.
    let cpu = json!({
        "cpu": 0, "n": 1, "missed": 0, "early": 0, "min_ns": 9_000, "sum_ns": 9_000, "max_ns": 9_000,
        "max_mono_ns": 400_000_000_000_u64, "top_ns": [], "layout": "log32", "hist": "yAEAAQ",
        "victim": { "comm": "<s>victim", "pid": 1, "prio": 0 },
        "culprit": { "rule": null, "name": CULPRIT, "kind": "<h1>thread", "share": 0.9 }, "spike": null
    });
    let row = json!({
        "seq": 0, "mono_ns": 300_000_000_000_u64, "span_ns": 300_000_000_000_u64,
        "wall_ns": 1_795_324_800_000_000_000_u64, "env": "", "integrity": [], "cpus": [cpu]
    });
    let (row, token) = (format!("{row}\n"), tokens[0].as_str().unwrap());
    let (status, answer) = ask(server, "PUT", "/v1/rows/b/r/timer/0", token, "", row).unwrap();
    assert_eq!((status, &answer["stored"]), (201, &json!(1)), "{answer}");
}

/// Writes markup into the forms of the farm.
pub async fn write(browser: &Browser) {
    browser.go(&format!("/admin/boards/{}", board_key(IMPORTED))).await;
    browser.fill("input[name=name]", NAME).await;
    browser.press("form.fields button").await;
    browser.go("/admin").await;
    browser.fill("form[action='/admin/budgets'] input[name=limit]", "1us").await;
    browser.press("form[action='/admin/budgets'] button").await;
    browser.go(&format!("/changes?board={}", board_key(IMPORTED))).await;
    browser.click("details:has(form) summary").await;
    browser.fill("section.finding textarea", NOTE).await;
    browser.press("section.finding form button").await;
}

/// Elements and attributes that no page of the farm has, scripts other than those named by their
/// digest, and characters that reverse the direction of a text or control a terminal.
const MORE_THAN_TEXT: &str = r"
    const named = 'img, iframe, object, embed, marquee, u, em, s, b, base, [onclick], [onload], [onerror], ' +
        'p[style], main h1 ~ h1, head script, main script[src]';
    const found = [...document.querySelectorAll(named)].map((one) => one.outerHTML.slice(0, 80));
    const scripts = [...document.scripts].filter((one) => one.textContent.startsWith('alert'));
    const turns = /[\u0000-\u0008\u001b\u202a-\u202e\u2066-\u2069]/.exec(document.documentElement.innerHTML);
    return [...found, ...scripts.map((one) => one.outerHTML), ...(turns ? ['turns at ' + turns.index] : [])]";

/// Checks that it is only text on every kind of page. A script run by a page, such as an alert,
/// would make the next command fail, and the browser complain of violations of the policy.
pub async fn nothing_of_it_is_more_than_text(browser: &Browser) {
    // A board without data has different links, and so have acknowledged changes.
    let [silent, board, imported] = [SILENT, BOARD, IMPORTED].map(|name| format!("/b/{}", board_key(name)));
    let day = format!("{silent}?span=day");
    let some = [day.as_str(), &board, "/changes?only=all"];
    let kinds = on_each_kind(browser, &some, async |page: &str| {
        let found: Vec<String> = browser.told(MORE_THAN_TEXT, Vec::new()).await;
        assert_eq!(found, Vec::<String>::new(), "{page}");
    });
    let kinds = kinds.await;
    assert!(kinds >= 30, "{kinds}");
    for (page, words) in [
        ("/", NAME),
        ("/", "<em onclick=alert(6)>"),
        (imported.as_str(), "6.12<script>alert(2)</script>"),
        (imported.as_str(), "<svg onload=alert(3)>"),
        ("/runs", "build=<b onclick=alert(4)>1</b>"),
        ("/culprits", "<img src=x onerror=alert(1)>"),
        ("/culprits", "<img src=x onerror=alert(5)>"),
        ("/changes?only=acknowledged", NOTE),
    ] {
        browser.go(page).await;
        let text = browser.text("main").await;
        assert!(text.contains(words), "{words} is not on {page}: {text}");
    }
}
