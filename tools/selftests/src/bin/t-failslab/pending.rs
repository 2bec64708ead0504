// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sync files that have not signalled, made to fail: points of signals that are queued, and waits
//! for such points (FEN-161, FEN-165, FEN-166).

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use opendxg::pm4::{Compare, Pm4};
use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Context, Dxg, FdInfo, MonitoredFence, Status, SyncFile};
use selftests::call::succeeds;
use selftests::gpu::{one, reaches, Buffer, Commands, Gpu, PAGE};
use selftests::sync_file::{ends_with, status, PENDING, SIGNALLED};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fixture, TestResult};

use crate::t_failslab::plain::{Maker, Sweep};
use crate::t_failslab::Call;

/// Where the commands say that they run, beside the word that they wait for.
const RUNS: u64 = 8;

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("FEN-161 CreateSyncFile: a queued signal", |sweep| {
        Pending::sweep(sweep, Kind::Export(0))
    }),
    (
        "FEN-161 CreateSyncFile: a signal behind a wait for another context",
        |sweep| Pending::sweep(sweep, Kind::Export(1)),
    ),
    ("FEN-165 WaitSyncFile: not signalled yet", |sweep| {
        Pending::sweep(sweep, Kind::Wait)
    }),
    (
        "FEN-166 OpenSyncObjectFromSyncFile: not signalled yet",
        |sweep| Pending::sweep(sweep, Kind::Open),
    ),
];

/// What a round queues: commands, a signal, a wait and a signal.
const ITEMS: u64 = 4;

/// How many items the user has queued.
fn queued_items() -> TestResult<u64> {
    let node = Dxg::open()?;
    let info = FdInfo::read(node.as_fd())?;
    let items = info.get("dxg-user-queued-items").ok_or("no such field")?;
    let count = items.split_whitespace().next().unwrap_or_default();
    Ok(count.parse().map_err(|_| "not a number")?)
}

/// Two contexts. The first one computes until the test ends that, and signals. The second one
/// waits for the signal, and signals as well.
struct Held {
    gpu: Gpu,
    second: Context,
    commands: Commands,
    gate: Buffer,
    fences: [MonitoredFence; 2],
    round: u64,
}

impl Held {
    fn new() -> TestResult<Self> {
        let gpu = Gpu::new()?;
        let gate = gpu.buffer(PAGE)?;
        let commands = Pm4::new().write(gate.at(RUNS), &[1]).wait32(
            gate.address(),
            Compare::Equal,
            1,
            u32::MAX,
        );
        let device = gpu.device();
        Ok(Self {
            second: device.create_context(1)?,
            commands: gpu.commands(&commands)?,
            fences: [device.create_fence(0)?, device.create_fence(0)?],
            round: 0,
            gate,
            gpu,
        })
    }

    /// Queues a round, and waits until its commands run.
    fn begin(&mut self) -> TestResult {
        self.round += 1;
        self.gate.set32(0, 0);
        self.gate.set32(RUNS, 0);
        self.gpu.submit(&self.commands)?;
        let [first, last] = &self.fences;
        self.gpu.context().signal(&one(first, self.round))?;
        self.second.wait(&one(first, self.round))?;
        self.second.signal(&one(last, self.round))?;
        eventually("the commands run", || self.gate.get32(RUNS) == 1)?;
        // What came before goes a little later, and is counted until then.
        eventually("nothing else is queued", || {
            queued_items().ok() == Some(ITEMS)
        })
    }

    /// Lets the round come to its end.
    fn end(&self) -> TestResult {
        for fence in &self.fences {
            ensure_eq!(fence.value(), self.round - 1);
        }
        self.gate.set32(0, 1);
        self.fences
            .iter()
            .try_for_each(|fence| reaches(fence, self.round))
    }

    /// The point of the last signal, which is pending.
    fn file(&self) -> TestResult<SyncFile> {
        let device = self.gpu.device();
        Ok(device.create_sync_file(&self.fences[1], self.round)?)
    }
}

