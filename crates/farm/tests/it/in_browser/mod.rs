//! The farm's pages in headless Chromium, operated through WebDriver as by readers and
//! administrators. In all tests the browser finds no problem and requests no other address.

mod browser;
mod driver;
mod hostile;
mod keys;
mod links;
mod made_store;
mod reading;
mod shown;
mod tending;

use super::server::Server;
use browser::{Browser, ReaderSettings};
use driver::Driver;
use made_store::{MadeStore, PASSWORD, log_in};

fn on_one_thread(scenes: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(scenes);
}

#[test]
fn users_log_in_and_look_after_boards() {
    let Some(driver) = Driver::start() else { return };
    on_one_thread(async {
        let store = MadeStore::with_fleet(4, 70, 0).await;
        let mut server = Server::start(&store.url);
        let browser = Browser::open(driver, &server.address, ReaderSettings::default()).await;
        tending::a_login_leads_back_and_ends(&browser).await;
        tending::what_an_admin_sets_is_seen(&browser, &server.address).await;
        tending::a_change_is_acknowledged(&browser).await;
        tending::who_has_a_smaller_role_is_offered_less(&browser).await;
        tending::a_killed_server_goes_on_where_it_was(&browser, &store.url, &mut server).await;
        browser.close().await;
    });
}

#[test]
fn readers_find_what_they_look_for_by_mouse_and_by_keys() {
    let Some(driver) = Driver::start() else { return };
    on_one_thread(async {
        let store = MadeStore::with_fleet(5, 365, 6).await;
        let server = Server::start(&store.url);
        let browser = Browser::open(driver, &server.address, ReaderSettings::default()).await;
        log_in(&browser, "vic", PASSWORD).await;
        reading::the_list_of_boards_is_filtered_by_its_address(&browser).await;
        reading::a_number_leads_to_its_run_and_the_command_that_repeats_it(&browser).await;
        reading::a_board_leads_to_its_worst_and_who_did_it(&browser).await;
        reading::days_are_compared(&browser).await;
        reading::runs_are_compared(&browser).await;
        keys::the_whole_of_a_page_is_reached_by_tab(&browser).await;
        keys::enter_leads_on(&browser).await;
        keys::the_time_of_a_hunt_is_zoomed_and_moved(&browser).await;
        shown::one_sample_of_a_year_stands_out(&browser).await;
        browser.close().await;
    });
}

#[test]
fn every_kind_of_page_answers_without_scripts_in_the_dark_on_a_telephone() {
    let Some(driver) = Driver::start() else { return };
    on_one_thread(async {
        let store = MadeStore::with_fleet(4, 365, 6).await;
        let server = Server::start(&store.url);
        let set = ReaderSettings { dark: true, without_scripts: true };
        let browser = Browser::open(driver, &server.address, set).await;
        log_in(&browser, "ann", PASSWORD).await;
        shown::one_sample_of_a_year_stands_out(&browser).await;
        shown::every_kind_of_page_fits_and_answers(&browser).await;
        browser.close().await;
    });
}

#[test]
fn names_from_boards_stay_text() {
    let Some(driver) = Driver::start() else { return };
    on_one_thread(async {
        let store = MadeStore::new();
        hostile::import(&store);
        let server = Server::start(&store.url);
        hostile::send(&store, &server.address);
        let browser = Browser::open(driver, &server.address, ReaderSettings::default()).await;
        log_in(&browser, "ann", PASSWORD).await;
        hostile::write(&browser).await;
        hostile::nothing_of_it_is_more_than_text(&browser).await;
        browser.close().await;
    });
}
