// SPDX-License-Identifier: GPL-2.0

//! Software adapters that the administrator makes, in `/sys/kernel/config/opendxg`: a directory
//! for each, with its properties as files, and `enabled`. `Documentation/adapters.md` describes
//! them.
//!
//! The directories pin the module. Those of the module's parameter are not here.
//!
//! LOCK: `SoftAdapter::state` is the outermost lock of the module: adapters start and end under
//! it. The locks of configfs are outside.

mod settings;

use crate::{
    dxgk::{
        adapter::{
            Adapter,
            AdapterKind,
            AdapterOptions, //
        },
        border::EventPath,
        driver::Driver,
        kmd_log,
        recovery::is_delay, //
    },
    kmd::soft::{
        Config,
        SoftKmd, //
    },
    sys::{
        params,
        shared::{
            Published,
            Shared, //
        }, //
    }, //
};
use kernel::{
    configfs::{
        AttributeOperations,
        Group,
        GroupOperations,
        Subsystem, //
    },
    configfs_attrs,
    fmt::{
        self,
        Write, //
    },
    new_mutex,
    page::PAGE_SIZE,
    prelude::*,
    str::{
        kstrtobool_bytes,
        Formatter, //
    },
    sync::{
        Arc,
        Mutex, //
    }, //
};

#[allow(unused_imports)] // The macro names it, in some releases of the kernel.
use crate::compat::*;

/// Whose adapters the directories are. The root's own data would be the place for it, but Linux
/// 7.2 takes the root for a group and hands out a wrong reference to its data; a root without data
/// is not hurt by that.
static DRIVER: Shared<Driver> = Shared::new();

/// Starts one more software adapter, as [`Driver::add_adapter`] does.
pub(crate) fn add_adapter(
    driver: &Driver,
    config: Config,
    options: &AdapterOptions,
) -> Result<Arc<Adapter>> {
    driver.add_adapter(AdapterKind::Software, options, |index| {
        let kmd = SoftKmd::add_device(Config { index, ..config });

        kmd_log::verified(KBox::new(kmd, GFP_KERNEL)?, index)
    })
}

/// The directory. Dropping it removes it; there is nothing in it any more by then.
pub(crate) struct Configfs {
    driver: Option<Published<Driver>>,
    _root: Pin<KBox<Subsystem<Root>>>,
}

impl Configfs {
    /// Makes the directory, in which nobody can make another one yet (ENODEV). Those pin the
    /// module, and it must not be pinned while its initialisation can still fail.
    pub(crate) fn new() -> Result<Self> {
        let item_type = configfs_attrs! {
            container: Subsystem<Root>,
            data: Root,
            child: SoftAdapter,
            attributes: [],
        };
        let root = Subsystem::new(c"opendxg", item_type, try_pin_init!(Root {}));

        Ok(Self {
            driver: None,
            _root: KBox::pin_init(root, GFP_KERNEL)?,
        })
    }

    /// Lets directories be made in it, whose adapters are those of `driver`. Cannot fail: nobody
    /// else publishes one.
    pub(crate) fn enable(&mut self, driver: Arc<Driver>) {
        self.driver = DRIVER.publish(driver);
    }
}

/// The directory as configfs knows it.
#[pin_data]
struct Root {}

#[vtable]
impl GroupOperations for Root {
    type Child = SoftAdapter;

    fn make_group(&self, name: &CStr) -> Result<impl PinInit<Group<SoftAdapter>, Error>> {
        let driver = DRIVER.get().ok_or(ENODEV)?;
        let item_type = configfs_attrs! {
            container: Group<SoftAdapter>,
            data: SoftAdapter,
            attributes: [
                enabled: 0,
                luid: 1,
                local_memory: 2,
                system_memory: 3,
                nodes: 4,
                compute_only: 5,
                wddm_version: 6,
                profile: 7,
                idle_updates: 8,
                use_64kb_pages: 9,
                doorbells: 10,
                global_doorbells: 11,
                notify_doorbells: 12,
                tdr_delay_ms: 13,
                power_state: 14,
                idle_f1: 15,
                native_fences: 16,
                native_interrupts: 17,
                monitored_values: 18,
                cpu_events: 19,
                features: 20,
                fence_addresses: 21,
                fence_stride: 22,
                intra_gpu_fences: 23,
                lazy_logs: 24,
                map_to_gpu_system_process: 25,
                fence_doorbells: 26,
                fence_memory: 27,
                save_areas: 28,
                page_table_updates: 29,
                paging_log: 30,
                page_table_memory: 31,
            ],
        };

        Ok(Group::new(
            name.try_into()?,
            item_type,
            SoftAdapter::new(driver),
        ))
    }
}

