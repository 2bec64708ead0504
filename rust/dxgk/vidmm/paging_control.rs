// SPDX-License-Identifier: GPL-2.0

//! The file by which root reads the operation log of an adapter, and controls it, the worker and
//! the paging node (MEM-104, MEM-107). A word is written to it: `start`, `stop`, `clear`, `hold`,
//! `release`, `scratch PAGES`, `buffer DWORDS`, `fault`, `fail N`, `busy N`, `segment PAGES`,
//! `move MS`, `stay`, `random`, `ordered`.

use super::{
    forced_moves::ForcedMoves,
    paging_worker::PagingWorker,
    segment::AdapterMemory, //
};
use crate::logic::paging_ring::Command;
use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    fmt,
    prelude::*,
    sync::Arc,
    uaccess::UserSliceReader, //
};

/// Shows the log until it is dropped. The drop waits for those who read or write.
pub(in crate::dxgk) type PagingFile = Pin<KBox<File<Controlled>>>;

/// What the file shows and controls.
pub(in crate::dxgk) struct Controlled {
    worker: Arc<PagingWorker>,
    moves: Arc<ForcedMoves>,
}

/// The file of this name, for the adapter with this memory.
///
/// Context: may sleep.
pub(in crate::dxgk) fn paging_file(
    dir: &Dir,
    name: &CStr,
    memory: &AdapterMemory,
) -> Result<PagingFile> {
    let controlled = Controlled {
        worker: memory.worker.clone(),
        moves: memory.moves.clone(),
    };
    let file = dir.read_write_callback_file(name, controlled, &show, &control);

    KBox::pin_init(file, GFP_KERNEL)
}

fn show(controlled: &Controlled, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    controlled.worker.log.show(f)
}

fn control(controlled: &Controlled, words: &mut UserSliceReader) -> Result {
    let Controlled { worker, moves } = controlled;
    let mut word = [0; Command::MAX];
    let word = word.get_mut(..words.len()).ok_or(EINVAL)?;

    words.read_slice(word)?;
    match Command::parse(word).ok_or(EINVAL)? {
        Command::Start => worker.log.start()?,
        Command::Stop => worker.log.stop(),
        Command::Clear => worker.log.clear(),
        Command::Hold => worker.hold(),
        Command::Release => worker.release(),
        Command::Scratch(pages) => worker.switches.limit_scratch(pages),
        Command::Buffer(dwords) => worker.switches.limit_buffer(dwords),
        Command::Fault => worker.switches.fault_once(),
        Command::Fail(number) => worker.switches.fail_build(number),
        Command::Busy(number) => worker.switches.find_busy(number),
        Command::Segment(pages) => worker.switches.limit_segments(pages),
        Command::Move(interval) => moves.every(interval),
        Command::Stay => moves.every(0),
        Command::Random => worker.switches.choose_by_chance(true),
        Command::Ordered => worker.switches.choose_by_chance(false),
    }
    Ok(())
}
