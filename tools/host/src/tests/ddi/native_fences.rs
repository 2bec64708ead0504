// SPDX-License-Identifier: MIT OR Apache-2.0

//! Native fences with a double below: what is called in which order, and what is undone
//! (FEN-115 to FEN-118, FEN-122, FEN-123, FEN-102, FEN-103).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use super::{device_of, start};
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::native_fence::{
    CreateNativeFenceArgs, CurrentValueUpdate, NativeFenceCallbacks, OpenNativeFenceArgs,
    PRIVATE_DATA_SIZE,
};
use crate::ddi::object::{NativeFence, OpenNativeFence};
use crate::ddi::types::{KmdError, NativeFenceId};
use crate::kmd::fake::journal::Entry;
use crate::kmd::fake::native_fences::NativeFences;
use crate::kmd::fake::Behaviour;
use crate::platform::{load_acquire, word64, Shared};

/// Counts interrupts.
struct Told(AtomicU32);

impl NativeFenceCallbacks for Told {
    fn signaled(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

const SEEN: OpenNativeFenceArgs = OpenNativeFenceArgs {
    current_value: 0x1_0040,
    monitored_value: 0x2_0040,
};

fn behaviour(fences: &Shared<NativeFences>) -> Behaviour {
    Behaviour {
        native_fences: Some(fences.clone()),
        ..Behaviour::default()
    }
}

#[test]
fn fen_122_open_comes_after_create_and_close_before_destroy() {
    let fences = Shared::new(NativeFences::new().unwrap());
    let (journal, port) = start(behaviour(&fences));
    let port = port.unwrap();
    let device = device_of(&port, 3).unwrap();
    let told = Arc::new(Told(AtomicU32::new(0)));
    let callbacks: Shared<dyn NativeFenceCallbacks> = told.clone();
    let args = CreateNativeFenceArgs {
        id: NativeFenceId(7),
        callbacks: &callbacks,
    };
    let class = Passive::here();
    // FEN-123: the client's data go there and back.
    let mut data = [0x5a; PRIVATE_DATA_SIZE];
    let fence = NativeFence::create(&port, &class, &args, &mut data).unwrap();

    assert_eq!(data, [0xa5; PRIVATE_DATA_SIZE]);

    let open = || {
        let mut data = [0; PRIVATE_DATA_SIZE];

        OpenNativeFence::open(&fence, &device, &class, &SEEN, &mut data)
    };
    let opens = [open().unwrap(), open().unwrap()];
    let word = word64(1);

    Dispatch::below(&mut Passive::here(), |class| {
        fence.update_monitored_value(class, 4, &word).unwrap();
        assert_eq!((load_acquire(&word), fences.monitored_updates()), (4, 1));
        for (how, value) in [
            (CurrentValueUpdate::Store, 9),
            (CurrentValueUpdate::NotificationOnly, 9),
            (CurrentValueUpdate::AlwaysSignaled, u64::MAX),
        ] {
            fence
                .update_current_value(class, value, &word, how)
                .unwrap();
            assert_eq!(load_acquire(&word), value);
        }
    });
    assert_eq!((fences.current_updates(), fences.notifications()), (2, 1));
    assert!(fences.signal(0));
    assert_eq!(told.0.load(Ordering::SeqCst), 1);

    // The fence goes with the last one that has it.
    drop(fence);
    assert_eq!(journal.count(Entry::DestroyNativeFence), 0);

    let [first, second] = opens;

    drop(first);
    assert_eq!(journal.count(Entry::CloseNativeFence), 1);
    assert_eq!(journal.count(Entry::DestroyNativeFence), 0);
    drop(second);
    assert_eq!(journal.count(Entry::CloseNativeFence), 2);
    assert_eq!(journal.count(Entry::DestroyNativeFence), 1);
    assert!(!fences.signal(0));
    drop((callbacks, device, port));
    assert_eq!(Shared::strong_count(&told), 1);
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

/// FEN-118: what was done is undone.
#[test]
fn fen_118_a_refusal_of_the_driver_is_returned_as_it_is() {
    for (step, destroys) in [(4, 0), (5, 1)] {
        let fences = Shared::new(NativeFences::new().unwrap());
        // After StartDevice, CreateProcess and CreateDevice.
        let (journal, port) = start(Behaviour {
            fail: Some((step, KmdError::NoMemory)),
            ..behaviour(&fences)
        });
        let port = port.unwrap();
        let device = device_of(&port, 3).unwrap();
        let callbacks: Shared<dyn NativeFenceCallbacks> = Arc::new(Told(AtomicU32::new(0)));
        let args = CreateNativeFenceArgs {
            id: NativeFenceId(7),
            callbacks: &callbacks,
        };
        let class = Passive::here();
        let mut data = [0; PRIVATE_DATA_SIZE];
        let made = NativeFence::create(&port, &class, &args, &mut data);
        let open =
            made.and_then(|fence| OpenNativeFence::open(&fence, &device, &class, &SEEN, &mut data));

        assert_eq!(open.err(), Some(KmdError::NoMemory));
        assert_eq!(journal.count(Entry::DestroyNativeFence), destroys);
        assert_eq!(journal.count(Entry::CloseNativeFence), 0);
        drop((device, port));
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
        assert_eq!(Shared::strong_count(&callbacks), 1);
    }
}

/// Once the adapter is stopped the OS part stores by itself.
#[test]
fn fen_115_a_stopped_driver_is_not_called() {
    let fences = Shared::new(NativeFences::new().unwrap());
    let (journal, port) = start(behaviour(&fences));
    let port = port.unwrap();
    let callbacks: Shared<dyn NativeFenceCallbacks> = Arc::new(Told(AtomicU32::new(0)));
    let args = CreateNativeFenceArgs {
        id: NativeFenceId(7),
        callbacks: &callbacks,
    };
    let class = Passive::here();
    let mut data = [0; PRIVATE_DATA_SIZE];
    let fence = NativeFence::create(&port, &class, &args, &mut data).unwrap();
    let word = word64(1);

    port.stop(&class);

    let class = Dispatch::under_lock();
    let how = CurrentValueUpdate::Store;

    assert_eq!(
        fence.update_monitored_value(&class, 4, &word),
        Err(KmdError::DeviceRemoved)
    );
    assert_eq!(
        fence.update_current_value(&class, 4, &word, how),
        Err(KmdError::DeviceRemoved)
    );
    assert_eq!(load_acquire(&word), 1);
    assert_eq!(
        (fences.monitored_updates(), fences.current_updates()),
        (0, 0)
    );
    drop(fence);
    assert_eq!(journal.count(Entry::DestroyNativeFence), 1);
    drop(port);
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}
