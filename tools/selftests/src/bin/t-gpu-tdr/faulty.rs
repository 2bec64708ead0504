// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters that hang when a test wants it.

use opendxg::soft_gpu::{self, FailResets};
use opendxg::{Adapter, Device};
use selftests::gpu::Gpu;
use selftests::soft_adapter::SoftAdapter;
use selftests::TestResult;

pub(crate) use opendxg::soft_gpu::Command;

/// Which resets fail: bits of the argument of [`Command::FailResets`].
pub(crate) const ENGINE: u64 = FailResets::ENGINE.bits();
pub(crate) const ADAPTER: u64 = FailResets::ADAPTER.bits();
pub(crate) const RESTART: u64 = FailResets::RESTART.bits();

/// The bytes of a command.
pub(crate) fn bytes(command: u32, node: u32, argument: u64) -> Vec<u8> {
    soft_gpu::bytes(command, node, argument).to_vec()
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
        Ok(self.adapter.soft_gpu_command(command, node, argument)?)
    }
}
