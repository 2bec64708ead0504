// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a KMD says of its adapter reaches the answers of QueryAdapterInfo (gpu.md section 10): each
//! fact is changed, and exactly the answers that tell it change.

use std::{collections::BTreeMap, fmt::Debug};

use crate::{
    ddi::{
        callbacks::{Callbacks, Record},
        caps::{
            AdapterQuery, AdapterType, BusAddress, DeviceIds, DriverCaps, EngineType, Luid,
            NodeMetadata, StartInfo,
        },
        class::Passive,
        port::Port,
        types::Text,
        Kmd,
    },
    kmd::{
        fake::{journal::Journal, Behaviour, FakeKmd},
        soft::{Config, SoftKmd},
    },
    logic::{
        adapter_info::{self, filter::Filter, Asked, Refusal},
        feature::FeatureSet,
        feature_agreement::Agreed,
        feature_overrides::Overrides,
    },
    platform::Shared,
};

/// A change, and what the answers are then.
type Fact<F> = (&'static str, fn(&mut F), Vec<(u32, Told)>);

/// What an answer is.
enum Told {
    /// As before, but for these bytes from this offset on.
    At(usize, Vec<u8>),
    /// These bytes.
    All(Vec<u8>),
    /// A refusal.
    Refused(Refusal),
}

use Told::{All, At, Refused};

type Answers = BTreeMap<u32, Result<Vec<u8>, Refusal>>;

/// Every answer of an adapter, asked for what exists wherever a payload names something.
fn answers(kmd: impl Kmd + 'static) -> (DriverCaps, Answers) {
    let class = &Passive::here();
    let record = Record::new().unwrap();
    let info = StartInfo {
        luid: Luid::default(),
        callbacks: Callbacks::of(&record),
    };
    let port = Port::start(Box::new(kmd), class, &info).unwrap();
    let kmd = &*port.enter().unwrap();
    let features = Agreed::with(&Overrides::NONE, |id, experimental| {
        kmd.query_feature_support(class, id, experimental)
    });
    let mut caps = DriverCaps::default();

    for (id, version) in features.each() {
        record.enable(id, version);
    }
    kmd.query_adapter_info(class, AdapterQuery::DriverCaps(&mut caps));

    let asked = Asked {
        caps: &caps,
        features: features.enabled(),
        kmd,
        class,
    };
    let answers = (0..100)
        .filter_map(|ty| {
            let mut payload = vec![0; adapter_info::payload_size(&caps, ty)?.max];

            // QUERYREGISTRY: the driver store.
            if ty == 48 {
                payload[0] = 2;
            }

            let answer = adapter_info::query(&asked, ty, &mut payload);

            Some((ty, answer.map(|()| payload)))
        })
        .collect();

    (caps, answers)
}

fn fake(
    change_caps: Option<fn(&mut DriverCaps)>,
    change_node: Option<fn(&mut NodeMetadata)>,
) -> Answers {
    let behaviour = Behaviour {
        change_caps,
        change_node,
        ..Behaviour::default()
    };

    answers(FakeKmd::add_device(Shared::new(Journal::new()), behaviour)).1
}

/// A 16-bit field of `units` characters.
fn text(text: &str, units: usize) -> Vec<u8> {
    let mut field: Vec<u8> = text.bytes().flat_map(|byte| [byte, 0]).collect();

    field.resize(2 * units, 0);
    field
}

/// The same bytes at the same place of several types.
fn at(types: &[u32], at: usize, bytes: &[u8]) -> Vec<(u32, Told)> {
    types.iter().map(|ty| (*ty, At(at, bytes.into()))).collect()
}

/// The answers of ADAPTERTYPE when one flag of the double is the other way.
fn adapter_type(bit: u32) -> Vec<(u32, Told)> {
    let flags = 0b1_1101_1111_1010u32 ^ (1 << bit);

    at(&[15, 57], 0, &flags.to_le_bytes())
}

/// The same of WDDM_1_3_CAPS.
fn wddm_1_3(bit: u32) -> Vec<(u32, Told)> {
    at(&[22, 59], 0, &(0b10_0110u32 ^ (1 << bit)).to_le_bytes())
}

/// The same of WDDM_2_0_CAPS.
fn wddm_2_0(bit: u32) -> Vec<(u32, Told)> {
    at(&[24], 0, &(0b10_0111u32 ^ (1 << bit)).to_le_bytes())
}

/// One of the IDs of a device is 7.
fn device_id(offset: usize) -> Vec<(u32, Told)> {
    at(&[31], offset, &[7, 0, 0, 0])
}

fn ids(caps: &mut DriverCaps) -> &mut DeviceIds {
    &mut caps.device_ids
}

fn address(caps: &mut DriverCaps) -> &mut BusAddress {
    caps.bus_address.as_mut().unwrap()
}

fn both(mut some: Vec<(u32, Told)>, more: Vec<(u32, Told)>) -> Vec<(u32, Told)> {
    some.extend(more);
    some
}

/// Every fact about an adapter.
#[rustfmt::skip]
fn facts() -> Vec<Fact<DriverCaps>> {
    const SOURCES: [u32; 6] = [9, 10, 16, 23, 46, 67];
    const SIZE: [u8; 8] = 0x1_2345_6000u64.to_le_bytes();

    vec![
        ("name", |caps| caps.name = Text::new("x"),
            both(at(&[8, 54], 0, &text("x", 260)), at(&[65, 66], 0, &text("x", 4096)))),
        ("hardware.chip_type", |caps| caps.hardware.chip_type = Text::new("x"),
            at(&[8, 54], 1560, &text("x", 260))),
        ("hardware.dac_type", |caps| caps.hardware.dac_type = Text::new("x"),
            at(&[8, 54], 1040, &text("x", 260))),
        ("hardware.bios_string", |caps| caps.hardware.bios_string = Text::new("x"),
            at(&[8, 54], 520, &text("x", 260))),
        ("hardware.bios_version", |caps| caps.hardware.bios_version = Text::new("x"),
            at(&[64], 4, &text("x", 32))),
        ("hardware.gpu_architecture", |caps| caps.hardware.gpu_architecture = Text::new("x"),
            at(&[64], 68, &text("x", 32))),
        ("guid", |caps| caps.guid = *b"0123456789abcdef",
            both(at(&[4, 52], 0, b"3210547689abcdef"),
                at(&[60], 0, &text("{30313233-3435-3637-3839-616263646566}", 40)))),
        ("driver_version", |caps| caps.driver_version = [1, 2, 3, 4],
            at(&[49], 0, &[4, 0, 3, 0, 2, 0, 1, 0])),
        ("umd_version", |caps| caps.umd_version = [1, 2, 3, 4],
            at(&[18], 0, &[4, 0, 3, 0, 2, 0, 1, 0])),
        ("umd_file_names", |caps| caps.umd_file_names[0] = Text::new("x"),
            at(&[1], 4, &text("x", 260))),
        ("wddm_version", |caps| caps.wddm_version = 2700,
            at(&[13, 56], 0, &2700u32.to_le_bytes())),
        ("device_ids.vendor", |caps| ids(caps).vendor = 7, device_id(4)),
        ("device_ids.device", |caps| ids(caps).device = 7, device_id(8)),
        ("device_ids.sub_vendor", |caps| ids(caps).sub_vendor = 7, device_id(12)),
        ("device_ids.sub_system", |caps| ids(caps).sub_system = 7, device_id(16)),
        ("device_ids.revision", |caps| ids(caps).revision = 7, device_id(20)),
        ("device_ids.bus_type", |caps| ids(caps).bus_type = 7, device_id(24)),
        ("bus_address.bus", |caps| address(caps).bus = 7, at(&[6, 53], 0, &[7, 0, 0, 0])),
        ("bus_address.device", |caps| address(caps).device = 7, at(&[6, 53], 4, &[7, 0, 0, 0])),
        ("bus_address.function", |caps| address(caps).function = 7, at(&[6, 53], 8, &[7, 0, 0, 0])),
        ("adapter_type.render", |caps| caps.adapter_type.render = true, adapter_type(0)),
        ("adapter_type.display", |caps| caps.adapter_type.display = false, adapter_type(1)),
        ("adapter_type.software", |caps| caps.adapter_type.software = true, adapter_type(2)),
        ("adapter_type.post", |caps| caps.adapter_type.post = false, adapter_type(3)),
        ("adapter_type.hybrid_discrete", |caps| caps.adapter_type.hybrid_discrete = false,
            both(adapter_type(4), wddm_1_3(2))),
        ("adapter_type.hybrid_integrated", |caps| caps.adapter_type.hybrid_integrated = false,
            both(adapter_type(5), wddm_1_3(1))),
        ("adapter_type.indirect_display", |caps| caps.adapter_type.indirect_display = false,
            adapter_type(6)),
        ("adapter_type.paravirtualized", |caps| caps.adapter_type.paravirtualized = false,
            adapter_type(7)),
        ("adapter_type.acg", |caps| caps.adapter_type.acg = false, adapter_type(8)),
        ("adapter_type.detachable", |caps| caps.adapter_type.detachable = false, adapter_type(10)),
        ("adapter_type.compute_only", |caps| caps.adapter_type.compute_only = false,
            adapter_type(11)),
        ("adapter_type.prototype", |caps| caps.adapter_type.prototype = false, adapter_type(12)),
        ("secure_container", |caps| caps.secure_container = false, at(&[68], 0, &[0])),
        ("video_present_sources", |caps| caps.video_present_sources = 0,
            SOURCES.map(|ty| (ty, Refused(Refusal::InvalidParameter))).into()),
        ("driver_store", |caps| caps.driver_store = Text::new("/else"),
            at(&[48], 544, &text("/else", 6))),
        ("umd_private_size", |caps| caps.umd_private_size = 8, vec![(0, All(vec![0xfa; 8]))]),
        ("physical_adapters", |caps| caps.physical_adapters = 3, at(&[30], 0, &[3, 0, 0, 0])),
        ("nodes", |caps| caps.nodes = 0, vec![(25, Refused(Refusal::InvalidParameter))]),
        ("preemption.graphics", |caps| caps.preemption.graphics = 7,
            at(&[17, 58], 0, &[7, 0, 0, 0])),
        ("preemption.compute", |caps| caps.preemption.compute = 7,
            at(&[17, 58], 4, &[7, 0, 0, 0])),
        ("no_64_bit_atomics", |caps| caps.no_64_bit_atomics = true, wddm_2_0(0)),
        ("surprise_removal", |caps| caps.surprise_removal = false, wddm_2_0(5)),
        ("cross_adapter_tier", |caps| caps.cross_adapter_tier = 0,
            both(at(&[76], 0, &[0; 4]), wddm_1_3(5))),
        ("gpu_mmu.address_bits", |caps| caps.gpu_mmu.address_bits = 0,
            both(at(&[34], 8, &[0; 4]), wddm_2_0(1))),
        ("gpu_mmu.read_only", |caps| caps.gpu_mmu.read_only = true, at(&[34], 4, &[0b011])),
        ("gpu_mmu.no_execute", |caps| caps.gpu_mmu.no_execute = false, at(&[34], 4, &[0])),
        ("gpu_mmu.cache_coherent", |caps| caps.gpu_mmu.cache_coherent = true,
            at(&[34], 4, &[0b110])),
        ("io_mmu", |caps| caps.io_mmu = false, wddm_2_0(2)),
        ("local_memory", |caps| caps.local_memory = u64::from_le_bytes(SIZE),
            [at(&[3], 0, &SIZE), at(&[42], 8, &SIZE), at(&[42], 32, &SIZE)]
                .into_iter().flatten().collect()),
        ("dedicated_system_memory",
            |caps| caps.dedicated_system_memory = u64::from_le_bytes(SIZE),
            both(at(&[3], 8, &SIZE), at(&[42], 16, &SIZE))),
        ("system_memory", |caps| caps.system_memory = u64::from_le_bytes(SIZE),
            [at(&[3], 16, &SIZE), at(&[42], 24, &SIZE), at(&[42], 40, &SIZE)]
                .into_iter().flatten().collect()),
    ]
}

/// Facts that other calls than QueryAdapterInfo are about.
const ELSEWHERE: [&str; 17] = [
    "paging_node",
    "swizzling_ranges",
    "native_gpu_fence",
    "optimized_native_fence_interrupt",
    "standard_data_size",
    "context_data_size",
    "max_escape_size",
    "gpu_mmu.page_table_update_mode",
    "gpu_mmu.page_table_update_require_address_space_idle",
    "gpu_mmu.invalid_tlb_entries_not_cached",
    "gpu_mmu.explicit_page_table_invalidation",
    "gpu_mmu.leaf_table_bytes_64kb",
    "gpu_mmu.page_table_levels",
    "gpu_mmu.levels.index_bits",
    "gpu_mmu.levels.table_bytes",
    "gpu_mmu.levels.segment",
    "gpu_mmu.levels.paging_process_segment",
];

/// Facts that both have in common: the OS part accepts nothing else yet, or they are off unless a
/// test asks the double for them.
const ALIKE: [&str; 10] = [
    "no_64_bit_atomics",
    "swizzling_ranges",
    "optimized_native_fence_interrupt",
    "gpu_mmu.page_table_update_mode",
    "gpu_mmu.page_table_update_require_address_space_idle",
    "gpu_mmu.invalid_tlb_entries_not_cached",
    "gpu_mmu.explicit_page_table_invalidation",
    "gpu_mmu.leaf_table_bytes_64kb",
    "gpu_mmu.levels.segment",
    "gpu_mmu.levels.paging_process_segment",
];

/// Every fact about a node.
#[rustfmt::skip]
fn node_facts() -> Vec<Fact<NodeMetadata>> {
    vec![
        ("engine_type", |node| node.engine_type = EngineType::Copy, at(&[25], 4, &[6, 0, 0, 0])),
        ("name", |node| node.name = Text::new("x"), at(&[25], 8, &text("x", 32))),
        ("context_scheduling", |node| node.context_scheduling = false,
            at(&[25], 72, &[0b1000])),
        ("ring_buffer_fence_release", |node| node.ring_buffer_fence_release = true,
            at(&[25], 72, &[0b1011])),
        ("user_mode_submission", |node| node.user_mode_submission = false, at(&[25], 72, &[0b1])),
        ("max_in_flight_hw_queue_buffers", |node| node.max_in_flight_hw_queue_buffers = 7,
            at(&[25], 74, &[7, 0])),
        ("gpu_mmu", |node| node.gpu_mmu = true, at(&[25], 76, &[1])),
        ("io_mmu", |node| node.io_mmu = false, at(&[25], 77, &[0])),
    ]
}

/// What is left of `before` when these are told instead.
fn with(before: &Answers, told: Vec<(u32, Told)>) -> Answers {
    let mut after = before.clone();

    for (ty, told) in told {
        let answer = after.get_mut(&ty).expect("a known type");

        match told {
            At(at, bytes) => {
                let field = &mut answer.as_mut().expect("an answer")[at..at + bytes.len()];

                field.copy_from_slice(&bytes);
            }
            All(bytes) => *answer = Ok(bytes),
            Refused(refusal) => *answer = Err(refusal),
        }
        assert_ne!(before[&ty], after[&ty], "type {ty}: nothing changed");
    }
    after
}

#[track_caller]
fn same(fact: &str, found: &Answers, expected: &Answers) {
    for (ty, answer) in expected {
        assert_eq!(found[ty], *answer, "{fact}: type {ty}");
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn each_fact_of_an_adapter_reaches_its_answers() {
    let before = fake(None, None);

    for (fact, change, told) in facts() {
        same(fact, &fake(Some(change), None), &with(&before, told));
    }
}

#[test]
fn each_fact_of_a_node_reaches_its_answers() {
    let before = fake(None, None);

    for (fact, change, told) in node_facts() {
        same(fact, &fake(None, Some(change)), &with(&before, told));
    }
}

/// The facts by name, as their text for debugging shows them.
fn leaves(facts: &impl Debug) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::<String, String>::new();
    let mut outer: Vec<Option<String>> = Vec::new();

    for line in format!("{facts:#?}").lines() {
        let line = line.trim();
        let (name, value) = match line.split_once(": ") {
            Some((name, value)) => (Some(name.to_owned()), value),
            None => (None, line),
        };
        let path = |outer: &[Option<String>]| {
            outer
                .iter()
                .chain([&name])
                .flatten()
                .cloned()
                .collect::<Vec<_>>()
                .join(".")
        };

        if line.starts_with(['}', ')', ']']) {
            outer.pop();
        } else {
            let is_group = value.ends_with('{') || value == "Some(";

            if !is_group {
                *leaves.entry(path(&outer)).or_default() += value;
            }
            if value.ends_with(['{', '(', '[']) {
                outer.push(name);
            }
        }
    }
    // An array of groups has its facts in the groups.
    leaves.retain(|_, value| value != "[");
    leaves
}

#[test]
fn the_tables_have_every_fact() {
    fn check<F>(all: &BTreeMap<String, String>, table: Vec<Fact<F>>, more: &[&str]) {
        let mut names: Vec<_> = table.iter().map(|(name, ..)| *name).collect();

        names.extend(more);
        names.sort();
        assert_eq!(all.keys().collect::<Vec<_>>(), names);
    }

    let class = &Passive::here();
    let kmd = FakeKmd::add_device(Shared::new(Journal::new()), Behaviour::default());
    let (caps, _) = answers(kmd);

    check(&leaves(&caps), facts(), &ELSEWHERE);

    let node = SoftKmd::add_device(Config::default()).get_node_metadata(class, 0);

    check(&leaves(&node), node_facts(), &[]);
}

/// A fact that both have in common could come from anywhere.
#[test]
fn the_double_differs_from_the_software_adapter_in_every_fact() {
    let fake = FakeKmd::add_device(Shared::new(Journal::new()), Behaviour::default());
    let soft = SoftKmd::add_device(Config::default());
    let (fake_caps, fake_answers) = answers(fake);
    let (soft_caps, soft_answers) = answers(soft);
    let soft_leaves = leaves(&soft_caps);

    for (name, value) in leaves(&fake_caps) {
        if ALIKE.contains(&name.as_str()) {
            continue;
        }
        assert_ne!(soft_leaves.get(&name), Some(&value), "{name}");
    }

    // What both answer alike is not of the KMD: nothing of that kind exists for the OS part.
    let alike: Vec<u32> = fake_answers
        .iter()
        .filter(|(ty, answer)| soft_answers[ty] == **answer)
        .map(|(ty, _)| *ty)
        .collect();

    assert_eq!(
        alike,
        [
            2, 5, 7, 11, 12, 19, 20, 21, 26, 27, 28, 29, 32, 33, 35, 37, 38, 39, 40, 41, 43, 44,
            45, 47, 50, 51, 55, 61, 62, 63, 70, 71, 72, 73, 74, 75, 77
        ]
    );
}

#[test]
fn there_is_a_user_mode_driver_for_each_version() {
    let kmd = FakeKmd::add_device(Shared::new(Journal::new()), Behaviour::default());
    let (caps, _) = answers(kmd);
    let kmd = SoftKmd::add_device(Config::default());

    for (version, name) in (0u32..).zip(["9.so", "10.so", "11.so", "12.so"]) {
        let mut payload = vec![0xa5; 524];
        let asked = Asked {
            caps: &caps,
            features: FeatureSet::NONE,
            kmd: &kmd,
            class: &Passive::here(),
        };

        payload[..4].copy_from_slice(&version.to_le_bytes());
        assert_eq!(adapter_info::query(&asked, 1, &mut payload), Ok(()));
        assert_eq!(payload[4..], text(name, 260));
    }
}

/// Compute-only and display-only adapters are listed only if the filter includes them; what is both
/// only computes.
#[test]
fn a_filter_chooses_by_the_type_of_an_adapter() {
    let ty = |render, display, compute_only| AdapterType {
        render,
        display,
        compute_only,
        ..AdapterType::default()
    };
    // For filters 0 to 3, and for D3DKMTEnumAdapters2.
    for (ty, listed) in [
        (ty(true, false, false), [true, true, true, true, true]),
        (ty(true, true, false), [true, true, true, true, true]),
        (ty(false, true, false), [false, false, true, true, true]),
        (ty(false, false, true), [false, true, false, true, false]),
        (ty(false, true, true), [false, true, false, true, false]),
    ] {
        let filters = (0..4)
            .map(|bits| Filter::decode(bits).unwrap())
            .chain([Filter::GRAPHICS]);
        let found: Vec<bool> = filters.map(|filter| filter.includes(&ty)).collect();

        assert_eq!(found, listed, "{ty:?}");
    }
    for bit in 2..64 {
        assert!(Filter::decode(1 << bit).is_err(), "bit {bit}");
    }
}

/// What can be configured of a software adapter is what it says.
#[test]
fn gpu_1_a_software_adapter_is_as_configured() {
    let config = Config {
        compute_only: true,
        wddm_version: 2700,
        ..Config::default()
    };
    let before = answers(SoftKmd::add_device(Config::default())).1;
    let told = [
        at(&[15, 57], 0, &0b1000_0000_0100u32.to_le_bytes()),
        at(&[13, 56], 0, &2700u32.to_le_bytes()),
        at(&[25], 4, &[0]),
        at(&[25], 8, &text("Compute 0", 32)),
    ];
    let told = told.into_iter().flatten().collect();

    assert!(config.is_valid());
    same(
        "configuration",
        &answers(SoftKmd::add_device(config)).1,
        &with(&before, told),
    );
    for wddm_version in [0, 1300, 1900, 1999, 2050, 2999, 3001, 3300, u32::MAX] {
        assert!(!Config {
            wddm_version,
            ..config
        }
        .is_valid());
    }
    for wddm_version in (2000..=3200).step_by(100) {
        assert!(Config {
            wddm_version,
            ..config
        }
        .is_valid());
    }
}

/// A source that exists is not an invalid parameter, but nothing can be done with it.
#[test]
fn a_payload_names_a_video_present_source() {
    let kmd = FakeKmd::add_device(Shared::new(Journal::new()), Behaviour::default());
    let (caps, _) = answers(kmd);
    let kmd = SoftKmd::add_device(Config::default());
    let asked = Asked {
        caps: &caps,
        features: FeatureSet::NONE,
        kmd: &kmd,
        class: &Passive::here(),
    };

    for ty in [9, 10, 16, 23, 46, 67] {
        for (source, refusal) in [
            (2u32, Refusal::NotSupported),
            (3, Refusal::InvalidParameter),
            (u32::MAX, Refusal::InvalidParameter),
        ] {
            let mut payload = vec![0; 64];

            payload[..4].copy_from_slice(&source.to_le_bytes());
            assert_eq!(
                adapter_info::query(&asked, ty, &mut payload),
                Err(refusal),
                "type {ty}, source {source}"
            );
        }
    }
}