/// What is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A point of this fence becomes a sync file.
    Export(usize),
    /// A third context waits for a sync file.
    Wait,
    /// The fence behind a sync file is opened.
    Open,
}

/// A call about a sync file that is pending, and no longer when it is undone. Every call finds
/// queues for which nothing was exported, except the sync file that it is about.
struct Pending {
    raw: Raw,
    kind: Kind,
    held: Held,
    third: Context,
    done: MonitoredFence,
    /// What the call is about.
    file: Option<SyncFile>,
    /// What the call has returned.
    made: u64,
}

impl Pending {
    fn sweep(sweep: Sweep<'_>, kind: Kind) -> TestResult {
        let held = Held::new()?;
        let mut call = Self {
            raw: fixture::raw()?,
            kind,
            third: held.gpu.device().create_context(2)?,
            done: held.gpu.device().create_fence(0)?,
            held,
            file: None,
            made: 0,
        };
        call.begin()?;
        let swept = sweep(&mut call);
        swept.and(call.held.end())
    }

    fn begin(&mut self) -> TestResult {
        self.held.begin()?;
        if let Kind::Wait | Kind::Open = self.kind {
            self.file = Some(self.held.file()?);
        }
        Ok(())
    }

    /// Ends the round and what is pending with it, and begins the next one.
    fn next_round(&mut self) -> TestResult {
        self.held.end()?;
        if let Some(file) = self.file.take() {
            ends_with(file, SIGNALLED)?;
        }
        self.begin()
    }
}

impl Call for Pending {
    fn run(&mut self) -> rustix::io::Result<Status> {
        let device = self.held.gpu.device().handle().0;
        let file = self.file.as_ref().map_or(0, |file| file.as_raw_fd() as u64);
        match self.kind {
            Kind::Export(fence) => {
                let mut arg = D3DKMT_CREATESYNCFILE::zeroed();
                arg.hDevice = device;
                arg.hMonitoredFence = self.held.fences[fence].handle().0;
                arg.FenceValue = self.held.round;
                let answer = self.raw.exec(&mut arg);
                self.made = arg.hSyncFile;
                answer
            }
            Kind::Wait => {
                let mut arg = d3dkmt_waitsyncfile::zeroed();
                (arg.sync_file_handle, arg.context) = (file, self.third.handle().0);
                self.raw.exec(&mut arg)
            }
            Kind::Open => {
                let mut arg = d3dkmt_opensyncobjectfromsyncfile::zeroed();
                (arg.sync_file_handle, arg.device) = (file, device);
                let answer = self.raw.exec(&mut arg);
                self.made = arg.syncobj.into();
                answer
            }
        }
    }

    fn undo(&mut self) -> TestResult {
        match self.kind {
            Kind::Export(_) => {
                let fd = i32::try_from(self.made).map_err(|_| "not a descriptor")?;
                // SAFETY: made by the call for us.
                let file = unsafe { OwnedFd::from_raw_fd(fd) };
                ensure_eq!(status(&file)?, PENDING);
                self.next_round()?;
                ends_with(&file, SIGNALLED)
            }
            Kind::Wait => {
                let round = self.held.round;
                self.third.signal(&one(&self.done, round))?;
                ensure!(self.done.value() < round, "it does not wait");
                self.next_round()?;
                reaches(&self.done, round)
            }
            Kind::Open => {
                let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
                destroy.hSyncObject = self.made as u32;
                succeeds(&self.raw, &mut destroy)?;
                self.next_round()
            }
        }
    }

    /// A wait that was bounded for an export stays so.
    fn refused(&mut self) -> TestResult {
        self.next_round()
    }

    fn handles(&self) -> u32 {
        match self.kind {
            Kind::Open => 1,
            Kind::Export(_) | Kind::Wait => 0,
        }
    }
}
