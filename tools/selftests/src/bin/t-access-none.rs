// SPDX-License-Identifier: MIT OR Apache-2.0
//! The module loaded so that nobody may open by global handle (RES-103).

use opendxg::Status;
use selftests::sharing::{Client, How, Shape, Target};
use selftests::{fails_with, module, skip, Suite, TestResult};

fn nobody() -> TestResult {
    if module::number("global_access")? != 2 {
        skip!("global handles may be opened");
    }
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let refuse = Status::INVALID_PARAMETER;
        fails_with(client.open_global(shape, object.global()), refuse)?;
        let query = client.query(Target::Global(object.global())).map(|_| ());
        fails_with(query, refuse)?;
        // What was made can be used.
        client.query(object.target())?;
    }
    for shape in Shape::NT {
        let (_object, fd) = client.shared(shape)?;
        client.open(shape, &fd)?;
    }
    Ok(())
}

pub(crate) fn main() {
    module::with_parameters("global_access=2", || {
        Suite::new("access-none")
            .test(
                "RES-103 none: not even the creator opens by global handle",
                nobody,
            )
            .run()
    });
}
