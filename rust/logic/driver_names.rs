// SPDX-License-Identifier: GPL-2.0

//! Lists of drivers, as an administrator gives them (RES-63).

/// Whether a list of names of modules, with commas between them, has this one.
///
/// '-' and '_' are the same in such names, as they are to modprobe. Nothing else is: a blank
/// belongs to a name, and no module has it.
pub fn has(list: &[u8], name: &[u8]) -> bool {
    !name.is_empty()
        && list
            .split(|&byte| byte == b',')
            .any(|one| is_same(one, name))
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    let plain = |byte: &u8| if *byte == b'-' { b'_' } else { *byte };

    one.iter().map(plain).eq(other.iter().map(plain))
}
