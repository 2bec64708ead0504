// SPDX-License-Identifier: MIT OR Apache-2.0
//! No stale byte in any output (RES-107).

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use selftests::poison::{bytes, bytes_mut};
use selftests::sharing::{key, Client, How, Shape};
use selftests::{ensure, ensure_eq, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-107 outputs are the same whatever was in the buffer",
            arguments,
        )
        .test(
            "RES-107 buffers are filled with what exists and no more",
            buffers,
        )
        .test(
            "RES-107 new memory is zero, after other users had it",
            memory,
        )
}

/// Runs a call twice on arguments that were filled with two patterns. Bytes that differ afterwards
/// were not written, and must still be the pattern: an output that is written in part would show.
fn twice<T: Argument>(client: &Client, prepare: impl Fn(&mut T)) -> TestResult {
    let mut answers = Vec::new();
    for pattern in [0x55u8, 0xaa] {
        let mut arg = T::zeroed();
        bytes_mut(&mut arg).fill(pattern);
        prepare(&mut arg);
        ensure_eq!(
            client.raw().exec(&mut arg),
            Ok(Status::SUCCESS),
            "{}",
            T::NAME
        );
        answers.push(bytes(&arg).to_vec());
    }
    for (at, (first, second)) in answers[0].iter().zip(&answers[1]).enumerate() {
        let untouched = (*first, *second) == (0x55, 0xaa);
        ensure!(first == second || untouched, "{}: byte {at}", T::NAME);
    }
    Ok(())
}

fn arguments() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        client.set(object.target(), key(1), 2, b"")?;
        let local = OPENDXG_HANDLE_LOCAL;
        twice::<opendxg_query_object>(&client, |arg| {
            (arg.handle, arg.handle_type, arg.flags) = (object.handle().into(), local, 0);
            (arg.name, arg.name_size, arg.reserved) = (0, 0, 0);
        })?;
        twice::<opendxg_get_info>(&client, |arg| {
            (arg.handle, arg.handle_type, arg.flags) = (object.handle().into(), local, 0);
            (arg.key, arg.max_schema, arg.data, arg.size) = (key(1), 2, 0, 0);
        })?;
        let mut entry = opendxg_info_entry::default();
        let address = (&raw mut entry) as u64;
        twice::<opendxg_enum_info>(&client, |arg| {
            (arg.handle, arg.handle_type) = (object.handle().into(), local);
            (arg.count, arg.entries) = (1, address);
        })?;
    }
    Ok(())
}

fn buffers() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Resource, How::Nt)?;
    client.set(object.target(), key(1), 0, b"seven b")?;
    let mut buffer = [0xa5u8; 64];
    let mut arg = opendxg_get_info::zeroed();
    (arg.handle, arg.handle_type) = (object.handle().into(), OPENDXG_HANDLE_LOCAL);
    (arg.key, arg.data, arg.size) = (key(1), buffer.as_mut_ptr() as u64, 64);
    client.call(&mut arg)?;
    // SAFETY: a live array that the call has written.
    let buffer = unsafe { (&raw const buffer).read_volatile() };
    ensure_eq!(&buffer[..7], b"seven b");
    ensure_eq!(buffer[7..], [0xa5; 57]);
    // A list: entries beyond the count are left alone.
    let mut entries = [opendxg_info_entry::default(); 4];
    for entry in &mut entries {
        entry.schema = 77;
    }
    let mut arg = opendxg_enum_info::zeroed();
    (arg.handle, arg.handle_type) = (object.handle().into(), OPENDXG_HANDLE_LOCAL);
    (arg.count, arg.entries) = (4, entries.as_mut_ptr() as u64);
    client.call(&mut arg)?;
    ensure_eq!(arg.count, 1);
    for entry in &entries[1..] {
        // SAFETY: as above.
        ensure_eq!(unsafe { (&raw const entry.schema).read_volatile() }, 77);
    }
    Ok(())
}

fn memory() -> TestResult {
    const SIZE: usize = 64 << 10;
    let client = Client::new()?;
    for round in 0..20 {
        let fresh = client.create_allocation(SIZE as u64)?;
        let clean = client.locked(fresh.handle(), SIZE, |bytes| {
            let clean = bytes.iter().all(|byte| *byte == 0);
            bytes.fill(0xee);
            clean
        })?;
        ensure!(clean, "old bytes in round {round}");
        fresh.destroy()?;
    }
    Ok(())
}
