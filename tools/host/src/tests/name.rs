// SPDX-License-Identifier: MIT OR Apache-2.0

//! Paths of named objects.

use proptest::prelude::*;

use crate::logic::name::{
    characters, resolve,
    Refusal::{self, Directory, Invalid, NoDirectory, Syntax},
};

fn units(path: &str) -> Vec<u16> {
    path.encode_utf16().collect()
}

/// Session and last component.
fn place(path: &str) -> Result<(u32, String), Refusal> {
    let path = units(path);

    resolve(&path).map(|place| (place.session, String::from_utf16_lossy(place.leaf)))
}

#[test]
fn res_39_known_directories_and_links() {
    for (path, session, leaf) in [
        (r"\BaseNamedObjects\a", 0, "a"),
        (r"\BaseNamedObjects\Global\a", 0, "a"),
        (r"\BaseNamedObjects\Local\a", 0, "a"),
        (r"\BaseNamedObjects\Global\Local\Global\a", 0, "a"),
        (r"\Sessions\0\BaseNamedObjects\a", 0, "a"),
        (r"\Sessions\3\BaseNamedObjects\a", 3, "a"),
        (r"\Sessions\3\BaseNamedObjects\Local\a", 3, "a"),
        (r"\Sessions\3\BaseNamedObjects\Global\a", 0, "a"),
        (r"\Sessions\3\BaseNamedObjects\Global\Local\a", 0, "a"),
        (r"\Sessions\3\BaseNamedObjects\Local\Global\a", 0, "a"),
        (r"\Sessions\4294967295\BaseNamedObjects\a", u32::MAX, "a"),
        (r"\SESSIONS\7\basenamedOBJECTS\gLOBAL\A", 0, "A"),
        (r"\BaseNamedObjects\Globalx", 0, "Globalx"),
        (r"\BaseNamedObjects\BaseNamedObjects", 0, "BaseNamedObjects"),
        (r"\BaseNamedObjects\..", 0, ".."),
        (r"\BaseNamedObjects\a/b c", 0, "a/b c"),
        ("\\BaseNamedObjects\\a\0b", 0, "a\0b"),
        ("\\BaseNamedObjects\\Été 🎨", 0, "Été 🎨"),
    ] {
        assert_eq!(place(path), Ok((session, leaf.into())), "{path}");
    }
}

