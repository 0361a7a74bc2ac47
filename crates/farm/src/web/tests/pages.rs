//! Pages, and where they lead.

use super::*;

#[test]
fn every_page_of_a_fleet_is_there_and_leads_to_the_next() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east <b>")]).await;
        let run = app.store.runs("west", 1).await.unwrap().remove(0);
        let east = crate::ingest::board_key::board_key("east <b>");
        let hunt = app.store.runs(&east, 1).await.unwrap().remove(0);
        let culprit = app.store.culprits(None, 1).await.unwrap().remove(0);
        let addresses = [
            "/".to_owned(),
            "/?q=west&sort=name".to_owned(),
            "/b/west".to_owned(),
            format!("/b/west?series={}&plan={}&span=all", run.key.series, run.key.plan),
            format!("/b/{east}/env"),
            format!("/b/west/at/{}", run.started),
            format!("/b/west/at/{}?worst=day", run.started),
            "/changes?only=all&board=west".to_owned(),
            "/kernels".to_owned(),
            format!("/runs/{}", run.id),
            format!("/runs/{}", hunt.id),
            format!("/runs/{}/spike/1", hunt.id),
            "/culprits".to_owned(),
            format!("/culprits/{}", culprit.fingerprint),
            "/compare".to_owned(),
            format!("/compare?a={}&b={}", run.id, hunt.id),
        ];
        for address in &addresses {
            let response = get(&app, address).await;
            assert_eq!(response.status(), StatusCode::OK, "{address}");
            let policy = header_of(&response, "content-security-policy");
            assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
            assert_eq!(header_of(&response, "x-content-type-options"), "nosniff");
            let text = text(response).await;
            assert!(text.contains("/assets/farm.css") && text.contains("</html>"), "{address}");
            assert!(
                !text.contains("src=\"") && !text.contains("http://") && !text.contains("<b>"),
                "{address}"
            );
            for link in text.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next()) {
                let link = format!("/{}", link.replace("&amp;", "&"));
                let status = get(&app, &link).await.status();
                assert!(status.is_success(), "{address} leads to {link}: {status}");
            }
        }
        let front = text(get(&app, "/").await).await;
        assert!(front.contains("href=\"/b/west\"") && front.contains("2 boards, 2 runs"));
        // Every largest latency leads to its five minutes, these to the run.
        assert!(front.contains("?worst=day"));
        let moment = text(get(&app, &format!("/b/west/at/{}?worst=day", run.started)).await).await;
        assert!(moment.contains("The largest latency was") && moment.contains(&format!("/runs/{}", run.id)));
    });
}

#[test]
fn where_the_farm_keeps_a_bundle_is_on_no_page() {
    on_page_engines(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept+0123");
        std::os::unix::fs::symlink(place("hunt"), &kept).unwrap();
        let app = app_of(store, &[(&kept, "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let other = app.store.run(&run.id).await.unwrap().unwrap();
        assert!(other.place.contains("kept+0123"));
        for address in ["", "/spike/1"].map(|rest| format!("/runs/{}{rest}", run.id)) {
            let text = text(get(&app, &address).await).await;
            assert!(!text.contains("kept+0123") && text.contains(&run.id), "{address}");
        }
    });
}

#[test]
fn the_script_of_a_hunt_is_the_only_one_that_may_run() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("hunt"), "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let response = get(&app, &format!("/runs/{}", run.id)).await;
        let policy = header_of(&response, "content-security-policy");
        assert!(policy.contains("script-src 'sha256-") && !policy.contains("script-src 'unsafe"), "{policy}");
        let front = get(&app, "/").await;
        assert!(!header_of(&front, "content-security-policy").contains("script-src"));
    });
}

#[test]
fn five_minutes_lead_to_the_spikes_that_were_recorded_in_them() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("hunt"), "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let page = text(get(&app, &format!("/b/a/at/{}?worst=day", run.started)).await).await;
        assert!(page.contains("Spikes in these five minutes"));
        let spike = format!("/runs/{}/spike/1", run.id);
        assert!(page.contains(&format!("href=\"{spike}\"")), "{page}");
        assert_eq!(get(&app, &spike).await.status(), StatusCode::OK);
        // A bundle that is gone takes the way there with it, and nothing else.
        app.store.moved(&run.id, "/nowhere").await.unwrap();
        let page = text(get(&app, &format!("/b/a/at/{}?worst=day", run.started)).await).await;
        assert!(page.contains("The largest latency was") && !page.contains("Spikes in these"));
    });
}

#[test]
fn a_board_is_called_by_its_name_on_the_pages_of_its_runs() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("hunt"), "east <b>")]).await;
        let east = crate::ingest::board_key::board_key("east <b>");
        let run = app.store.runs(&east, 1).await.unwrap().remove(0);
        for address in ["", "/spike/1"].map(|rest| format!("/runs/{}{rest}", run.id)) {
            let text = text(get(&app, &address).await).await;
            let path = format!("<p class=\"path\"><a href=\"/b/{east}\">east &lt;b&gt;</a>, ");
            assert!(text.contains(&path), "{address}: {text}");
        }
    });
}
