//! The lists of the pages as JSON and CSV.

use super::*;
use crate::refused::RefusedBundle;

#[test]
fn lists_as_data_are_narrowed_down_as_the_pages_are() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east")]).await;
        let json = async |address: &str| document(&app, address).await;
        let boards = async |query: &str| {
            let answer = json(&format!("/v1/boards?{query}")).await;
            let all = answer["boards"].as_array().unwrap().iter();
            all.map(|board| board["board"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((boards("q=EAST").await.as_str(), boards("q=no-such").await.as_str()), ("east", ""));
        assert_eq!(
            (boards("").await.as_str(), boards("sort=name").await.as_str()),
            ("east west", "east west")
        );
        let csv = text(get(&app, "/v1/boards.csv?q=wes").await).await;
        assert!(csv.contains("\nwest,") && !csv.contains("\neast,"), "{csv}");
        let all = json("/v1/culprits").await["culprits"].clone();
        assert_eq!(json("/v1/culprits?board=east").await["culprits"], all);
        assert_eq!(json("/v1/culprits?board=west").await["culprits"], serde_json::json!([]));
        assert_eq!(text(get(&app, "/v1/culprits.csv?board=west").await).await.lines().count(), 1);
        let fingerprint = all[0]["fingerprint"].as_str().unwrap();
        let one = json(&format!("/v1/culprits/{fingerprint}")).await;
        assert_eq!((&one["culprit"], one["runs"].as_array().unwrap().len()), (&all[0], 1));
        assert_eq!(one["runs"][0]["board"], "east");
    });
}

#[test]
fn a_list_as_csv_has_what_its_json_has() {
    on_page_engines(async |store| {
        store.set_budget("", Some(model::units::Nanos(1))).await.unwrap();
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east")]).await;
        let json = async |address: &str| document(&app, address).await;
        let slots = json("/v1/boards/west/slots").await;
        // Of each CPU there are lines with `by=cpu`.
        let mut lists = vec![("boards/west/slots", slots, "cpus")];
        for (list, apart) in [
            ("boards", "days"),
            ("runs", ""),
            ("culprits", ""),
            // Who looked at it has columns of its own.
            ("changes", "acknowledged"),
            ("kernels", ""),
        ] {
            lists.push((list, json(&format!("/v1/{list}")).await[list].clone(), apart));
        }
        for (list, all, apart) in lists {
            let csv = text(get(&app, &format!("/v1/{list}.csv")).await).await;
            let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
            let missing = all[0]
                .as_object()
                .unwrap()
                .keys()
                .filter(|name| !columns.contains(&name.as_str()) && *name != apart);
            assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "{list}");
            assert_eq!(csv.lines().count(), all.as_array().unwrap().len() + 1, "{list}: {csv}");
        }
    });
}

#[test]
fn what_the_lists_show_is_there_as_csv_and_environments_as_json() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east")]).await;
        for (list, head, row) in [
            ("boards", "board,name,", "\nwest,west,active,"),
            ("culprits", "fingerprint,rule,", ","),
            ("kernels", "machine,kernel,", ",measure,1,1,"),
            (
                "changes",
                "board,kind,",
                "says,evidence,acknowledged_by,acknowledged_at,note,settings,address,subject,claim\n",
            ),
            ("refused", "place,reason\n", ""),
        ] {
            let response = get(&app, &format!("/v1/{list}.csv")).await;
            assert!(header_of(&response, "content-disposition").starts_with("attachment"), "{list}");
            let text = text(response).await;
            assert!(text.starts_with(head) && text.contains(row), "{text}");
        }
        for (list, head, row) in [
            ("environments", "environment,model,release,", ",1,"),
            ("histograms", "t,cpu,lower_ns,upper_ns,count\n", ",1,"),
        ] {
            let response = get(&app, &format!("/v1/boards/west/{list}.csv")).await;
            assert!(header_of(&response, "content-disposition").starts_with("attachment"), "{list}");
            let text = text(response).await;
            assert!(text.starts_with(head) && text.contains(row) && text.lines().count() > 1, "{text}");
        }
        let run = app.store.runs("west", 1).await.unwrap().remove(0);
        let counts = text(get(&app, "/v1/boards/west/histograms.csv?tier=1d").await).await;
        let counts = counts.lines().skip(1).map(|line| line.rsplit(',').next().unwrap());
        assert_eq!(counts.map(|count| count.parse::<u64>().unwrap()).sum::<u64>(), run.cycles);
        let labels = text(get(&app, "/v1/labels.csv?board=west").await).await;
        assert!(labels.starts_with("name,value,runs,first,last\n"), "{labels}");
        let all = document(&app, "/v1/boards/west/environments").await;
        assert!(all["environments"][0]["settings"].is_object() && all["environments"][0]["runs"] == 1);
    });
}

#[test]
fn of_more_refused_folders_than_are_remembered_all_are_counted() {
    on_page_engines(async |store| {
        let app = app_of(store, &[]).await;
        let folder = |number: usize| RefusedBundle { place: format!("/r/{number}"), reason: "no".into() };
        app.set_refused((0..1_234).map(folder).collect());
        let all = document(&app, "/v1/refused").await;
        assert_eq!((all["refused"].as_array().unwrap().len(), &all["left_out"]), (1_000, &234.into()));
        assert!(text(get(&app, "/metrics").await).await.contains("onbeat_farm_refused 1234\n"));
        let page = text(get(&app, "/").await).await;
        assert!(page.contains("1234 folders hold"), "{page}");
        assert!(page.contains("950 more are in") && page.contains("and 234 not listed"), "{page}");
        app.set_refused((0..60).map(folder).collect());
        assert_eq!(document(&app, "/v1/refused").await["left_out"], 0);
        let page = text(get(&app, "/").await).await;
        assert!(page.contains("60 folders hold") && !page.contains("not listed"), "{page}");
    });
}