/// What a directory stands for. Its end is that of its adapter.
#[pin_data]
struct SoftAdapter {
    #[pin]
    state: Mutex<State>,
}

struct State {
    driver: Arc<Driver>,
    config: Config,
    /// What is configured of the OS part.
    options: AdapterOptions,
    /// Its TDR time, if it is not that of the module.
    tdr_delay_ms: Option<u32>,
    /// The adapter while it is enabled.
    adapter: Option<Arc<Adapter>>,
}

impl SoftAdapter {
    fn new(driver: Arc<Driver>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            state <- new_mutex!(
                State {
                    driver,
                    config: Config::default(),
                    options: AdapterOptions::NONE,
                    tdr_delay_ms: None,
                    adapter: None,
                },
                "SoftAdapter::state"
            ),
        })
    }

    /// Changes a property, which is fixed while the adapter is there.
    fn configure(&self, change: impl FnOnce(&mut Config)) -> Result {
        let mut state = self.state.lock();
        let mut config = state.config;

        if state.adapter.is_some() {
            return Err(EBUSY);
        }
        change(&mut config);
        if !config.is_valid() {
            return Err(EINVAL);
        }
        state.config = config;
        Ok(())
    }
}

impl State {
    fn enable(&mut self) -> Result {
        if self.adapter.is_none() {
            let adapter = add_adapter(&self.driver, self.config, &self.options)?;

            if let Some(ms) = self.tdr_delay_ms {
                // It was checked when it was set.
                let _set = adapter.recovery.set_delay_ms(ms);
            }
            self.adapter = Some(adapter);
        }
        Ok(())
    }

    fn disable(&mut self) {
        if let Some(adapter) = self.adapter.take() {
            self.driver.remove_adapter(&adapter);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.disable();
    }
}

/// Writes the text of a file, and says how long it is.
fn show(page: &mut [u8; PAGE_SIZE], text: fmt::Arguments<'_>) -> Result<usize> {
    let mut writer = Formatter::new(page);

    writer.write_fmt(text)?;
    Ok(writer.bytes_written())
}

/// What somebody has written, as `read` understands it.
fn written<T>(page: &[u8], read: impl FnOnce(&str) -> Option<T>) -> Result<T> {
    let text = core::str::from_utf8(page).map_err(|_| EINVAL)?;

    read(text.trim()).ok_or(EINVAL)
}

/// A number as somebody has written it.
fn number(page: &[u8]) -> Result<u64> {
    written(page, |text| text.parse().ok())
}

/// `enabled`: whether there is the adapter.
#[vtable]
impl AttributeOperations<0> for SoftAdapter {
    type Data = Self;

    fn show(this: &Self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let enabled = u8::from(this.state.lock().adapter.is_some());

        show(page, fmt!("{enabled}\n"))
    }

    fn store(this: &Self, page: &[u8]) -> Result {
        let enabled = kstrtobool_bytes(page)?;
        let mut state = this.state.lock();

        if enabled {
            state.enable()?;
        } else {
            state.disable();
        }
        Ok(())
    }
}

/// `luid`: its name while it is there.
#[vtable]
impl AttributeOperations<1> for SoftAdapter {
    type Data = Self;

