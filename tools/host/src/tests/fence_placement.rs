// SPDX-License-Identifier: MIT OR Apache-2.0

//! FEN-63, FEN-64: where the words of native fences are.

use crate::ddi::fence_storage::FenceWord::{self, CurrentValue, MonitoredValue};
use crate::ddi::fence_storage::{FenceStorageArgs, FenceStorageInfo};
use crate::ddi::native_fence::NativeFenceType::{self, Default, IntraGpu};
use crate::ddi::native_fence::{NativeFenceOsCaps, NativeFenceServices};
use crate::kmd::soft::{AdapterProfile, Config, FenceMemory, SoftKmd};
use crate::logic::fence_placement::Place::{Local, System};
use crate::logic::fence_placement::{preferred, Kind, Refusal};

const WORDS: [FenceWord; 2] = [CurrentValue, MonitoredValue];
const TYPES: [NativeFenceType; 2] = [Default, IntraGpu];

#[test]
fn fen_63_the_table_of_places() {
    for (ty, is_shareable, is_optimized, places) in [
        (Default, false, false, [System, System]),
        (Default, false, true, [System, Local]),
        (Default, true, false, [System, System]),
        (Default, true, true, [System, System]),
        (IntraGpu, false, false, [Local, Local]),
        (IntraGpu, false, true, [Local, Local]),
        (IntraGpu, true, false, [System, System]),
        (IntraGpu, true, true, [System, System]),
    ] {
        let kind = Kind {
            ty,
            is_shareable,
            is_optimized,
        };

        assert_eq!(WORDS.map(|word| kind.place(word)), places, "{kind:?}");
        assert_eq!(kind.is_local(), places.contains(&Local), "{kind:?}");
    }
}

/// Segment 1 is memory that processors see, 2 the aperture, 3 memory that they do not see.
fn judge(
    word: FenceWord,
    supported_segments: u32,
    eviction_segments: u32,
    preferred_segment: u32,
) -> Result<u32, Refusal> {
    let info = FenceStorageInfo {
        supported_segments,
        eviction_segments,
        preferred_segment,
    };

    preferred(&info, word, 0b1110, |segment| segment == 3)
}

#[test]
fn fen_64_a_driver_says_where() {
    for word in WORDS {
        for eviction in [0, 0b100, 0b1110] {
            assert_eq!(judge(word, 0b110, eviction, 1), Ok(1));
            assert_eq!(judge(word, 0b110, eviction, 2), Ok(2));
            // Where it may be does not matter, only where it is to be.
            assert_eq!(judge(word, 0b1110, eviction, 1), Ok(1));
        }
    }
}

#[test]
fn fen_64_monitored_value_is_where_processors_see_it() {
    assert_eq!(judge(CurrentValue, 0b1000, 0, 3), Ok(3));
    assert_eq!(
        judge(MonitoredValue, 0b1000, 0, 3),
        Err(Refusal::NotVisible)
    );
}

#[test]
fn fen_64_what_makes_no_sense() {
    for word in WORDS {
        for (supported, eviction, preferred) in [
            // Nowhere; somewhere else; in a segment that is not there; or a number that none has.
            (0, 0, 1),
            (0b100, 0, 1),
            (0b1_0010, 0, 4),
            (0b1_0010, 0, 1),
            (0b10, 0b1_0000, 1),
            (0b11, 0, 1),
            (0b10, 1, 1),
            (0b10, 0, 33),
            (u32::MAX, 0, u32::MAX),
        ] {
            assert_eq!(
                judge(word, supported, eviction, preferred),
                Err(Refusal::NoSense),
                "{supported:b} {eviction:b} {preferred}"
            );
        }
    }
}

#[test]
fn fen_111_both_types_are_offered() {
    assert_eq!(
        NativeFenceServices.os_caps(),
        NativeFenceOsCaps {
            optimized_default_type: true,
            intra_gpu_type: true,
        }
    );
}

/// What a software GPU says, by its configuration; what the OS part does with it is above.
#[test]
fn fen_64_what_a_software_gpu_says() {
    use crate::ddi::caps::AdapterQuery;
    use crate::ddi::class::Passive;
    use crate::ddi::native_fence::NativeFenceCaps;
    use crate::ddi::port::Port;

    let class = Passive::here();

    for (profile, fence_memory, asks, preferred) in [
        (AdapterProfile::Vram4, FenceMemory::Default, false, [2, 1]),
        (AdapterProfile::Vram4, FenceMemory::Optimized, true, [1, 1]),
        (AdapterProfile::Vram4, FenceMemory::Hidden, true, [1, 1]),
        (AdapterProfile::Uma, FenceMemory::Optimized, true, [1, 1]),
    ] {
        let has_local = profile == AdapterProfile::Vram4;
        let kmd = SoftKmd::add_device(Config {
            profile,
            local_memory: if has_local { 1 << 20 } else { 0 },
            fence_memory,
            ..Config::default()
        });
        let port = Port::start(Box::new(kmd), &class, &super::ddi::info()).unwrap();
        let kmd = port.enter().unwrap();
        let mut caps = NativeFenceCaps::default();

        kmd.query_adapter_info(&class, AdapterQuery::NativeFenceCaps(&mut caps));
        assert_eq!(caps.optimized_default_type, asks);
        for (ty, preferred_segment) in TYPES.into_iter().zip(preferred) {
            for word in WORDS {
                assert_eq!(
                    kmd.get_fence_storage_info(&class, &FenceStorageArgs { word, ty }),
                    FenceStorageInfo {
                        supported_segments: if has_local { 0b110 } else { 0b10 },
                        eviction_segments: if has_local { 0b100 } else { 0b10 },
                        preferred_segment,
                    }
                );
            }
        }
        drop(kmd);
        port.stop(&class);
    }
}