#[test]
fn res_38_statuses_of_paths() {
    for (path, refusal) in [
        ("", Syntax),
        ("a", Syntax),
        (r"BaseNamedObjects\a", Syntax),
        (r"a\\b\", Syntax),
        (r"/BaseNamedObjects/a", Syntax),
        (r"\", Invalid),
        (r"\\", Invalid),
        (r"\\BaseNamedObjects\a", Invalid),
        (r"\BaseNamedObjects\", Invalid),
        (r"\BaseNamedObjects\\a", Invalid),
        (r"\BaseNamedObjects\a\", Invalid),
        (r"\Nowhere\a\", Invalid),
        (r"\a", NoDirectory),
        (r"\Global\a", NoDirectory),
        (r"\Nowhere\a", NoDirectory),
        (r"\BaseNamedObjectsX\a", NoDirectory),
        (r"\BaseNamedObject\a", NoDirectory),
        (r"\BaseNamedObjects\a\b", NoDirectory),
        (r"\BaseNamedObjects\Globalx\b", NoDirectory),
        (r"\Sessions\BaseNamedObjects\a", NoDirectory),
        (r"\Sessions\a", NoDirectory),
        (r"\Sessions\3\a", NoDirectory),
        (r"\Sessions\3\Global\a", NoDirectory),
        (r"\Sessions\03\BaseNamedObjects\a", NoDirectory),
        (r"\Sessions\00\BaseNamedObjects\a", NoDirectory),
        (r"\Sessions\-1\BaseNamedObjects\a", NoDirectory),
        (r"\Sessions\+1\BaseNamedObjects\a", NoDirectory),
        (r"\Sessions\1x\BaseNamedObjects\a", NoDirectory),
        (r"\Sessions\٣\BaseNamedObjects\a", NoDirectory),
        (r"\Sessions\4294967296\BaseNamedObjects\a", NoDirectory),
        (r"\BaseNamedObjects", Directory),
        (r"\basenamedobjects", Directory),
        (r"\BaseNamedObjects\Global", Directory),
        (r"\BaseNamedObjects\LOCAL", Directory),
        (r"\BaseNamedObjects\Local\Global", Directory),
        (r"\Sessions", Directory),
        (r"\Sessions\3", Directory),
        (r"\Sessions\3\BaseNamedObjects", Directory),
        (r"\Sessions\3\BaseNamedObjects\Local", Directory),
    ] {
        assert_eq!(place(path), Err(refusal), "{path}");
    }
}

/// RES-107: a name cannot forge another line of fdinfo.
#[test]
fn names_are_shown_in_one_line() {
    let shown = |units: &[u16]| characters(units).collect::<String>();

    assert_eq!(shown(&units("Été 🎨")), "Été 🎨");
    assert_eq!(
        shown(&units("a\nb\0\x7f\u{85}c")),
        "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}c"
    );
    assert_eq!(shown(&[0xd800, 0x61, 0xdc00]), "\u{fffd}a\u{fffd}");
}

/// The rules once more, over strings instead of units, and without a walk.
fn model(path: &str) -> Result<(u32, String), Refusal> {
    let Some(inner) = path.strip_prefix('\\') else {
        return Err(Syntax);
    };
    let parts: Vec<&str> = inner.split('\\').collect();

    if parts.contains(&"") {
        return Err(Invalid);
    }

    let is = |part: &str, name: &str| part.eq_ignore_ascii_case(name);
    let (session, rest) = match parts[..] {
        [base, ref rest @ ..] if is(base, "BaseNamedObjects") => (0, rest),
        [sessions] if is(sessions, "Sessions") => return Err(Directory),
        [sessions, n, ref rest @ ..] if is(sessions, "Sessions") => {
            let session = n.parse::<u32>().map_err(|_| NoDirectory)?;

            if session.to_string() != n {
                return Err(NoDirectory);
            }
            match rest {
                [] => return Err(Directory),
                [base, rest @ ..] if is(base, "BaseNamedObjects") => (session, rest),
                _ => return Err(NoDirectory),
            }
        }
        _ => return Err(NoDirectory),
    };
    let links = rest
        .iter()
        .take_while(|part| is(part, "Global") || is(part, "Local"))
        .count();
    let global = rest[..links].iter().any(|part| is(part, "Global"));

    match &rest[links..] {
        [] => Err(Directory),
        [leaf] => Ok((if global { 0 } else { session }, leaf.to_string())),
        _ => Err(NoDirectory),
    }
}

proptest! {
    #[test]
    fn res_39_paths_of_known_words_follow_the_model(
        parts in prop::collection::vec(
            prop::sample::select(&[
                "BaseNamedObjects", "basenamedobjects", "Sessions", "Global", "Local", "GLOBAL",
                "0", "3", "03", "a", "\\", "",
            ][..]),
            0..7,
        ),
        rooted: bool,
    ) {
        let path = parts.join("\\");
        let path = if rooted { format!("\\{path}") } else { path };

        prop_assert_eq!(place(&path), model(&path), "{}", path);
    }

    #[test]
    fn res_38_any_units_are_answered(path in prop::collection::vec(any::<u16>(), 0..64)) {
        let below = units(r"\BaseNamedObjects\");
        let full = [&below[..], &path[..]].concat();
        let simple = !path.is_empty() && !path.contains(&(b'\\' as u16));

        if let Ok(place) = resolve(&full) {
            prop_assert!(simple);
            prop_assert_eq!(place.session, 0);
            prop_assert_eq!(place.leaf, &path[..]);
        } else {
            prop_assert!(!simple);
        }
    }
}
