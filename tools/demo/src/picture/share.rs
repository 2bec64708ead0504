// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shared objects: the picture with what synchronises it, as the renderer makes them and as
//! readers open them.

use demo::drawing::{HEIGHT, WIDTH};
use demo::Result;
use opendxg::{
    Access, Acquired, Device, Dxg, FenceValues, GlobalHandle, InfoItem, KeyedMutex, MonitoredFence,
    NtHandle, Object, Resource, ShareOptions, SignalFlags, SyncObject, Timeout,
};

use crate::frame;
use crate::plan::{DESCRIPTION, DRAW, NAME, PATIENCE};

/// The driver and a device on its first adapter.
pub fn device() -> Result<(Dxg, Device)> {
    let dxg = Dxg::open()?;
    let adapters = dxg.adapters()?;
    let adapter = adapters.first().ok_or("there is no adapter")?;
    let device = adapter.create_device()?;
    Ok((dxg, device))
}

/// A picture shared by NT handle: resource, keyed mutex and fence together, with a name.
pub struct Triple {
    /// The picture.
    pub resource: Resource,
    /// Orders the renderer and the reader by NT handle.
    pub mutex: KeyedMutex,
    /// Orders the renderer and the reader by name.
    pub fence: MonitoredFence,
    /// Keeps the name alive.
    pub nt_handle: NtHandle,
}

impl Triple {
    /// Makes and shares them.
    pub fn create(dxg: &Dxg, device: &Device) -> Result<Self> {
        let resource = device.new_resource().linear(size()).nt_shared().create()?;
        describe(&resource)?;
        let mutex = dxg.create_keyed_mutex_with(DRAW, &[], true)?;
        let fence = device.create_shareable_fence(0)?;
        let options = ShareOptions::new(Access::RESOURCE_ALL).name(NAME);
        let objects = [resource.handle(), mutex.handle(), fence.handle()];
        let nt_handle = dxg.share(&objects, &options)?;
        Ok(Self {
            resource,
            mutex,
            fence,
            nt_handle,
        })
    }
}

/// A picture shared by number. A resource is shared either so or by NT handle, so this is a second
/// one.
pub struct Numbered {
    /// The picture.
    pub resource: Resource,
    /// Orders the renderer and the reader.
    pub mutex: KeyedMutex,
}

impl Numbered {
    /// Makes them.
    pub fn create(dxg: &Dxg, device: &Device) -> Result<Self> {
        let resource = device.new_resource().linear(size()).shared().create()?;
        describe(&resource)?;
        Ok(Self {
            resource,
            mutex: dxg.create_keyed_mutex(DRAW)?,
        })
    }

    /// Their numbers, as arguments of a program.
    pub fn numbers(&self) -> Result<[String; 2]> {
        let numbers = self
            .resource
            .global_handle()
            .zip(self.mutex.global_handle());
        let (GlobalHandle(resource), GlobalHandle(mutex)) = numbers.ok_or("no global handles")?;
        Ok([format!("{resource:#x}"), format!("{mutex:#x}")])
    }

    /// Opens them by their numbers.
    pub fn open(dxg: &Dxg, device: &Device, numbers: &[String]) -> Result<Self> {
        let [resource, mutex] = numbers else {
            return Err("two numbers were due".into());
        };
        let number =
            |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).map(GlobalHandle);
        Ok(Self {
            resource: device.open_resource(number(resource)?)?,
            mutex: dxg.open_keyed_mutex(number(mutex)?)?,
        })
    }
}

fn size() -> u64 {
    ((frame::PIXELS + WIDTH * HEIGHT * 4) as u64).next_multiple_of(4096)
}

/// What a reader has to know to make sense of the bytes.
pub struct Description {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Where the first pixel is.
    pub offset: usize,
}

/// Stores the description with the object itself: all who open the picture, in any way, find it.
fn describe(resource: &Resource) -> Result {
    let words = [WIDTH, HEIGHT, frame::PIXELS].map(|number| (number as u64).to_ne_bytes());
    resource.set_info(&[InfoItem::new(DESCRIPTION, 1, &words.concat())])?;
    Ok(())
}

/// Reads the description.
pub fn description(resource: &Resource) -> Result<Description> {
    let bytes = resource.get_info(DESCRIPTION, 1)?.bytes;
    let word = |at: usize| {
        let bytes = bytes.get(at * 8..)?.first_chunk()?;
        usize::try_from(u64::from_ne_bytes(*bytes)).ok()
    };
    let all = word(0).zip(word(1)).zip(word(2));
    let ((width, height), offset) = all.ok_or("the description is too short")?;
    Ok(Description {
        width,
        height,
        offset,
    })
}

/// Takes a keyed mutex whose last owner was done with frame `done`.
pub fn acquire(mutex: &KeyedMutex, key: u64, done: u64) -> Result {
    match mutex.acquire(key, Timeout::After(PATIENCE))? {
        Acquired::Owned(value) if value == done => Ok(()),
        Acquired::Owned(value) => {
            Err(format!("the mutex says frame {value} instead of {done}").into())
        }
        Acquired::TimedOut => Err(format!("nobody was done with frame {done} in time").into()),
        Acquired::Abandoned => Err("another process died with the mutex".into()),
        other => Err(format!("the mutex was acquired in an unknown way: {other:?}").into()),
    }
}

/// Waits until a fence has reached a value.
pub fn wait(fence: &SyncObject, value: u64) -> Result {
    match fence.point(value)?.wait(Some(PATIENCE))? {
        true => Ok(()),
        false => Err(format!("the fence did not reach {value} in time").into()),
    }
}

/// Raises a fence.
pub fn signal(device: &Device, fence: &SyncObject, value: u64) -> Result {
    Ok(device.signal(&FenceValues::new().with(fence, value), SignalFlags::empty())?)
}
