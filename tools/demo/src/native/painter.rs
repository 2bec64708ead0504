// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that paints: its engine puts strip after strip into the shared memory, as soon as
//! the strip that was there is kept. It also starts the other process and tells what happened.

use std::collections::BTreeMap;
use std::path::Path;

use demo::link::Kind;
use demo::memory::{self, check, Pixels};
use demo::partner::Partner;
use demo::screen::heading;
use demo::{wakeups, Result};
use opendxg::pm4::Pm4;
use opendxg::{Access, Dxg, Luid};
use opendxg_cli::debugfs;

use crate::plan::{frames, Strip, PAINTS, PLACES, STRIPS, STRIP_BYTES};
use crate::ring::{self, Ring};
use crate::turns::Turns;

/// Bytes of the ring: more than all packets.
const RING: u64 = 64 << 10;

/// The whole process. The strip with the number `spoil` is not painted.
pub fn run(folder: &Path, spoil: Option<u64>) -> Result {
    heading(
        "6. Two processes ring a doorbell, once each. Native fences hold their engines together.",
    );
    if crate::is_small() {
        println!("  local memory has room for one of them at a time");
    }
    let dxg = Dxg::open()?;
    let adapter = crate::adapter(&dxg)?;
    let device = adapter.create_device()?;
    let paging = device.create_paging_queue()?;

    let bytes = PLACES * STRIP_BYTES;
    let places = device.new_resource().local(bytes).nt_shared().create()?;
    let place = places.allocations().first().ok_or("an empty resource")?;
    let address = memory::map(&paging, place, bytes)?;
    let source = Pixels::drawn_locally(&paging, &frames())?;
    let painted = device.create_shareable_native_fence(0)?;
    let kept = device.create_shareable_native_fence(0)?;

    let (keeper, link) = Partner::start(folder, "keeper")?;
    let access = Access::RESOURCE_ALL;
    link.send_with_fd(Kind::Texture, 0, Some(places.share(access)?))?;
    for (kind, fence) in [(Kind::Painted, &painted), (Kind::Kept, &kept)] {
        link.send_with_fd(kind, 0, Some(fence.share(Access::ALL)?))?;
    }

    let context = device.create_hw_context(PAINTS)?;
    let queue = ring::queue(&context)?;
    let ring = Ring::new(&paging, &queue, RING)?;
    let packets = Strip::all().fold(Pm4::new(), |packets, strip| {
        let packets = queue.record_wait(packets, &kept, strip.before());
        let packets = match Some(strip.number()) == spoil {
            true => packets,
            false => packets.copy(
                address + strip.place(),
                source.address() + strip.source(),
                STRIP_BYTES,
            ),
        };
        queue.record_signal(packets, &painted, strip.number())
    });

    // The other engine waits already.
    link.expect(Kind::Queued)?;
    let (before, woken) = (Counts::read(adapter.luid()), wakeups::count()?);
    ring.submit(&packets)?;
    crate::wait(&kept, STRIPS)?;
    let (after, woken) = (Counts::read(adapter.luid()), wakeups::count()? - woken);
    check(&device)?;
    let woken_keeper = link.expect(Kind::Checked)?;
    keeper.finish()?;

    // Each strip is painted and kept.
    let signals = 2 * STRIPS;
    println!("  {:<44}{signals:>8}", "values that engines have stored");
    println!("  {:<44}{signals:>8}", "waits of engines for them");
    match before.zip(after) {
        None => println!("  interrupts: ? (only root sees them, in debugfs)"),
        Some((before, after)) => {
            let raised = after.interrupts().saturating_sub(before.interrupts());
            println!("  {:<44}{raised:>8}", "interrupts raised");
            let suppressed = signals.saturating_sub(raised);
            println!("  {:<44}{suppressed:>8}", "interrupts that nobody needed");
            if raised > 2 {
                return Err(format!("{raised} interrupts for two processes that wait").into());
            }
        }
    }
    if let Some(turns) = Turns::read(adapter.luid()) {
        println!(
            "  {:<44}{:>8}",
            "times one made room for the other", turns.suspensions
        );
        println!(
            "  {:<44}{:>8}",
            "KiB that left local memory or came back",
            turns.bytes >> 10
        );
        if turns.suspensions == 0 {
            return Err("local memory has room for both".into());
        }
    }
    for (name, count) in [("painter", woken), ("keeper", woken_keeper)] {
        println!("  {:<44}{count:>8}", format!("wake-ups of the {name}"));
    }
    Ok(())
}

/// What the module has counted.
struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Reads them; `None` if there is no debugfs.
    fn read(luid: Luid) -> Option<Self> {
        let mount = Path::new(debugfs::MOUNT);
        debugfs::native_fences(mount, &luid.to_string())
            .ok()
            .map(Self)
    }

    /// Interrupts of native fences.
    fn interrupts(&self) -> u64 {
        self.0.get("interrupts").copied().unwrap_or(0)
    }
}
