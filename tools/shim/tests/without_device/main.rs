// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library where there is no device.
//!
//! It opens the device when it is loaded, before a test can choose another node. So a test runs
//! itself again with the environment it wants.

mod dxcore;
mod functions;

use std::process::Command;

use opendxg::node::DEVICE_VARIABLE;

/// Set for the run that tests.
const CHILD: &str = "OPENDXG_TEST_CHILD";

/// Runs `body` in processes that have no device, each for another reason. `test` is the test that
/// calls this.
fn without_a_device(test: &str, body: fn()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    for device in ["/dev/no-such-device", "/dev/null", "/"] {
        let run = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, "1")
            .env(DEVICE_VARIABLE, device)
            .output()
            .unwrap();
        let output = [run.stdout, run.stderr].concat();
        let output = String::from_utf8_lossy(&output);
        assert!(run.status.success(), "with {device}:\n{output}");
        assert!(output.contains("1 passed"), "with {device}:\n{output}");
    }
}
