// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making a sync file of something that is signalled, and handing one in.

use super::{names, Bench};
use crate::measure::{Participant, Plan, Runner};

/// Measures both groups.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let device = &bench.device;
    let context = device.create_context(0).expect("create a context");
    let fence = device.create_fence(1).expect("create a fence");
    let file = device.create_sync_file(&fence, 1).expect("a sync file");
    let syncobj = bench
        .drm
        .as_ref()
        .map(|drm| drm.signalled().expect("make a syncobj"));

    let mut exports = vec![Participant::new(names::OPENDXG, || {
        device.create_sync_file(&fence, 1).expect("a sync file");
    })];
    let mut imports = vec![Participant::new(names::OPENDXG, || {
        context.wait_sync_file(&file).expect("wait for a sync file");
    })];
    if let Some(syncobj) = &syncobj {
        exports.push(Participant::new(names::SYNCOBJ, || {
            syncobj.export_sync_file().expect("a sync file");
        }));
        imports.push(Participant::new(names::SYNCOBJ, || {
            syncobj.import_sync_file(&file).expect("import a sync file");
        }));
    }
    runner.group(
        "sync-file-export",
        "a sync file of what is signalled, and its end",
        plan,
        exports,
    );
    runner.group(
        "sync-file-import",
        "hand in a sync file that has signalled",
        plan,
        imports,
    );
}
