// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's test camera (vivid) captures a picture into our memory (RES-87, RES-90).

use selftests::camera::Camera;
use selftests::child::in_child;
use selftests::resource::{export, flags, Create, OpenNt, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

fn main() {
    Suite::new("camera")
        .test(
            "RES-87 RES-90 a camera captures into our memory, another process sees the picture",
            captured,
        )
        .run()
}

fn captured() -> TestResult {
    let camera = Camera::open()?;
    let size = u64::from(camera.size).next_multiple_of(PAGE_SIZE);
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::NT, &[size]).run()?;
    let file = export(made.raw(), made.first(), 0)?;
    // The camera wants two pictures at a time.
    let other = Create::sized(&device, flags::RESOURCE, &[size]).run()?;
    let other_file = export(other.raw(), other.first(), 0)?;
    camera.request(2)?;
    camera.queue(0, &file, size)?;
    camera.queue(1, &other_file, size)?;
    camera.start()?;
    ensure_eq!(camera.picture()?, 0);
    camera.stop()?;
    camera.request(0)?;
    drop((file, other_file));
    let nt = made.share()?;
    made.destroy()?;
    in_child(|| {
        let opened = OpenNt::new(&fixture::device()?, &nt)?.run()?;
        let view = opened.lock()?;
        let colours = camera.colours(&view);
        ensure!(colours >= 5, "{colours} colours");
        view.unlock()
    })
}
