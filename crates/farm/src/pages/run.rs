//! A run: where it belongs, how to repeat it, and the report of its bundle.

use maud::{Markup, html};
use report::html::PageParts;

use super::parts::{escaped, moment};
use super::spike::spikes;
use super::{Section, page};
use crate::records::FarmRun;

/// The page, with the report inside.
pub fn run(of: &FarmRun, parts: PageParts) -> String {
    let PageParts { heading, body, script } = parts;
    let body = html! {
        p.path { a href={ "/b/" (escaped(&of.board)) } { (of.board) } ", " (moment(of.started)) " UTC" }
        (repeat(of))
        (spikes(of))
        (body)
        @if let Some(script) = script { (script.element()) }
    };
    page(Some(Section::Boards), &heading, body)
}

fn repeat(of: &FarmRun) -> Markup {
    html! {
        p { a href={ "/v1/runs/" (escaped(&of.id)) } { "As JSON" } ", "
            a href={ "/b/" (escaped(&of.board)) "/env" } { "environments of the board" } ", "
            a href={ "/compare?a=" (escaped(&of.id)) } { "compare with another run" } ". Its files: "
            a href={ "/v1/runs/" (escaped(&of.id)) ".tar" } { "all in an archive" }
            @if of.spikes > 0 { ", "
                a href={ "/v1/runs/" (escaped(&of.id)) "/perfetto.json" } {
                    "its worst spikes for Perfetto" } } "." }
    }
}
