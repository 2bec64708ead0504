// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often one process had to make room for the other, by the operation log of the adapter.

use std::path::Path;

use opendxg::Luid;
use opendxg_cli::debugfs;

/// Why contexts are suspended in the log: not all is there that their process wants.
const ROOM: &str = "flags=0x10";

/// What the memory manager has done since the adapter is there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// How often the contexts of a process were suspended for the other's room.
    pub suspensions: usize,
    /// Bytes that the paging node has moved.
    pub bytes: u64,
}

impl Turns {
    /// Reads them; `None` if nobody has started the log.
    pub fn read(luid: Luid) -> Option<Self> {
        let file = Path::new(debugfs::MOUNT).join("opendxg/paging");
        let text = std::fs::read_to_string(file.join(luid.to_string())).ok()?;
        let (head, rest) = text.split_once('\n')?;
        head.contains("on=1").then(|| Self::of(rest))
    }

    fn of(lines: &str) -> Self {
        let mut turns = Self::default();
        for line in lines.lines() {
            let mut fields = line.split(' ');
            if line.contains("type=SUSPEND") && fields.any(|field| field == ROOM) {
                turns.suspensions += 1;
            } else if line.contains("op=TransferVirtual") {
                let size = line
                    .split(' ')
                    .find_map(|field| field.strip_prefix("size=0x"));
                turns.bytes += size
                    .and_then(|size| u64::from_str_radix(size, 16).ok())
                    .unwrap_or(0);
            }
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let lines = "1 type=SUSPEND op=- flags=0x10\n2 type=SUSPEND op=- flags=0x1\n\
                     3 type=BUILD op=TransferVirtual size=0x2000 flags=0x40\n\
                     4 type=RESUME op=- flags=0x10";
        let right = Turns {
            suspensions: 1,
            bytes: 8192,
        };
        assert_eq!(Turns::of(lines), right);
    }
}
