// SPDX-License-Identifier: MIT OR Apache-2.0

//! An adapter whose CMP reaches native fences in the paging process (FEN-119).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use super::{in_dispatch, started, started_unverified, Ear, Space, PAGE};
use crate::ddi::caps::AdapterQuery;
use crate::ddi::class::{DeviceInterrupt, Passive};
use crate::ddi::native_fence::{
    CreateNativeFenceArgs, CurrentValueUpdate, NativeFenceCallbacks, NativeFenceCaps,
    NativeFenceType, SystemWords, PRIVATE_DATA_SIZE,
};
use crate::ddi::object::{Context, NativeFence, NotUpdated};
use crate::ddi::port::Port;
use crate::ddi::types::{KmdError, KmdResult, NativeFenceId, Scheduling};
use crate::kmd::soft::{Config, MonitoredValues};
use crate::physical::Frame;
use crate::platform::{load_acquire, store_release, word64, Shared};

/// Counts interrupts.
#[derive(Default)]
struct Told(AtomicU32);

impl NativeFenceCallbacks for Told {
    fn signaled(&self, _: &DeviceInterrupt) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn destroyed(&self) {}
}

/// Where the words are: in the middle of their pages.
const OFFSET: u64 = 0x140;
const WORDS: SystemWords = SystemWords {
    current_value: 0x7000 + OFFSET,
    monitored_value: 0x8000 + OFFSET,
};
const INDEX: usize = OFFSET as usize / 8;

/// The paging process, with a page of each word.
struct Scene {
    space: Space,
    current: Frame,
    monitored: Frame,
    context: Shared<Context>,
    told: Arc<Told>,
    port: Shared<Port>,
}

impl Scene {
    fn on(port: Shared<Port>) -> Self {
        let space = Space::system(&port, 1);
        let (current, monitored) = (Frame::new(), Frame::new());
        let ear = Shared::new(Ear::default());

        store_release(&monitored.words()[INDEX], u64::MAX);
        space.map(WORDS.current_value - OFFSET, &current);
        space.map(WORDS.monitored_value - OFFSET, &monitored);

        let context = space
            .context_of(0, 2, Scheduling::HwQueues, true, &ear)
            .unwrap();

        Self {
            space,
            current,
            monitored,
            context,
            told: Arc::default(),
            port,
        }
    }

    fn new(monitored_values: MonitoredValues) -> Self {
        let scene = Self::on(started(config(monitored_values)));

        scene.set_root();
        scene
    }

    fn set_root(&self) {
        self.context
            .set_root_page_table(&Passive::here(), &self.space.root())
            .unwrap();
    }

    fn create(&self, system: SystemWords) -> KmdResult<Shared<NativeFence>> {
        let mut caps = NativeFenceCaps::default();
        let class = Passive::here();
        let callbacks: Shared<dyn NativeFenceCallbacks> = self.told.clone();
        let args = CreateNativeFenceArgs {
            id: NativeFenceId(7),
            callbacks: &callbacks,
            monitored_value: u64::MAX,
            ty: NativeFenceType::Default,
            system,
        };

        self.port
            .enter()
            .unwrap()
            .query_adapter_info(&class, AdapterQuery::NativeFenceCaps(&mut caps));
        assert!(caps.map_to_gpu_system_process);
        NativeFence::create(&self.port, &class, &args, &mut [0; PRIVATE_DATA_SIZE])
    }
}

fn config(monitored_values: MonitoredValues) -> Config {
    Config {
        monitored_values,
        map_to_gpu_system_process: true,
        ..Config::default()
    }
}

/// Whether the adapter is gone: then its engines cannot be reset.
fn is_lost(port: &Port) -> bool {
    let class = Passive::here();

    port.enter().unwrap().reset_from_timeout(&class).is_err()
}

#[test]
fn fen_119_the_cmp_stores_by_the_addresses_of_the_paging_process() {
    for monitored_values in [MonitoredValues::Direct, MonitoredValues::Shadow] {
        let scene = Scene::new(monitored_values);
        let fence = scene.create(WORDS).unwrap();
        let [current, monitored] =
            [&scene.current, &scene.monitored].map(|frame| &frame.words()[INDEX]);

        in_dispatch(|class| {
            fence
                .update_current_value(class, 5, current, CurrentValueUpdate::Store)
                .unwrap();
            assert_eq!(load_acquire(current), 5);
            // Nothing is stored where the OS part sees something else.
            let elsewhere = word64(1);

            fence
                .update_current_value(class, 6, &elsewhere, CurrentValueUpdate::Store)
                .unwrap();
            assert_eq!((load_acquire(&elsewhere), load_acquire(current)), (1, 6));
            fence.update_monitored_value(7, monitored, current).unwrap();
            assert_eq!(load_acquire(monitored), 7);
            assert_eq!(scene.told.0.load(Ordering::SeqCst), 0);
            // A CMP with copies looks at CurrentValue there, and not at another word (FEN-75).
            fence
                .update_monitored_value(3, monitored, &elsewhere)
                .unwrap();
        });

        let is_shadow = monitored_values == MonitoredValues::Shadow;

        assert_eq!(
            scene.told.0.load(Ordering::SeqCst),
            u32::from(is_shadow),
            "{monitored_values:?}"
        );
        drop(fence);
        assert!(!is_lost(&scene.port));
    }
}

