// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations on shared objects while there are many unrelated ones.

use opendxg::{Access, Device, Dxg, NtHandle, ShareOptions, SyncFlags, SyncKind, SyncObject};

use super::objects::Shelf;
use super::{names, Bench};
use crate::measure::{Participant, Plan, Runner};

/// Numbers of unrelated objects.
pub const OTHERS: [u64; 3] = [10, 1_000, 100_000];

/// An unrelated object: every second one has a number, the others have a name and an NT handle.
struct Other {
    _object: SyncObject,
    _name: Option<NtHandle>,
}

impl Other {
    fn new(dxg: &Dxg, device: &Device, index: usize) -> Self {
        let kind = SyncKind::Semaphore {
            max_count: 1,
            initial_count: 0,
        };
        let (flags, named) = match index % 2 {
            0 => (SyncFlags::SHARED, false),
            _ => (SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING, true),
        };
        let object = device
            .create_sync_object(kind, flags)
            .expect("create a semaphore");
        let name = named.then(|| {
            let options = ShareOptions::new(Access::ALL)
                .name(&format!(r"\BaseNamedObjects\opendxg-other-{index}"));
            dxg.share(&[object.handle()], &options)
                .expect("share a semaphore")
        });
        Self {
            _object: object,
            _name: name,
        }
    }
}

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let shelf = Shelf::new(bench);
    let mut all = Vec::new();
    for count in OTHERS {
        all.extend(shelf.participants(count));
        let no_op = || bench.dxg.no_op().expect("no-op");
        all.push(Participant::at(names::NO_OP, count, no_op));
    }
    let mut others: Vec<Other> = Vec::new();
    runner.staged_group(
        "population",
        "operation among N unrelated objects",
        plan,
        all,
        |count| {
            let count = count as usize;
            others.truncate(count);
            for index in others.len()..count {
                others.push(Other::new(&bench.dxg, &bench.device, index));
            }
        },
    );
}
