//! Logging in and out, setting properties of boards and users, acknowledging changes; and the state
//! after a kill of the server.

use serde_json::json;

use super::browser::Browser;
use super::made_store::{HUNT, HUNTED, PASSWORD, log_in};
use crate::server::{Server, ask};

/// Forms that change something, except for the logout.
const CHANGING: &str = "form[method=post]:not([action='/logout'])";
/// Changes that are to be looked at.
const OPEN: &str = "section.finding.high";

/// Without a login only the link to it is shown; it leads back to the page, and the logout hides
/// everything again.
pub async fn a_login_leads_back_and_ends(browser: &Browser) {
    let wanted = format!("/b/{HUNTED}?span=all");
    browser.go(&wanted).await;
    assert_eq!(browser.here().await, "/login?next=%2Fb%2Fkiln-9%3Fspan%3Dall");
    assert_eq!(browser.text("h1").await, "Log in");
    browser.fill("input[name=name]", "ann").await;
    browser.fill("input[name=password]", "wrong horse battery").await;
    browser.press("form[action='/login'] button").await;
    let refused = browser.text("[role=alert]").await;
    assert!(refused.contains("Wrong name or password"), "{refused}");
    browser.was_refused("401").await;
    browser.fill("input[name=name]", "ann").await;
    browser.fill("input[name=password]", PASSWORD).await;
    browser.press("form[action='/login'] button").await;
    assert_eq!((browser.here().await, browser.text("h1").await), (wanted.clone(), HUNTED.to_owned()));
    let cookies: String = browser.told("return document.cookie", Vec::new()).await;
    assert_eq!(cookies, "", "a script could read the session");

    browser.press("//nav//a[.='Account']").await;
    let known = browser.text("p.lead").await;
    assert!(known.contains("You are ann (admin)"), "{known}");
    browser.press("form[action='/logout'] button").await;
    assert_eq!(browser.text("h1").await, "Log in");
    // The browser's own copies of pages went, too.
    for _ in 0..2 {
        browser.back().await;
        assert_eq!(browser.text("h1").await, "Log in", "{}", browser.here().await);
    }
    browser.go(&wanted).await;
    assert_eq!(browser.text("h1").await, "Log in");
}

/// Settings on the administration's pages take effect, and are shown on the others.
pub async fn what_an_admin_sets_is_seen(browser: &Browser, server: &str) {
    log_in(browser, "ann", PASSWORD).await;
    a_code_lets_one_board_in(browser, server).await;
    budgets_states_and_tags_are_seen(browser).await;
    a_new_user_has_what_the_role_gives(browser).await;
}

async fn a_code_lets_one_board_in(browser: &Browser, server: &str) {
    browser.go("/admin").await;
    browser.press("form[action='/admin/codes'] button").await;
    let code = browser.text("div.next pre.copy").await;
    assert!(code.len() == 32 && code.bytes().all(|byte| byte.is_ascii_hexdigit()), "{code}");
    browser.go("/admin").await;
    let page = browser.text("main").await;
    assert!(!page.contains(&code) && page.contains("1 code is valid and unused."), "{page}");
    let asked = json!({ "code": code, "name": "lathe-1" }).to_string();
    let (status, answer) = ask(server, "POST", "/v1/enrol", "", "", &asked).unwrap();
    assert_eq!(status, 201, "{answer}");
    let token = answer["token"].as_str().unwrap();
    assert_eq!(ask(server, "GET", "/v1/me", token, "", "").unwrap().0, 200);
    browser.go("/admin/boards/lathe-1").await;
    browser.press("form[action$='/revoke'] button").await;
    let page = browser.text("main").await;
    assert!(page.contains("It has no token"), "{page}");
    assert_eq!(ask(server, "GET", "/v1/me", token, "", "").unwrap().0, 401);
}

async fn budgets_states_and_tags_are_seen(browser: &Browser) {
    browser.go("/admin").await;
    browser.fill("form[action='/admin/budgets'] input[name=limit]", "150us").await;
    browser.press("form[action='/admin/budgets'] button").await;
    assert_eq!(browser.value("form[action='/admin/budgets'] input[name=limit]").await, "150us");
    browser.go("/b/kiln-9").await;
    let budget = browser.text("//p[starts-with(., 'Its budget')]").await;
    assert!(budget.contains("150 us") && budget.contains("20.8 ms, over it"), "{budget}");

    browser.press("//a[.='Set state, tags and budget']").await;
    browser.choose("select[name=state]", "maintenance").await;
    browser.fill("input[name=tags]", "lab=east arm").await;
    browser.fill("input[name=budget]", "30ms").await;
    browser.press("form.fields button").await;
    let lead = browser.text("p.lead").await;
    assert!(lead.contains("in maintenance") && lead.contains("30 ms"), "{lead}");
    browser.press("//a[.=\"the board's page\"]").await;
    let page = browser.text("main").await;
    assert!(page.contains("its changes are not reported") && !page.contains("over it"), "{page}");
    browser.press("//a[.='lab=east']").await;
    assert_eq!(browser.here().await, "/?q=lab%3Deast");
    let row = browser.text("tbody").await;
    assert!(browser.count("tbody tr").await == 1 && row.contains("in maintenance"), "{row}");
    // For the later scenes it is an ordinary board.
    browser.go("/admin/boards/kiln-9").await;
    browser.choose("select[name=state]", "active").await;
    browser.fill("input[name=budget]", "").await;
    browser.press("form.fields button").await;

    browser.go("/admin").await;
    let done = browser.text("//h2[.='Audit log']/following-sibling::*[1]").await;
    for words in
        ["created 1 code", "set the budget of all boards: 150 us", "set kiln-9: kiln-9, in maintenance"]
    {
        assert!(done.contains(words), "{words}: {done}");
    }
}

