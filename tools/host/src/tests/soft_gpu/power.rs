// SPDX-License-Identifier: MIT OR Apache-2.0

//! The power of a software adapter, which runs nothing in D3 (GPU-28).

use std::sync::atomic::Ordering::Release;

use super::{started, submit, word, Commands, Ear, Scene, CODE, DATA, LIMIT, WHILE};
use crate::ddi::class::Passive;
use crate::ddi::port::Port;
use crate::ddi::power::PowerState;
use crate::kmd::soft::Config;
use crate::platform::Shared;

fn is_idle(port: &Port) -> bool {
    port.enter().unwrap().is_idle(&Passive::here())
}

fn go_to(port: &Port, state: PowerState) {
    port.enter()
        .unwrap()
        .set_power_state(&Passive::here(), state);
}

#[test]
fn gpu_28_nothing_runs_in_d3() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let contexts = [0, 1, 2].map(|node| {
        let ear = Shared::new(Ear::default());

        scene.space.packets(node, 7 + u64::from(node), &ear)
    });
    let dwords = Commands::default().write(DATA, 5).into(&scene.code);

    for number in 1..=3 {
        for context in &contexts {
            go_to(&port, PowerState::D3);
            scene.data.words()[0].store(0, Release);
            submit(context, number, CODE, dwords);
            assert!(!super::is_written(&scene.data, WHILE / 4), "it runs in D3");
            assert!(!is_idle(&port));
            go_to(&port, PowerState::D0);
            assert!(super::is_written(&scene.data, LIMIT), "it does not wake");
        }
    }
}

#[test]
fn gpu_28_what_is_work_and_what_is_none() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);
    let dwords = Commands::default()
        .wait(DATA, 3)
        .write(DATA + 8, 9)
        .into(&scene.code);

    assert!(is_idle(&port));
    // A value that is waited for.
    submit(&context, 1, CODE, dwords);
    assert!(!is_idle(&port));
    ear.wait(|told| told.slices > 0);
    assert!(!is_idle(&port));
    // Also if the context is suspended.
    context.suspend(&mut Passive::here(), 1).unwrap();
    ear.wait(|told| told.suspended == [1]);
    assert!(!is_idle(&port));
    scene.data.words()[0].store(3, Release);
    assert!(!is_idle(&port));
    context.resume(&mut Passive::here()).unwrap();
    ear.completed(1);
    assert_eq!(word(&scene.data, 1), 9);
    assert!(is_idle(&port));
    // Commands that a suspended context has not begun.
    context.suspend(&mut Passive::here(), 2).unwrap();
    ear.wait(|told| told.suspended == [1, 2]);
    assert!(is_idle(&port));
    submit(&context, 2, CODE, dwords);
    assert!(!is_idle(&port));
    context.resume(&mut Passive::here()).unwrap();
    ear.completed(2);
    assert!(is_idle(&port));
    // A fault is the end of all work.
    submit(&context, 3, CODE + 0x10_0000, 4);
    ear.wait(|told| !told.faults.is_empty());
    assert!(is_idle(&port));
}