    fn show(this: &Self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let state = this.state.lock();
        let luid = state.adapter.as_ref().ok_or(ENODEV)?.luid;

        show(page, fmt!("{:08x}:{:08x}\n", luid.high, luid.low))
    }
}

/// `cpu_events`: whether they go across the border of a virtual machine (CPU-55).
#[vtable]
impl AttributeOperations<19> for SoftAdapter {
    type Data = Self;

    fn show(this: &Self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let name = this.state.lock().options.event_path.name();

        show(page, fmt!("{name}\n"))
    }

    fn store(this: &Self, page: &[u8]) -> Result {
        let path = written(page, EventPath::named)?;
        let mut state = this.state.lock();

        if state.adapter.is_some() {
            return Err(EBUSY);
        }
        state.options.event_path = path;
        Ok(())
    }
}

/// `paging_log`: whether the log of its memory manager is on from the start (MEM-103).
#[vtable]
impl AttributeOperations<30> for SoftAdapter {
    type Data = Self;

    fn show(this: &Self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let is_on = u8::from(this.state.lock().options.logs_paging);

        show(page, fmt!("{is_on}\n"))
    }

    fn store(this: &Self, page: &[u8]) -> Result {
        let is_on = kstrtobool_bytes(page)?;
        let mut state = this.state.lock();

        if state.adapter.is_some() {
            return Err(EBUSY);
        }
        state.options.logs_paging = is_on;
        Ok(())
    }
}

/// `features`: what is configured about its features, a line for each (FEN-114).
#[vtable]
impl AttributeOperations<20> for SoftAdapter {
    type Data = Self;

    fn show(this: &Self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let state = this.state.lock();
        let mut writer = Formatter::new(page);

        for (id, own) in state.options.overrides.each() {
            let [enabled, experimental] = [own.enabled, own.allow_experimental].map(u8::from);

            writer.write_fmt(fmt!("{id} enabled={enabled}"))?;
            if let Some(versions) = own.versions {
                let (min, max) = versions.ends();

                writer.write_fmt(fmt!(" min_version={min} max_version={max}"))?;
            }
            writer.write_fmt(fmt!(" allow_experimental={experimental}\n"))?;
        }
        Ok(writer.bytes_written())
    }

    fn store(this: &Self, page: &[u8]) -> Result {
        let mut state = this.state.lock();

        if state.adapter.is_some() {
            return Err(EBUSY);
        }
        state.options.overrides.set(page).map_err(|_| EINVAL)
    }
}

/// `tdr_delay_ms`: how long work may take on an engine. It may be changed at any time.
#[vtable]
impl AttributeOperations<13> for SoftAdapter {
    type Data = Self;

    fn show(this: &Self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let state = this.state.lock();
        let ms = match (&state.adapter, state.tdr_delay_ms) {
            (Some(adapter), _) => adapter.recovery.delay_ms(),
            (None, Some(ms)) => ms,
            (None, None) => params::tdr_delay_ms(),
        };

        show(page, fmt!("{ms}\n"))
    }

    fn store(this: &Self, page: &[u8]) -> Result {
        let ms = u32::try_from(number(page)?).map_err(|_| EINVAL)?;
        let mut state = this.state.lock();

        if !is_delay(ms) {
            return Err(EINVAL);
        }
        if let Some(adapter) = &state.adapter {
            adapter.recovery.set_delay_ms(ms)?;
        }
        state.tdr_delay_ms = Some(ms);
        Ok(())
    }
}

/// `power_state`: D0 or D3, of an adapter that is there. Work wakes it up.
#[vtable]
impl AttributeOperations<14> for SoftAdapter {
    type Data = Self;

    fn show(this: &Self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let state = this.state.lock();
        let power = state.adapter.as_ref().ok_or(ENODEV)?.power.state();

        show(page, fmt!("{power:?}\n"))
    }

    fn store(this: &Self, page: &[u8]) -> Result {
        let state = this.state.lock();
        let power = &state.adapter.as_ref().ok_or(ENODEV)?.power;

        match page.trim_ascii() {
            b"D0" => power.up().map_err(|_| ENODEV),
            b"D3" => power.down(),
            _ => Err(EINVAL),
        }
    }
}