async fn a_new_user_has_what_the_role_gives(browser: &Browser) {
    browser.go("/admin").await;
    browser.fill("form[action='/admin/users'] input[name=name]", "bob").await;
    browser.choose("form[action='/admin/users'] select", "operator").await;
    browser.press("form[action='/admin/users'] button").await;
    let password = browser.text("div.next pre.copy").await;
    log_in(browser, "bob", &password).await;
    browser.go("/admin").await;
    assert!(browser.count("form[action='/admin/budgets']").await > 0);
    for left_out in ["form[action^='/admin/users']", "form[action='/admin/codes']"] {
        assert_eq!(browser.count(left_out).await, 0, "{left_out}");
    }
}

/// An acknowledged change is no longer open, until it is reopened.
pub async fn a_change_is_acknowledged(browser: &Browser) {
    log_in(browser, "ann", PASSWORD).await;
    browser.go("/changes").await;
    let open = browser.count(OPEN).await;
    // The budget that was set is broken by two boards at least.
    assert!(open > 1, "{open}");
    let lead = browser.text("p.lead").await;
    assert!(lead.starts_with(&format!("{open} open changes")), "{lead}");
    let board = browser.text(&format!("{OPEN} h3 a")).await;
    browser.click(&format!("{OPEN} details:has(form) summary")).await;
    browser.fill(&format!("{OPEN} textarea"), "the new cable").await;
    browser.press(&format!("{OPEN} form button")).await;
    assert_eq!(browser.here().await, format!("/changes?board={board}"));
    browser.press("//a[.='of all boards']").await;
    assert_eq!(browser.count(OPEN).await, open - 1);
    let lead = browser.text("p.lead").await;
    assert!(lead.starts_with(&format!("{} open change", open - 1)), "{lead}");

    browser.press("//a[.='acknowledged']").await;
    let one = browser.text("section.finding").await;
    assert!(browser.count("section.finding").await == 1 && one.contains(&board), "{one}");
    assert!(one.contains("Acknowledged by ann") && one.contains("the new cable"), "{one}");
    browser.press("//button[.='Reopen']").await;
    browser.go("/changes").await;
    assert_eq!(browser.count(OPEN).await, open);
}

/// A viewer reads all of it, and has no form that changes anything.
pub async fn who_has_a_smaller_role_is_offered_less(browser: &Browser) {
    log_in(browser, "ann", PASSWORD).await;
    let run = format!("/runs/{HUNT}");
    let pages = ["/changes", "/b/kiln-9", run.as_str(), "/login"];
    for page in &pages[..3] {
        browser.go(page).await;
        let may = browser.count(&format!("{CHANGING}, a[href^='/admin']")).await;
        assert!(may > 0, "{page} has nothing for an admin");
    }
    log_in(browser, "vic", PASSWORD).await;
    for page in pages {
        browser.go(page).await;
        assert_eq!(browser.count(&format!("{CHANGING}, a[href^='/admin']")).await, 0, "{page}");
    }
    browser.go("/admin").await;
    assert_eq!(browser.text("h1").await, "Not permitted");
    let why = browser.text("p.lead").await;
    assert!(why.contains("vic is viewer: ask an administrator"), "{why}");
    browser.was_refused("403").await;
}

/// A session survives the server, and so does a form that was open during the restart.
pub async fn a_killed_server_goes_on_where_it_was(browser: &Browser, store: &str, server: &mut Server) {
    log_in(browser, "ann", PASSWORD).await;
    browser.go("/admin/boards/press-001").await;
    browser.fill("input[name=tags]", "kept").await;
    server.kill();
    *server = Server::at(&server.address, store, &[]);
    browser.press("form.fields button").await;
    assert_eq!(browser.here().await, "/admin/boards/press-001");
    assert_eq!(browser.value("input[name=tags]").await, "kept");
    browser.go("/?q=kept").await;
    assert_eq!(browser.text("tbody th").await, "press-001");
}