#[test]
fn fen_119_addresses_that_lead_to_other_words_are_found_out() {
    let scene = Scene::new(MonitoredValues::Direct);
    let fence = scene.create(WORDS).unwrap();
    let other = word64(u64::MAX);

    // FEN-108: MonitoredValue is not the word that the OS part has.
    assert_eq!(
        in_dispatch(|_| fence.update_monitored_value(4, &other, &other)),
        Err(NotUpdated::Failed)
    );
    // It is there, and no MonitoredValue.
    let swapped = SystemWords {
        current_value: WORDS.monitored_value,
        monitored_value: WORDS.current_value,
    };
    // Nothing is there.
    let missing = [
        SystemWords {
            current_value: 0x9000,
            ..WORDS
        },
        SystemWords {
            monitored_value: 0x9000,
            ..WORDS
        },
    ];

    store_release(&scene.monitored.words()[INDEX], u64::MAX);
    for words in missing.into_iter().chain([swapped]) {
        let made = scene.create(words);

        assert_eq!(made.err(), Some(KmdError::InvalidParameter), "{words:?}");
    }
    assert!(scene.create(WORDS).is_ok());
    // FEN-57: what it may only read will not do.
    scene
        .space
        .protect(WORDS.monitored_value - OFFSET, &scene.monitored);
    assert_eq!(scene.create(WORDS).err(), Some(KmdError::InvalidParameter));
}

/// Before there is a root, and after the end of the last system context, nothing is reached.
#[test]
fn fen_119_the_system_context_says_where_the_page_tables_begin() {
    let mut scene = Scene::on(started(config(MonitoredValues::Direct)));

    assert_eq!(scene.create(WORDS).err(), Some(KmdError::InvalidParameter));
    scene.set_root();
    drop(scene.create(WORDS).unwrap());

    assert!(!is_lost(&scene.port));

    // Another one keeps the root, until it is the last.
    for (is_system, error) in [(true, None), (false, Some(KmdError::InvalidParameter))] {
        let ear = Shared::new(Ear::default());
        let next = scene
            .space
            .context_of(0, 3, Scheduling::HwQueues, is_system, &ear);

        scene.context = next.unwrap();
        assert_eq!(scene.create(WORDS).err(), error);
    }
}

/// MEM-102: a page that goes before DestroyNativeFence is never ignored.
#[test]
fn fen_119_a_page_that_goes_too_early_loses_the_adapter() {
    for words in [WORDS.current_value, WORDS.monitored_value] {
        let scene = Scene::new(MonitoredValues::Direct);
        let fence = scene.create(WORDS).unwrap();

        scene.space.unmap(words - OFFSET);
        drop(fence);
        assert!(is_lost(&scene.port));
    }

    // In order.
    let scene = Scene::new(MonitoredValues::Direct);

    drop(scene.create(WORDS).unwrap());
    scene.space.unmap(WORDS.current_value - OFFSET);
    assert!(!is_lost(&scene.port));

    // A stopped adapter looks at no table: they may be gone.
    let scene = Scene::new(MonitoredValues::Direct);
    let fence = scene.create(WORDS).unwrap();

    scene.port.stop(&Passive::here());
    drop(fence);
}

/// Addresses are given exactly if the driver has asked for them, and where it wants them.
#[test]
fn fen_119_fen_65_which_addresses_suit_a_driver() {
    let caps = |map_to_gpu_system_process, minimum_address, maximum_address| NativeFenceCaps {
        map_to_gpu_system_process,
        minimum_address,
        maximum_address,
        ..NativeFenceCaps::default()
    };
    let none = SystemWords::default();
    let words = |current_value, monitored_value| SystemWords {
        current_value,
        monitored_value,
    };

    for (words, caps, suit) in [
        (none, caps(false, 0, 0), true),
        (WORDS, caps(false, 0, 0), false),
        (words(0, WORDS.monitored_value), caps(false, 0, 0), false),
        (none, caps(true, 0, 0), false),
        (WORDS, caps(true, 0, 0), true),
        (words(0, WORDS.monitored_value), caps(true, 0, 0), false),
        (words(PAGE + 4, 2 * PAGE), caps(true, 0, 0), false),
        (words(PAGE, 2 * PAGE + 4), caps(true, 0, 0), false),
        // FEN-60.
        (words(PAGE, PAGE + 8), caps(true, 0, 0), false),
        (words(PAGE, 2 * PAGE), caps(true, PAGE, 3 * PAGE), true),
        (words(PAGE, 2 * PAGE), caps(true, PAGE + 8, 0), false),
        (words(PAGE, 2 * PAGE), caps(true, 0, 2 * PAGE), false),
        (words(2 * PAGE, PAGE), caps(true, 0, 2 * PAGE), false),
    ] {
        assert_eq!(words.suit(&caps), suit, "{words:x?} {caps:?}");
    }
}

/// A driver that has not asked keeps to the words of the calls.
#[test]
fn fen_119_without_the_cap_the_paging_process_is_of_no_use() {
    let scene = Scene::on(started_unverified(Config::default()));

    scene.set_root();

    let callbacks: Shared<dyn NativeFenceCallbacks> = scene.told.clone();
    let args = CreateNativeFenceArgs {
        id: NativeFenceId(7),
        callbacks: &callbacks,
        monitored_value: u64::MAX,
        ty: NativeFenceType::Default,
        system: SystemWords::default(),
    };
    let class = Passive::here();
    let fence =
        NativeFence::create(&scene.port, &class, &args, &mut [0; PRIVATE_DATA_SIZE]).unwrap();
    let word = word64(0);

    in_dispatch(|_| fence.update_monitored_value(9, &word, &word)).unwrap();
    assert_eq!(load_acquire(&word), 9);
    scene.space.unmap(WORDS.current_value - OFFSET);
    drop(fence);
    assert!(!is_lost(&scene.port));
}
