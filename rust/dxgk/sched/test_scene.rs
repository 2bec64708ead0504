// SPDX-License-Identifier: GPL-2.0

//! What the KUnit suites of queues share: a client of an adapter with a double, whose work the test
//! completes.

use super::{
    item::Commands,
    new_item::NewItem,
    queue::Queue,
    queued_work::AfterWork,
    signal::{
        Effect,
        SignalElement, //
    }, //
};
use crate::{
    dxgk::{
        adapter::{
            Adapter,
            AdapterKind,
            AdapterOptions, //
        },
        context::{
            Class,
            Context,
            Description,
            Scheduling, //
        },
        handle::{
            HandleTarget,
            Parent, //
        },
        object::{
            Object,
            Strong, //
        },
        quota::account::Limit,
        sync::{
            cpu_wait::Element,
            fence::Fence, //
        },
        test_client::Client, //
    },
    error::{
        DxgResult,
        Status, //
    },
    kmd::fake::{
        engines::Engines,
        journal::Journal,
        queues::Queues,
        Behaviour,
        FakeKmd,
        Pause, //
    },
    logic::{
        submission_order::Moment,
        sync_flags::{
            Contents,
            Creation, //
        }, //
    },
    platform::{
        completion,
        Completion, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// A client of an adapter whose engines are the test.
pub(super) struct Scene {
    pub(super) journal: Arc<Journal>,
    pub(super) engines: Arc<Queues>,
    pub(super) adapter: Arc<Adapter>,
    pub(super) client: Client,
}

/// Waits for what a worker does, for some seconds at most.
pub(super) fn comes(condition: impl Fn() -> bool) -> bool {
    for _ in 0..1000 {
        if condition() {
            return true;
        }
        fsleep(Delta::from_millis(5));
    }
    false
}

impl Scene {
    /// Whose engines do what the test says.
    pub(super) fn new() -> Result<Self> {
        Self::with(None)
    }

    /// The same, where calls of the KMD may have to wait.
    pub(super) fn with(pause: Option<Arc<Pause>>) -> Result<Self> {
        Self::of(pause, None, false)
    }

    /// The same, where contexts are suspended at once, instead of by the test.
    pub(super) fn that_suspends_at_once() -> Result<Self> {
        Self::of(None, None, true)
    }

    /// Whose engines may hang, and whose work may take 10 milliseconds.
    pub(super) fn hanging(hangs: &Arc<Engines>) -> Result<Self> {
        let scene = Self::of(None, Some(hangs.clone()), false)?;

        scene.adapter.recovery.set_delay_ms(10)?;
        Ok(scene)
    }

    fn of(
        pause: Option<Arc<Pause>>,
        hangs: Option<Arc<Engines>>,
        suspends_at_once: bool,
    ) -> Result<Self> {
        let client = Client::new()?;
        let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
        let engines = Arc::new(Queues::new(journal.clone()).ok_or(ENOMEM)?, GFP_KERNEL)?;
        let behaviour = || Behaviour {
            queues: Some(engines.clone()),
            pause: pause.clone(),
            suspends_at_once,
            engines: hangs.clone(),
            ..Behaviour::default()
        };
        let adapter =
            client
                .driver
                .add_adapter(AdapterKind::TestDouble, &AdapterOptions::NONE, |_| {
                    let kmd = FakeKmd::add_device(journal.clone(), behaviour());

                    Ok(KBox::new(kmd, GFP_KERNEL)?)
                })?;

        Ok(Self {
            journal,
            engines,
            adapter,
            client,
        })
    }

    /// A device, and its handle.
    pub(super) fn device(&self) -> Result<(u32, Parent)> {
        self.client.create_device(&self.adapter).map_err(|_| EINVAL)
    }

    /// A context of packets, and its handle.
    pub(super) fn context(&self, parent: &Parent) -> Result<(u32, Arc<Queue>)> {
        let description = Description {
            scheduling: Scheduling::Packets,
            class: Class::Context,
            node: 0,
            engines: 1,
            disable_gpu_timeout: false,
            private_data: KVVec::new(),
        };
        let context = Context::new(parent.device.clone(), &description).map_err(|_| EINVAL)?;
        let queue = context.queue().cloned().ok_or(EINVAL)?;
        let reserved = self
            .client
            .process
            .handles
            .reserve(HandleTarget::Context(context), Some(parent))
            .map_err(|_| EINVAL)?;
        let handle = reserved.handle();

        reserved.commit();
        Ok((handle, queue))
    }

    /// Destroys a handle.
    pub(super) fn destroy(&self, handle: u32) -> bool {
        self.client
            .process
            .handles
            .destroy(handle, |_| true)
            .is_ok()
    }

    /// A fence that shows 0.
    pub(super) fn fence(&self, parent: &Parent) -> Result<Arc<Fence>> {
        let contents = Contents::MonitoredFence {
            value: 0,
            engines: 0,
        };
        let creation = Creation::new(contents, 0).map_err(|_| EINVAL)?;
        let reserved = self
            .client
            .process
            .create_sync_object(&self.client.driver.tables, parent, &creation)
            .map_err(|_| EINVAL)?
            .opened
            .reserved;
        let handle = reserved.handle();

        reserved.commit();
        match self.client.process.handles.sync_object(handle) {
            Ok(opened) => match opened.object {
                Object::Fence(fence) => Ok(fence),
                _ => Err(EINVAL),
            },
            Err(_) => Err(EINVAL),
        }
    }

    /// Queues commands.
    pub(super) fn submit(&self, queue: &Arc<Queue>) -> DxgResult {
        let commands = Commands {
            address: 0x1000,
            length: 4,
            progress: None,
        };

        NewItem::commands(queue, &self.client.process, commands)?.push()
    }

    /// Queues a wait.
    pub(super) fn wait(&self, queue: &Arc<Queue>, fence: &Arc<Fence>, value: u64) -> DxgResult {
        let element = Element {
            fence: fence.clone(),
            value,
        };

        NewItem::fence_wait(queue, &self.client.process, &[element])?.push()
    }

    /// The parts of a signal, for one or more queues.
    pub(super) fn signal_items(
        &self,
        queues: &[&Arc<Queue>],
        fence: &Arc<Fence>,
        value: u64,
        moment: Moment,
    ) -> DxgResult<KVVec<NewItem>> {
        let strong =
            Strong::upgrade(&Object::Fence(fence.clone())).ok_or(Status::INVALID_PARAMETER)?;
        let mut elements = KVVec::new();

        elements.push(SignalElement { strong, value }, GFP_KERNEL)?;

        // CAST: few.
        let count = queues.len() as u32;
        let signal = Effect::Objects(elements).into_signal(moment, count)?;
        let mut items = KVVec::new();

        for queue in queues {
            let item = NewItem::signal(queue, &self.client.process, 1, &signal)?;

            items.push(item, GFP_KERNEL)?;
        }
        Ok(items)
    }

    /// Queues a signal in one or more queues.
    pub(super) fn signal(
        &self,
        queues: &[&Arc<Queue>],
        fence: &Arc<Fence>,
        value: u64,
        moment: Moment,
    ) -> DxgResult {
        NewItem::push_all(self.signal_items(queues, fence, value, moment)?)
    }

    /// How many items the process's user has queued.
    pub(super) fn queued(&self) -> u32 {
        self.client.process.account.used(Limit::QueuedItems)
    }
}

/// Something after work that takes as long as the test says.
pub(super) struct Blocker {
    called: Completion,
    released: Completion,
}

impl Blocker {
    /// One that blocks.
    pub(super) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                called: completion().ok_or(ENOMEM)?,
                released: completion().ok_or(ENOMEM)?,
            },
            GFP_KERNEL,
        )?)
    }

    /// Returns when it is inside.
    pub(super) fn wait_for_call(&self) {
        self.called.wait_for_completion();
    }

    /// Lets it go on.
    pub(super) fn release(&self) {
        self.released.complete_all();
    }
}

impl AfterWork for Blocker {
    fn run(self: Arc<Self>) {
        self.called.complete_all();
        self.released.wait_for_completion();
    }
}
