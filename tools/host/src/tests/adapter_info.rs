// SPDX-License-Identifier: MIT OR Apache-2.0

//! QueryAdapterInfo of the software adapter: sizes, refusals, and every answer a client reads.

use proptest::prelude::*;

use crate::{
    ddi::{
        callbacks::{Callbacks, Record},
        caps::{DriverCaps, GpuMmuCaps, Luid, StartInfo},
        class::Passive,
        Kmd,
    },
    kmd::soft::{Config, SoftKmd},
    logic::{
        adapter_info::{self, Asked, Refusal, Size},
        feature::{self, FeatureSet},
        feature_overrides::Overrides,
        start_rules,
    },
};

/// The types of each payload size in bytes, from the table of abi.md section 6.10, in the 16-bit
/// WCHAR form. Type 0 is the driver's own.
const PAYLOADS: &[(usize, &[u32])] = &[
    (1, &[44, 68]),
    (
        4,
        &[
            11, 12, 13, 15, 19, 20, 22, 24, 27, 28, 30, 32, 33, 35, 37, 38, 39, 40, 43, 45, 55, 56,
            57, 59, 70, 73, 75, 76, 77, 80,
        ],
    ),
    (8, &[10, 16, 18, 47, 49, 50, 51, 67, 74]),
    (12, &[5, 6, 7, 17, 34, 46, 53, 58, 72]),
    (16, &[4, 23, 52]),
    (24, &[3, 41]),
    (28, &[31]),
    (32, &[0]),
    (40, &[63]),
    (48, &[9]),
    (56, &[42, 61]),
    (64, &[62]),
    (78, &[25]),
    (80, &[60]),
    (132, &[64]),
    (520, &[21, 26, 29]),
    (524, &[1, 71]),
    (528, &[2]),
    (552, &[48]),
    (2080, &[8, 54]),
    (8192, &[65, 66]),
];

/// Pairs of a type and its payload size.
fn payloads() -> impl Iterator<Item = (u32, usize)> {
    PAYLOADS
        .iter()
        .flat_map(|(bytes, types)| types.iter().map(|ty| (*ty, *bytes)))
}

/// Types whose payload names a video present source.
const NEEDS_A_SOURCE: &[u32] = &[9, 10, 16, 23, 46, 67];
/// Types whose subject the adapter does not have.
const NOT_SUPPORTED: &[u32] = &[7, 41, 47, 61, 62, 63];
/// Types with an input that 0 is valid for: (type, offset of a PhysicalAdapterIndex).
const PHYSICAL_ADAPTER_INDEX: &[(u32, usize)] =
    &[(31, 0), (34, 0), (42, 0), (48, 532), (64, 0), (72, 0)];

const POISON: u8 = 0xa5;

/// A started software adapter, and what the OS part knows of it.
struct Adapter {
    kmd: SoftKmd,
    caps: DriverCaps,
    features: FeatureSet,
}

impl Adapter {
    fn new(index: u32, luid: Luid) -> Self {
        let class = Passive::here();
        let mut kmd = SoftKmd::add_device(Config {
            index,
            ..Config::default()
        });
        let record = Record::new().unwrap();
        let callbacks = Callbacks::of(&record);

        kmd.start_device(&class, &StartInfo { luid, callbacks })
            .unwrap();

        let answers = start_rules::ask(&kmd, &class, &record, &Overrides::NONE).unwrap();

        Self {
            kmd,
            caps: answers.caps,
            features: answers.features.enabled(),
        }
    }
}

fn soft() -> Adapter {
    Adapter::new(
        3,
        Luid {
            low: 0x0d9a_0003,
            high: -2,
        },
    )
}

fn payload_size(ty: u32) -> Option<Size> {
    adapter_info::payload_size(&soft().caps, ty)
}

fn query(adapter: &Adapter, ty: u32, payload: &mut [u8]) -> Result<(), Refusal> {
    let asked = Asked {
        caps: &adapter.caps,
        features: adapter.features,
        kmd: &adapter.kmd,
        class: &Passive::here(),
    };

    adapter_info::query(&asked, ty, payload)
}

/// The answer for a zeroed payload of exactly the minimal size.
fn ask(adapter: &Adapter, ty: u32) -> Result<Vec<u8>, Refusal> {
    let mut payload = vec![0; payload_size(ty).expect("known type").min];

    query(adapter, ty, &mut payload).map(|()| payload)
}

fn dword(payload: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(payload[at..at + 4].try_into().unwrap())
}

fn qword(payload: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(payload[at..at + 8].try_into().unwrap())
}

