// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manual page `man/opendxg.1` is made from the command line and from `man/extra.roff`, the
//! completions of the shells from the command line. With `OPENDXG_UPDATE=1` these tests write
//! them; otherwise they fail when one is not up to date.

use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use opendxg_cli::args::Args;

const UPDATE: &str = "OPENDXG_UPDATE=1 cargo test -p opendxg-cli --test man";

fn command() -> Command {
    Args::command().disable_help_subcommand(true)
}

/// What has to be up to date.
fn up_to_date(path: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("OPENDXG_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == made, "{}: run {UPDATE}", path.display());
}

/// An argument as it is typed.
fn typed(arg: &Arg) -> String {
    let value = arg.get_value_names().unwrap_or_default();
    let value = value.iter().map(|name| format!("\\fI{name}\\fR"));
    let value: String = value.collect();
    let takes_value = arg.get_action().takes_values();
    match arg.get_long() {
        Some(long) if arg.is_required_set() => format!("\\fB\\-\\-{long}\\fR {value}"),
        Some(long) if takes_value => format!("[\\fB\\-\\-{long}\\fR {value}]"),
        Some(long) => format!("[\\fB\\-\\-{long}\\fR]"),
        None if arg.is_last_set() => format!("\\-\\- {value}"),
        None if arg.is_required_set() => value,
        None => format!("[{value}]"),
    }
}

fn page() -> String {
    let command = command();
    let mut page = Vec::new();
    let man = Man::new(command.clone())
        .section("1")
        .manual("User Commands");
    man.render_title(&mut page).unwrap();
    page.extend(b".\\\" SPDX-License-Identifier: MIT OR Apache-2.0\n");
    page.extend(format!(".\\\" Made by tools/cli/tests/man.rs. Do not edit: {UPDATE}\n").bytes());
    man.render_name_section(&mut page).unwrap();
    let options: Vec<String> = command.get_arguments().map(typed).collect();
    let options = options.join(" ");
    page.extend(
        format!(
            ".SH SYNOPSIS\n\\fBopendxg\\fR {options} [\\fICOMMAND\\fR]\n.br\n\
             \\fBopendxg\\fR \\fB\\-\\-help\\fR|\\fB\\-\\-version\\fR\n"
        )
        .bytes(),
    );
    page.extend(b".SH COMMANDS\n");
    for command in command.get_subcommands() {
        let about = command.get_about().map(ToString::to_string);
        let arguments = command.get_arguments().map(typed);
        let call = std::iter::once(format!("\\fB{}\\fR", command.get_name())).chain(arguments);
        let call: Vec<String> = call.collect();
        page.extend(format!(".TP\n{}\n{}\n", call.join(" "), about.unwrap_or_default()).bytes());
    }
    man.render_options_section(&mut page).unwrap();
    let mut page = String::from_utf8(page).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    page += &std::fs::read_to_string(here.join("man/extra.roff")).unwrap();
    page
}

#[test]
fn the_manual_page_is_up_to_date() {
    up_to_date("man/opendxg.1", &page());
}

#[test]
fn the_synopsis_says_what_options_take() {
    let page = page();
    let synopsis = page.split_once(".SH SYNOPSIS").expect("a synopsis").1;
    for call in [
        r"[\fB\-\-proc\fR \fIDIR\fR]",
        r"\fBobject\fR \fIID\fR",
        r"\fBhandles\fR [\fB\-\-pid\fR \fIPID\fR]",
        r"\fBinfo\fR [\fIID\fR]",
        r"\fBreset\fR \fILUID\fR [\fB\-\-node\fR \fINODE\fR]",
        r"\fBstop\fR \fILUID\fR \fB\-\-node\fR \fINODE\fR",
        r"\fBtrace\fR \fB\-\-output\fR \fIFILE\fR [\fB\-\-svg\fR \fIFILE\fR]",
        r"\-\- \fICOMMAND\fR",
    ] {
        assert!(synopsis.contains(call), "{call}");
    }
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

#[test]
fn the_completions_are_up_to_date() {
    for (shell, path) in [
        (Shell::Bash, "completions/opendxg.bash"),
        (Shell::Zsh, "completions/_opendxg"),
        (Shell::Fish, "completions/opendxg.fish"),
    ] {
        let mut made = Vec::new();
        clap_complete::generate(shell, &mut Args::command(), "opendxg", &mut made);
        let made = String::from_utf8(made).unwrap();
        // The first line of the one for zsh means something.
        let (first, rest) = match shell {
            Shell::Zsh => made.split_once('\n').expect("lines"),
            _ => ("", made.as_str()),
        };
        let head = format!(
            "# SPDX-License-Identifier: MIT OR Apache-2.0\n# Made by tools/cli/tests/man.rs. Do not edit: {UPDATE}\n"
        );
        let first = if first.is_empty() {
            String::new()
        } else {
            format!("{first}\n")
        };
        up_to_date(path, &format!("{first}{head}{rest}"));
    }
}
