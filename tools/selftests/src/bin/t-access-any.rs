// SPDX-License-Identifier: MIT OR Apache-2.0
//! The module loaded so that anybody may open by global handle (RES-103).

use selftests::child::in_child;
use selftests::sharing::{Client, How, Shape};
use selftests::user::{become_user, needs_root, OTHER};
use selftests::{ensure_eq, fails_with, module, skip, Suite, TestResult};

fn needs_parameter() -> TestResult {
    needs_root()?;
    if module::number("global_access")? != 1 {
        skip!("global handles are not open to anybody");
    }
    Ok(())
}

fn another_user() -> TestResult {
    needs_parameter()?;
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let (global, id) = (object.global(), client.id(object.target())?);
        in_child(|| {
            become_user(OTHER)?;
            let client = Client::new()?;
            let opened = client.open_global(shape, global)?;
            ensure_eq!(client.id(opened.target())?, id);
            Ok(())
        })?;
    }
    Ok(())
}

fn another_namespace() -> TestResult {
    needs_parameter()?;
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let global = object.global();
        in_child(|| {
            selftests::user::unshare(libc::CLONE_NEWIPC)?;
            let open = Client::new()?.open_global(shape, global);
            fails_with(open, opendxg::Status::INVALID_PARAMETER)
        })?;
    }
    Ok(())
}

pub(crate) fn main() {
    module::with_parameters("global_access=1", || {
        Suite::new("access-any")
            .test("RES-103 any: another user opens every kind", another_user)
            .test(
                "RES-103 any: still only in the IPC namespace",
                another_namespace,
            )
            .run()
    });
}