/// The text of a field of 16-bit characters; it must end with a NUL and be filled up with NULs.
fn text(field: &[u8]) -> String {
    let units: Vec<u16> = field
        .chunks(2)
        .map(|unit| u16::from_le_bytes(unit.try_into().unwrap()))
        .collect();
    let end = units.iter().position(|unit| *unit == 0).expect("NUL");

    assert!(units[end..].iter().all(|unit| *unit == 0));
    String::from_utf16(&units[..end]).unwrap()
}

#[test]
fn every_type_has_the_specified_size() {
    let known = |ty| payloads().find(|(known, _)| *known == ty);

    for ty in (0..0x200).chain([0x8000_0000, u32::MAX]) {
        assert_eq!(
            payload_size(ty).map(|size| size.min),
            known(ty).map(|(_, bytes)| bytes),
            "type {ty}"
        );
    }
}

#[test]
fn an_unknown_type_is_an_invalid_parameter() {
    for ty in [14, 36, 69, 78, 79, 81, 82, u32::MAX] {
        assert_eq!(
            query(&soft(), ty, &mut [0; 8192]),
            Err(Refusal::InvalidParameter),
            "type {ty}"
        );
    }
}

#[test]
fn a_payload_one_byte_short_is_refused_and_untouched() {
    for (ty, bytes) in payloads() {
        let mut payload = vec![0; bytes - 1];

        assert_eq!(
            query(&soft(), ty, &mut payload),
            Err(Refusal::InvalidParameter),
            "type {ty}"
        );
        assert!(payload.iter().all(|byte| *byte == 0), "type {ty}");
    }
}

#[test]
fn every_type_is_answered_or_refused_for_its_reason() {
    for (ty, _) in payloads() {
        let expected = match ty {
            ty if NEEDS_A_SOURCE.contains(&ty) => Err(Refusal::InvalidParameter),
            ty if NOT_SUPPORTED.contains(&ty) => Err(Refusal::NotSupported),
            _ => Ok(()),
        };

        assert_eq!(ask(&soft(), ty).map(drop), expected, "type {ty}");
    }
}

/// What a type answers does not depend on what the outputs held before.
#[test]
fn an_answer_writes_every_output() {
    for (ty, bytes) in payloads() {
        let Ok(from_zero) = ask(&soft(), ty) else {
            continue;
        };
        let inputs = match ty {
            1 | 25 | 31 | 34 | 42 | 64 | 71 => 0..4,
            48 => 0..536,
            72 => 0..8,
            _ => 0..0,
        };
        let mut poisoned = vec![POISON; bytes];

        poisoned[inputs].fill(0);
        assert_eq!(query(&soft(), ty, &mut poisoned), Ok(()), "type {ty}");
        assert_eq!(poisoned, from_zero, "type {ty}");
    }
}

#[test]
fn nothing_is_written_beyond_the_payload() {
    for (ty, _) in payloads() {
        let max = payload_size(ty).unwrap().max;
        let mut payload = vec![0; max];

        payload.extend([POISON; 64]);
        let _ = query(&soft(), ty, &mut payload);
        assert_eq!(payload[max..], [POISON; 64], "type {ty}");
    }
}

#[test]
fn there_is_one_physical_adapter() {
    assert_eq!(ask(&soft(), 30).unwrap(), [1, 0, 0, 0]);
    for (ty, at) in PHYSICAL_ADAPTER_INDEX {
        for index in [1, 0x1_0000, u32::MAX] {
            let mut payload = vec![0; payload_size(*ty).unwrap().max];

            payload[*at..*at + 4].copy_from_slice(&index.to_le_bytes());
            assert_eq!(
                query(&soft(), *ty, &mut payload),
                Err(Refusal::InvalidParameter),
                "type {ty} index {index}"
            );
        }
    }
}

/// NVIDIA/libnvidia-container wants at least 2800; native fences are of 3200.
#[test]
fn driver_version_is_wddm_3_2() {
    for ty in [13, 56] {
        assert_eq!(dword(&ask(&soft(), ty).unwrap(), 0), 3200);
    }
}

#[test]
fn adapter_renders_and_is_software() {
    for ty in [15, 57] {
        assert_eq!(dword(&ask(&soft(), ty).unwrap(), 0), 0b101);
    }
}

#[test]
fn device_ids_are_nobody_elses() {
    let ids = ask(&soft(), 31).unwrap();

    assert_eq!(&ids[4..8], b"ODXG");
    assert!(dword(&ids, 4) > 0xffff, "not a PCI vendor");
    assert_eq!((dword(&ids, 8), dword(&ids, 24)), (1, 0));
}

#[test]
fn descriptions_are_readable() {
    for ty in [65, 66] {
        assert_eq!(text(&ask(&soft(), ty).unwrap()), "opendxg software GPU");
    }
    for ty in [8, 54] {
        let strings = ask(&soft(), ty).unwrap();
        let fields: Vec<String> = strings.chunks(520).map(text).collect();

        assert_eq!(
            fields,
            ["opendxg software GPU", "", "", "opendxg software GPU"]
        );
    }
}

