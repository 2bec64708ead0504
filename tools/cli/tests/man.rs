// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manual page `man/opendxg.1` is made from the command line and from `man/extra.roff`. With
//! `OPENDXG_UPDATE=1` this test writes it; otherwise it fails when the page is not up to date.

use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;
use opendxg_cli::args::Args;

fn page() -> String {
    let command = Args::command().disable_help_subcommand(true);
    let mut page = Vec::new();
    let man = Man::new(command.clone())
        .section("1")
        .manual("User Commands");
    man.render_title(&mut page).unwrap();
    page.extend(b".\\\" SPDX-License-Identifier: MIT OR Apache-2.0\n");
    page.extend(b".\\\" Made by tools/cli/tests/man.rs. Do not edit: OPENDXG_UPDATE=1 cargo test -p opendxg-cli --test man\n");
    man.render_name_section(&mut page).unwrap();
    man.render_synopsis_section(&mut page).unwrap();
    page.extend(b".SH COMMANDS\n");
    for command in command.get_subcommands() {
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        page.extend(format!(".TP\n\\fB{}\\fR\n{about}\n", command.get_name()).bytes());
    }
    man.render_options_section(&mut page).unwrap();
    let mut page = String::from_utf8(page).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    page += &std::fs::read_to_string(here.join("man/extra.roff")).unwrap();
    page
}

#[test]
fn the_manual_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/opendxg.1");
    let page = page();
    if std::env::var_os("OPENDXG_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "run OPENDXG_UPDATE=1 cargo test -p opendxg-cli --test man"
    );
}

#[test]
fn every_command_is_explained() {
    let page = page();
    let output = page.split_once(".SH OUTPUT").expect("a section OUTPUT").1;
    for command in Args::command().get_subcommands() {
        let name = command.get_name();
        let explained = [format!(".B {name}\n"), format!(".BI {name}\\~")];
        assert!(
            explained.iter().any(|text| output.contains(text.as_str())),
            "{name}"
        );
    }
}
