// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters that hang when a test wants it.

use opendxg::{Adapter, Device};
use selftests::gpu::Gpu;
use selftests::soft_adapter::SoftAdapter;
use selftests::TestResult;

/// Private commands of the software GPU, and their numbers.
#[derive(Clone, Copy)]
pub(crate) enum Command {
    HangEngine = 1,
    HangQueue = 2,
    RefusePreemption = 3,
    DropInterrupt = 4,
    Delay = 5,
    Stop = 6,
    LoseDevice = 7,
    FailResets = 8,
}

/// Which resets fail: bits of the argument of [`Command::FailResets`].
pub(crate) const ENGINE: u64 = 1;
pub(crate) const ADAPTER: u64 = 2;
pub(crate) const RESTART: u64 = 4;

/// The bytes of a command.
pub(crate) fn bytes(command: u32, node: u32, argument: u64) -> Vec<u8> {
    let words = [u32::from_le_bytes(*b"ODXC"), 1, command, node];
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    words.chain(argument.to_le_bytes()).collect()
}

/// An adapter of the test, on which work may take this long.
pub(crate) struct Faulty {
    pub(crate) soft: SoftAdapter,
    pub(crate) adapter: Adapter,
}

/// Work that takes longer hangs. Long enough for what does not, on a slow machine.
const DELAY_MS: &str = "300";

impl Faulty {
    /// One with this name.
    pub(crate) fn new(name: &str) -> TestResult<Self> {
        Self::with_delay(name, DELAY_MS)
    }

    /// One with another TDR time.
    pub(crate) fn with_delay(name: &str, delay_ms: &str) -> TestResult<Self> {
        let soft = SoftAdapter::new(name)?;
        soft.set("tdr_delay_ms", delay_ms)?;
        soft.set("enabled", "1")?;
        let adapter = soft.open()?;
        Ok(Self { soft, adapter })
    }

    /// A device.
    pub(crate) fn device(&self) -> TestResult<Device> {
        Ok(self.adapter.create_device()?)
    }

    /// A device with a context on this node.
    pub(crate) fn gpu(&self, node: u32) -> TestResult<Gpu> {
        Gpu::on(&self.device()?, node)
    }

    /// Has the adapter do something wrong.
    pub(crate) fn command(&self, command: Command, node: u32, argument: u64) -> TestResult {
        let mut data = bytes(command as u32, node, argument);
        Ok(self.adapter.private_escape(&mut data)?)
    }
}