#[test]
fn user_mode_driver_names_are_empty_for_every_known_version() {
    for ty in [1, 71] {
        for (version, expected) in [(0, true), (3, true), (4, false), (u32::MAX, false)] {
            let mut payload = vec![POISON; 524];

            payload[..4].copy_from_slice(&version.to_le_bytes());
            assert_eq!(query(&soft(), ty, &mut payload).is_ok(), expected);
            assert_eq!(dword(&payload, 0), version, "input kept");
            assert_eq!(payload[4..].iter().all(|byte| *byte == 0), expected);
        }
    }
}

#[test]
fn guid_and_its_text_agree_and_differ_between_adapters() {
    let guid = ask(&soft(), 4).unwrap();
    let text = text(&ask(&soft(), 60).unwrap());

    assert_eq!(text, "{6F70656E-6478-8767-8000-000000000003}");
    assert_eq!(dword(&guid, 0), 0x6f70_656e);
    assert_eq!(guid[4..8], [0x78, 0x64, 0x67, 0x87]);
    assert_eq!(guid[8..], [0x80, 0, 0, 0, 0, 0, 0, 3]);
    assert_eq!(ask(&soft(), 52), Ok(guid));
    assert_ne!(ask(&Adapter::new(4, Luid::default()), 4), ask(&soft(), 4));
}

#[test]
fn private_data_identifies_the_software_gpu() {
    let private = ask(&soft(), 0).unwrap();

    assert_eq!(&private[..4], b"ODXG");
    let words: Vec<u32> = (4..32).step_by(4).map(|at| dword(&private, at)).collect();
    assert_eq!(words, [1, 32, 4, 3, 0x0d9a_0003, -2i32 as u32, 0]);
}

/// GPU-1: 3D, compute, copy, paging.
#[test]
fn gpu_1_gpu_2_nodes_have_types_and_names() {
    let expected = [(1, "3D"), (0, "Compute"), (6, "Copy"), (0, "Paging")];

    assert_eq!(soft().caps.nodes as usize, expected.len());
    for (ordinal, (engine, name)) in (0u32..).zip(expected) {
        let mut payload = vec![0; 78];

        payload[..4].copy_from_slice(&ordinal.to_le_bytes());
        query(&soft(), 25, &mut payload).unwrap();
        assert_eq!(dword(&payload, 0), ordinal, "input kept");
        assert_eq!(dword(&payload, 4), engine);
        assert_eq!(text(&payload[8..72]), name);
        // RingBufferFenceRelease, UserModeSubmission; four submissions of a HW queue at a time;
        // GpuMmuSupported.
        let flags = if name == "Paging" { 0b10 } else { 0b1010 };

        assert_eq!(payload[72..], [flags, 0, 4, 0, 1, 0]);
    }
    for input in [4u32, 0xffff, 0x1_0000, 0xffff_0000] {
        let mut payload = vec![POISON; 78];

        payload[..4].copy_from_slice(&input.to_le_bytes());
        assert_eq!(
            query(&soft(), 25, &mut payload),
            Err(Refusal::InvalidParameter)
        );
        assert!(payload[4..].iter().all(|byte| *byte == POISON));
    }
}

#[test]
fn memory_sizes_are_those_of_the_adapter() {
    let mut adapter = soft();

    adapter.caps.local_memory = 64 << 20;
    adapter.caps.system_memory = u64::MAX;

    let segment = ask(&adapter, 3).unwrap();
    let group = ask(&adapter, 42).unwrap();

    assert_eq!(
        [0, 8, 16].map(|at| qword(&segment, at)),
        [64 << 20, 0, u64::MAX]
    );
    assert_eq!(
        [8, 16, 24, 32, 40, 48].map(|at| qword(&group, at)),
        [64 << 20, 0, u64::MAX, 64 << 20, u64::MAX, 0]
    );
}

/// A cap is set exactly when the adapter has the thing (FEN-113).
#[test]
fn fen_113_caps_follow_what_the_adapter_has() {
    let cap = |adapter: &Adapter, ty| dword(&ask(adapter, ty).unwrap(), 0);
    let mut bare = soft();
    let mut full = soft();

    bare.caps.gpu_mmu = GpuMmuCaps::default();
    bare.features = FeatureSet::NONE;
    full.features = FeatureSet::of(&[feature::HWSCH, feature::NATIVE_FENCE]);

    // Type, value of a bare adapter, value of a full one.
    for (ty, bare_value, full_value) in
        [(24, 0b01, 0b11), (70, 0, 0b11), (75, 0, 0b110), (80, 0, 1)]
    {
        assert_eq!(cap(&bare, ty), bare_value, "type {ty}");
        assert_eq!(cap(&full, ty), full_value, "type {ty}");
    }
    assert_eq!(ask(&bare, 34).unwrap(), [0; 12]);
    // Pages can be read-only, and are coherent with caches; there are 48 bits.
    assert_eq!(
        ask(&full, 34).unwrap(),
        [0, 0, 0, 0, 0b101, 0, 0, 0, 48, 0, 0, 0]
    );
}

