// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lists of drivers that an administrator gives.

use proptest::prelude::*;

use crate::logic::driver_names::has;

#[test]
fn res_63_a_list_names_whole_modules() {
    for (list, name, expected) in [
        ("", "nvidia", false),
        ("nvidia", "nvidia", true),
        ("nvidia", "nvidia_uvm", false),
        ("nvidia_uvm", "nvidia", false),
        ("mali,nvidia", "nvidia", true),
        ("nvidia,mali", "nvidia", true),
        ("mali, nvidia", "nvidia", false),
        ("nvidia-uvm", "nvidia_uvm", true),
        ("nvidia_uvm", "nvidia-uvm", true),
        ("Nvidia", "nvidia", false),
        // No module has no name, and none has the name of a list.
        ("", "", false),
        (",,", "", false),
        ("mali,nvidia", "mali,nvidia", false),
    ] {
        let found = has(list.as_bytes(), name.as_bytes());

        assert_eq!(found, expected, "{name:?} in {list:?}");
    }
}

proptest! {
    /// Against splitting at commas and replacing dashes.
    #[test]
    fn res_63_a_list_is_what_is_between_commas(list in "[ab_,-]{0,12}", name in "[ab_-]{0,4}") {
        let plain = |text: &str| text.replace('-', "_");
        let expected = !name.is_empty() && list.split(',').any(|one| plain(one) == plain(&name));

        prop_assert_eq!(has(list.as_bytes(), name.as_bytes()), expected);
    }
}
