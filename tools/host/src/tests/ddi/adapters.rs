// SPDX-License-Identifier: MIT OR Apache-2.0

//! Two adapters, and the software adapter below the interface.

use super::{
    allocation_of, context_args, device_of, info, process_args, queue_of, scene, start, NOBODY,
    TWO_PAGES,
};
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::object::OpenAllocation;
use crate::ddi::port::Port;
use crate::ddi::reserve::NoAddresses;
use crate::ddi::types::{CreateDeviceArgs, DeviceId, Escape, KmdError};
use crate::ddi::{Destroy, Kmd};
use crate::kmd::fake::journal::Entry;
use crate::kmd::fake::Behaviour;
use crate::kmd::soft::{Config, SoftKmd};

/// An allocation that crosses adapters is unknown to the KMD of the other adapter.
#[test]
fn gpu_103_no_kmd_gets_the_cookie_of_another() {
    let (journal, port) = start(Behaviour::default());
    let (other_journal, other_port) = start(Behaviour::default());
    let (port, other_port) = (port.unwrap(), other_port.unwrap());
    let class = Passive::here();
    let allocation = allocation_of(&port, &TWO_PAGES).unwrap();
    let device = device_of(&other_port, 1).unwrap();

    assert!(OpenAllocation::open(&device, &class, &allocation)
        .unwrap()
        .is_none());
    drop((allocation, device, port, other_port));
    assert_eq!(other_journal.count(Entry::OpenAllocation), 0);
    assert!(journal.is_good_end() && other_journal.is_good_end());
}

#[test]
fn the_software_adapter_goes_through_the_same_scene() {
    let class = Passive::here();
    let kmd = SoftKmd::add_device(Config::default());
    let port = Port::start(Box::new(kmd), &class, &info()).unwrap();
    let mut data = [0; 48];

    port.enter()
        .unwrap()
        .get_standard_allocation_driver_data(&class, 0x2000, &mut data);
    assert_eq!(scene(&port, &data), Ok(()));
    assert_eq!(scene(&port, &data[1..]), Err(KmdError::InvalidParameter));
    port.stop(&class);
    assert_eq!(scene(&port, &data), Err(KmdError::DeviceRemoved));
}

#[test]
fn escapes_of_the_software_adapter() {
    let class = Passive::here();
    let kmd = SoftKmd::add_device(Config::default());

    for (flags, size, error) in [
        (0, 8, KmdError::InvalidParameter),
        (1 << 6, 7, KmdError::InvalidParameter),
        ((1 << 6) | 1, 8, KmdError::InvalidParameter),
        (1 << 6, 8, KmdError::NotSupported),
    ] {
        let mut data = vec![3; size];

        let escape = Escape {
            flags,
            device: None,
            is_privileged: true,
            handles: None,
        };

        assert_eq!(kmd.escape(&class, &escape, &mut data), Err(error));
        assert!(
            data.iter().all(|byte| *byte == 3),
            "a refusal changes nothing"
        );
    }
}

#[test]
fn clocks_of_the_software_adapter() {
    let kmd = SoftKmd::add_device(Config::default());
    let clock = || {
        Dispatch::below(&mut Passive::here(), |class| {
            kmd.calibrate_gpu_clock(class, 0, 0)
        })
    };
    let (first, second) = (clock(), clock());

    assert_eq!(first.gpu_frequency, 1_000_000_000);
    assert_eq!(first.gpu_counter, first.cpu_counter);
    assert!(first.is_cmp_clock && first.gpu_counter <= second.gpu_counter);
}

/// What the driver makes first has cookie 0, and is used as anything else.
#[test]
fn gpu_103_a_cookie_of_0_is_a_good_one() {
    let class = Passive::here();
    let mut kmd = SoftKmd::add_device(Config::default());

    kmd.start_device(&class, &info()).unwrap();

    let process = kmd
        .create_process(&class, &process_args(5), &mut NoAddresses)
        .unwrap();
    let device = CreateDeviceArgs {
        id: DeviceId(6),
        process,
        is_system: false,
    };
    let device = kmd.create_device(&class, &device).unwrap();
    let context = kmd.create_context(&class, device, &context_args()).unwrap();
    let queue = kmd
        .create_hw_queue(&class, context, &queue_of(&NOBODY))
        .unwrap();

    assert_eq!((process.0, device.0, context.0, queue.0), (0, 0, 0, 0));
    kmd.destroy_hw_queue(&class, queue);
    // A queue of the same context has the same number again.
    assert_eq!(
        kmd.create_hw_queue(&class, context, &queue_of(&NOBODY)),
        Ok(queue)
    );
    kmd.destroy_hw_queue(&class, queue);
    kmd.destroy_context(&class, context);
    assert_eq!(
        kmd.create_hw_queue(&class, context, &queue_of(&NOBODY)),
        Err(KmdError::InvalidParameter)
    );
}
