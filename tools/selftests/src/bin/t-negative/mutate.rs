// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the kind of a field to values it must refuse or accept.

use opendxg::Status;
use selftests::fds::closed_number;
use selftests::poison::POISON;
use selftests::TestResult;
use std::os::fd::AsRawFd;

use crate::t_negative::cases::{Case, Cases};
use crate::t_negative::image::Image;
use crate::t_negative::table::{Field, Kind};
use crate::t_negative::world::World;

/// Everything to be tried with one field.
pub(crate) fn cases<'a>(world: &'a World, field: &'a Field) -> TestResult<Vec<Case<'a>>> {
    let invalid = Some(Status::INVALID_PARAMETER);
    let mut cases = Cases::of(field);
    match field.kind {
        Kind::Handle(kind) | Kind::OptionalHandle { kind, .. } => {
            cases.handles(&world.bad_handles(kind)?);
        }
        Kind::WideHandle(kind) => {
            cases.handles(&world.bad_handles(kind)?);
            for high in [1 << 32, 1 << 63] {
                let handle = u64::from(world.handle(kind));
                cases.value("high bit", handle | high, invalid);
            }
        }
        Kind::Global(kind) => {
            let good = world.global(kind);
            for other in World::GLOBALS.into_iter().filter(|other| *other != kind) {
                cases.value("global handle", world.global(other).into(), invalid);
            }
            let local = world.handle(crate::t_negative::world::Object::Fence);
            for bad in [
                0,
                2,
                u32::MAX,
                POISON,
                good ^ 2,
                good | 1,
                good ^ 0x40,
                good ^ 0xc000_0000,
                local,
                local | 2,
            ] {
                cases.value("global handle", bad.into(), invalid);
            }
            cases.value("NT handle", world.shared.as_raw_fd() as u64, invalid);
        }
        Kind::NtHandle(kind) | Kind::OnlyNtHandle(kind) => {
            let zero = match field.kind {
                Kind::NtHandle(_) => Status::INVALID_HANDLE,
                _ => Status::INVALID_PARAMETER,
            };
            cases.value("descriptor", 0, Some(zero));
            for number in world.closed_numbers()? {
                cases.value("closed", number, Some(Status::INVALID_HANDLE));
            }
            let others = [world.event.as_raw_fd() as u64];
            let others = others.into_iter().chain(world.other_nt_handle(kind));
            for number in world.foreign_numbers()?.into_iter().chain(others) {
                cases.value("foreign", number, Some(Status::OBJECT_TYPE_MISMATCH));
            }
        }
        Kind::Weak => {
            for number in [-1, i32::MIN, i32::MAX, closed_number()?] {
                let number = u64::from(number as u32);
                cases.value("closed", number, Some(Status::INVALID_HANDLE));
            }
            let others = [world.event.as_raw_fd(), world.shared.as_raw_fd()];
            let others = others.into_iter().map(|fd| fd as u64);
            for number in world.foreign_numbers()?.into_iter().chain(others) {
                cases.value("foreign", number, Some(Status::OBJECT_TYPE_MISMATCH));
            }
        }
        Kind::Listed { accept, refuse } => {
            for (value, status) in refuse {
                cases.value("value", *value, Some(*status));
            }
            for value in accept {
                cases.value("value", *value, None);
            }
        }
        Kind::Memory(memory) => {
            cases.value("no memory", 0, memory.null);
            cases.bad_addresses(Status::ACCESS_VIOLATION);
            cases.cut_off(move |image: &Image| memory.length(image));
            if memory.writes {
                cases.read_only(move |image| memory.length(image));
            }
            let at = field.at;
            for (what, place, size, value, status) in memory.inside {
                let what = format!("{what} is {value:#x}");
                cases.add(what, Some(*status), move |image| {
                    let mut contents = image.pointed(at, memory.length(image));
                    contents[*place..place + size].copy_from_slice(&value.to_ne_bytes()[..*size]);
                    image.point(at, &contents)
                });
            }
        }
        Kind::Event { zero } => {
            cases.value("event", 0, zero);
            for number in world.closed_numbers()? {
                cases.value("closed", number, Some(Status::INVALID_HANDLE));
            }
            let shared = world.shared.as_raw_fd() as u64;
            for number in world.foreign_numbers()?.into_iter().chain([shared]) {
                cases.value("foreign", number, Some(Status::OBJECT_TYPE_MISMATCH));
            }
        }
        Kind::SyncFile { foreign } => {
            cases.value("no sync file", 0, Some(Status::INVALID_HANDLE));
            for number in world.closed_numbers()? {
                cases.value("closed", number, Some(Status::INVALID_HANDLE));
            }
            let others = [world.shared.as_raw_fd(), world.event.as_raw_fd()];
            let others = others.into_iter().map(|fd| fd as u64);
            for number in world.foreign_numbers()?.into_iter().chain(others) {
                cases.value("foreign", number, Some(foreign));
            }
        }
        Kind::Flags {
            known,
            accept,
            refuse,
        } => {
            let bits = 8 * field.size;
            for bit in (0..bits).filter(|bit| (known >> bit) & 1 == 0) {
                cases.value("unknown flag", 1 << bit, invalid);
                cases.value("unknown among known flags", known | (1 << bit), invalid);
            }
            for flags in refuse {
                cases.value("flags", *flags, invalid);
            }
            for flags in accept {
                cases.value("flags", *flags, None);
            }
            cases.value(
                "all flags",
                u64::MAX >> (64 - bits),
                (known != u64::MAX >> (64 - bits)).then_some(Status::INVALID_PARAMETER),
            );
        }
        Kind::Enum {
            unknown,
            unsupported,
        } => {
            for value in unknown {
                cases.value("unknown value", (*value).into(), invalid);
            }
            for value in unsupported {
                cases.value(
                    "unsupported value",
                    (*value).into(),
                    Some(Status::NOT_SUPPORTED),
                );
            }
        }
        Kind::Any => {
            let all: &[u64] = match field.size {
                4 => &[0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff],
                _ => &[0, 1, 1 << 63, u64::MAX - 1, u64::MAX],
            };
            for value in all {
                cases.value("value", *value, None);
            }
        }
        Kind::Values { accept, refuse } => {
            for value in refuse {
                cases.value("value", *value, invalid);
            }
            for value in accept {
                cases.value("value", *value, None);
            }
        }
        Kind::Luid => {
            let at = field.at;
            for flip in [1u64, 1 << 31, 1 << 32, 1 << 63, u64::MAX] {
                cases.add(
                    format!("LUID with {flip:#x} flipped"),
                    invalid,
                    move |image| {
                        let luid = image.get(at, 8);
                        image.put64(at, luid ^ flip);
                        Ok(())
                    },
                );
            }
        }
        Kind::Count { max } => {
            for count in [0, max + 1, 1 << 29, 1 << 30, 1 << 31, u32::MAX] {
                cases.value("count", count.into(), invalid);
            }
        }
        Kind::Capacity => {
            let (at, enough) = (field.at, None);
            cases.add(
                "no room".into(),
                Some(Status::BUFFER_TOO_SMALL),
                move |image| {
                    image.put32(at, 0);
                    Ok(())
                },
            );
            cases.add(
                "one too few".into(),
                Some(Status::BUFFER_TOO_SMALL),
                move |image| {
                    let count = image.get(at, 4);
                    image.put(at, 4, count - 1);
                    Ok(())
                },
            );
            cases.value("more room than memory", u32::MAX.into(), enough);
        }
        Kind::HandleArray { count_at, kind } => {
            cases.value("no array", 0, invalid);
            cases.bad_addresses(Status::ACCESS_VIOLATION);
            let length = move |image: &Image| 4 * image.get(count_at, 4) as usize;
            cases.cut_off(length);
            cases.handles(&world.bad_handles(kind)?);
        }
        Kind::ValueArray { count_at } => {
            cases.value("no array", 0, invalid);
            cases.bad_addresses(Status::ACCESS_VIOLATION);
            cases.cut_off(move |image: &Image| 8 * image.get(count_at, 4) as usize);
        }
        Kind::AdapterArray { count_at } => {
            cases.value("no array", 0, None);
            cases.bad_addresses(Status::ACCESS_VIOLATION);
            let length = move |image: &Image| 20 * image.get(count_at, 4) as usize;
            cases.cut_off(length);
            cases.read_only(length);
        }
        Kind::Attributes => {
            cases.value("no attributes", 0, None);
            cases.bad_addresses(Status::ACCESS_VIOLATION);
            cases.cut_off(|_| 48);
            let at = field.at;
            for (place, size, value) in [
                (0, 4, 0u64),
                (0, 4, 47),
                (0, 4, 49),
                (24, 4, 1),
                (24, 4, 1 << 31),
            ] {
                let what = format!("attributes with {value:#x} at {place}");
                cases.add(what, invalid, move |image| {
                    let mut contents = image.pointed(at, 48);
                    contents[place..place + size].copy_from_slice(&value.to_ne_bytes()[..size]);
                    image.point(at, &contents)
                });
            }
        }
        Kind::Slot => {
            cases.value("no place for the handle", 0, invalid);
            cases.bad_addresses(Status::ACCESS_VIOLATION);
            cases.cut_off(|_| 8);
            cases.read_only(|_| 8);
        }
        Kind::Payload { size_at } => {
            cases.value("no payload", 0, invalid);
            cases.bad_addresses(Status::ACCESS_VIOLATION);
            let length = move |image: &Image| image.get(size_at, 4) as usize;
            cases.cut_off(length);
            cases.read_only(length);
        }
        Kind::PayloadSize { exact } => {
            for size in [0, 1, exact - 1] {
                cases.value("size", size.into(), invalid);
            }
            for size in [exact + 1, u32::MAX] {
                cases.value("size", size.into(), None);
            }
        }
        Kind::Blob => cases.value("no private data of a size", 0, invalid),
        Kind::Reserved => {
            for byte in 0..field.size {
                cases.value("reserved", 1 << (8 * byte), invalid);
                cases.value("reserved", 0x80 << (8 * byte), invalid);
            }
        }
        Kind::Ignored => {
            let (at, size) = (field.at, field.size);
            for pattern in [0xff, 0xa5] {
                cases.add(format!("ignored bytes {pattern:#x}"), None, move |image| {
                    image.bytes[at..at + size].fill(pattern);
                    Ok(())
                });
            }
        }
        Kind::Output(_) => {
            let (at, size) = (field.at, field.size);
            for pattern in [0x1e, 0xff] {
                cases.add(format!("output holds {pattern:#x}"), None, move |image| {
                    image.bytes[at..at + size].fill(pattern);
                    Ok(())
                });
            }
        }
    }
    Ok(cases.into_list())
}