#[test]
fn absent_things_are_all_zero() {
    let types = [
        2, 5, 11, 12, 17, 18, 19, 20, 21, 22, 26, 27, 28, 29, 32, 33, 35, 37, 38, 39, 40, 43, 44,
        45, 50, 51, 55, 58, 59, 68, 73, 74, 76, 77,
    ];

    for ty in types {
        assert!(
            ask(&soft(), ty).unwrap().iter().all(|byte| *byte == 0),
            "type {ty}"
        );
    }
}

#[test]
fn addresses_and_versions() {
    for ty in [6, 53] {
        assert_eq!(ask(&soft(), ty).unwrap(), [0xff; 12], "not on a bus");
    }
    assert_eq!(qword(&ask(&soft(), 49).unwrap(), 0), 1 << 32, "0.1.0.0");
    assert_eq!(
        text(&ask(&soft(), 64).unwrap()[68..]),
        "opendxg software GPU"
    );
}

/// The struct of a registry query of type `query_type`.
fn registry(query_type: u32, flags: u32, len: usize) -> Vec<u8> {
    let mut payload = vec![POISON; len];

    payload[..536].fill(0);
    payload[..4].copy_from_slice(&query_type.to_le_bytes());
    payload[4..8].copy_from_slice(&flags.to_le_bytes());
    payload
}

/// The two calls that libnvidia-container makes for DRIVERSTOREPATH.
#[test]
fn registry_path_takes_two_calls() {
    let mut first = registry(2, 0, 552);

    assert_eq!(query(&soft(), 48, &mut first), Ok(()));
    assert_eq!(dword(&first, 540), 1, "BUFFER_OVERFLOW");
    let value_size = dword(&first, 536) as usize;
    assert_eq!(value_size, 2 * ("/usr/lib".len() + 1));

    let mut short = registry(2, 0, 552 + value_size - 1);
    assert_eq!(query(&soft(), 48, &mut short), Ok(()));
    assert_eq!((dword(&short, 540), dword(&short, 536)), (1, 18));

    let mut second = registry(2, 0b11, 552 + value_size);
    assert_eq!(query(&soft(), 48, &mut second), Ok(()));
    assert_eq!((dword(&second, 540), dword(&second, 536)), (0, 18));
    assert_eq!(text(&second[544..544 + value_size]), "/usr/lib");
}

#[test]
fn registry_has_no_keys() {
    for query_type in [0, 1, 3] {
        let mut payload = registry(query_type, 0, 1024);

        assert_eq!(query(&soft(), 48, &mut payload), Ok(()));
        assert_eq!((dword(&payload, 540), dword(&payload, 536)), (2, 0), "FAIL");
    }
}

#[test]
fn registry_refuses_unknown_queries_and_flags() {
    for (query_type, flags) in [(4, 0), (u32::MAX, 0), (2, 0b100), (2, 1 << 31)] {
        let mut payload = registry(query_type, flags, 1024);
        let before = payload.clone();

        assert_eq!(
            query(&soft(), 48, &mut payload),
            Err(Refusal::InvalidParameter)
        );
        assert_eq!(payload, before);
    }
}

proptest! {
    /// Any type, any bytes, any length: an answer or a refusal, never a panic; a refusal leaves
    /// the payload alone; an answer to its own answer is the same.
    #[test]
    fn queries_are_total(
        ty in prop_oneof![4 => 0u32..96, 1 => any::<u32>()],
        index in 0u32..16,
        sizes in any::<[u64; 2]>(),
        mut payload in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..700),
            proptest::collection::vec(0u8..4, 8190..8195),
        ],
    ) {
        let mut adapter = Adapter::new(index, Luid { low: 7, high: 0 });

        [adapter.caps.local_memory, adapter.caps.system_memory] = sizes;

        let before = payload.clone();

        match query(&adapter, ty, &mut payload) {
            Ok(()) => {
                let size = payload_size(ty).expect("answered, so known");
                let used = payload.len().min(size.max);

                prop_assert!(payload.len() >= size.min);
                prop_assert_eq!(&payload[used..], &before[used..]);

                let once = payload.clone();
                prop_assert_eq!(query(&adapter, ty, &mut payload), Ok(()));
                prop_assert_eq!(payload, once);
            }
            Err(_) => prop_assert_eq!(payload, before),
        }
    }
}
