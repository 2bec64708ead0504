// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyed mutexes.

use opendxg::{Dxg, KeyedMutex, Status, Timeout};
use selftests::memory::{KERNEL_HALF, UNMAPPED};

use super::*;
use crate::t_negative::world::{KEY, MUTEX_DATA};

const MUTEX: Field = handle("hKeyedMutex", Object::KeyedMutex);
const GLOBAL: Field = field("hSharedHandle", Kind::Global(Object::KeyedMutex));
const NEW: Field = made("hKeyedMutex", Object::KeyedMutex);
const OPENED: Field = made("hKeyedMutex", Object::KeyedMutex);
const TOO_MUCH: &[(u64, Status)] = &[(65537, INVALID), (1 << 31, INVALID), (0xffff_ffff, INVALID)];
const TOO_LITTLE: &[(u64, Status)] = &[(1, INVALID), (7, INVALID)];
/// Data given on opening go with a mutex that has as much, or none.
const OTHER_SIZE: &[(u64, Status)] = &[
    (1, INVALID),
    (7, INVALID),
    (9, INVALID),
    (0xffff_ffff, INVALID),
];
const THIS_KEY: Field = listed("Key", &[KEY], &[]);
const TIMEOUT: Field = field(
    "pTimeout",
    Kind::Memory(Memory {
        unit: 8,
        count_at: None,
        writes: false,
        // No limit, but the mutex is free.
        null: None,
        inside: &[],
    }),
);
const FENCE_VALUE: Field = reported(output("FenceValue"));

/// A mutex for one call.
fn own(image: &mut Image) -> TestResult<u32> {
    let mutex = Dxg::open()?.create_keyed_mutex_with(KEY, &MUTEX_DATA, false)?;
    let handle = mutex.handle().0;
    image.put32(0, handle);
    image.keep(mutex);
    Ok(handle)
}

/// A mutex that this thread owns.
fn owned(image: &mut Image) -> TestResult {
    let mutex: KeyedMutex = Dxg::open()?.create_keyed_mutex_with(KEY, &MUTEX_DATA, false)?;
    mutex.acquire(KEY, Timeout::Forever)?;
    image.put32(0, mutex.handle().0);
    image.keep(mutex);
    Ok(())
}

/// Key and limit of a good acquisition.
fn acquisition(image: &mut Image) -> TestResult {
    own(image)?;
    image.put64(8, KEY);
    image.point(16, &[0; 8])
}

macro_rules! mutex {
    ($nr:literal $name:literal, $fields:expr, $good:expr) => {
        mutex!($nr $name, $fields, $good, Status::SUCCESS)
    };
    ($nr:literal $name:literal, $fields:expr, $good:expr, $status:expr) => {
        Described {
            nr: $nr,
            name: $name,
            variant: "",
            fields: $fields,
            good: $good,
            status: $status,
        }
    };
}

pub(super) const FORMS: &[Described] = &[
    mutex!(0x90 "D3DKMT_CREATEKEYEDMUTEX",
        &[any("InitialValue"), output("hSharedHandle"), NEW],
        |_, _| Ok(())),
    mutex!(0x91 "D3DKMT_CREATEKEYEDMUTEX2",
    &[
        any("InitialValue"),
        output("hSharedHandle"),
        NEW,
        blob("pPrivateRuntimeData", 24, Some(INVALID)),
        listed("PrivateRuntimeDataSize", &[0, 1, 15], TOO_MUCH),
        field("Flags", Kind::Flags { known: 1, accept: &[0, 1], refuse: &[] }),
    ],
    |_, image| {
        image.point(16, &[4; 16])?;
        image.put32(24, 16);
        Ok(())
    }),
    mutex!(0x92 "D3DKMT_OPENKEYEDMUTEX", &[GLOBAL, OPENED], |world, image| {
        image.put32(0, world.global(Object::KeyedMutex));
        Ok(())
    }),
    mutex!(0x93 "D3DKMT_OPENKEYEDMUTEX2",
    &[
        GLOBAL,
        OPENED,
        // Not looked at: the mutex has data.
        listed("pPrivateRuntimeData", &[1, UNMAPPED, KERNEL_HALF], &[(0, INVALID)]),
        listed("PrivateRuntimeDataSize", &[0], OTHER_SIZE),
        ignored(20, 4),
    ],
    |world, image| {
        image.put32(0, world.global(Object::KeyedMutex));
        image.point(8, &[0x5a; MUTEX_DATA.len()])?;
        image.put32(16, MUTEX_DATA.len() as u32);
        Ok(())
    }),
    mutex!(0x94 "D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE",
        &[
            field("hNtHandle", Kind::NtHandle(Object::Shareable)),
            output("hKeyedMutex"),
            ignored(12, 4),
            any("pPrivateRuntimeData"),
            any("PrivateRuntimeDataSize"),
            ignored(28, 4),
        ],
        |world, image| {
            image.put64(0, world.shared_resource.slot());
            Ok(())
        },
        Status::OBJECT_TYPE_MISMATCH),
    mutex!(0x95 "D3DKMT_DESTROYKEYEDMUTEX", &[MUTEX], |_, image| own(image).map(|_| ())),
    mutex!(0x96 "D3DKMT_ACQUIREKEYEDMUTEX",
        &[MUTEX, ignored(4, 4), THIS_KEY, TIMEOUT, FENCE_VALUE],
        |_, image| acquisition(image)),
    mutex!(0x97 "D3DKMT_ACQUIREKEYEDMUTEX2",
    &[
        MUTEX,
        ignored(4, 4),
        THIS_KEY,
        TIMEOUT,
        FENCE_VALUE,
        buffer("pPrivateRuntimeData", 40, Some(INVALID)),
        listed("PrivateRuntimeDataSize", &[0, 9, 0xffff_ffff], TOO_LITTLE),
        ignored(44, 4),
    ],
    |_, image| {
        image.point(32, &[0x5a; MUTEX_DATA.len()])?;
        image.put32(40, MUTEX_DATA.len() as u32);
        acquisition(image)
    }),
    mutex!(0x98 "D3DKMT_RELEASEKEYEDMUTEX",
        &[MUTEX, ignored(4, 4), any("Key"), any("FenceValue")],
        |_, image| owned(image)),
    mutex!(0x99 "D3DKMT_RELEASEKEYEDMUTEX2",
    &[
        MUTEX,
        ignored(4, 4),
        any("Key"),
        any("FenceValue"),
        blob("pPrivateRuntimeData", 32, Some(INVALID)),
        listed("PrivateRuntimeDataSize", &[0, 1, 15], TOO_MUCH),
        ignored(36, 4),
    ],
    |_, image| {
        image.point(24, &[4; 16])?;
        image.put32(32, 16);
        owned(image)
    }),
];
