// SPDX-License-Identifier: MIT OR Apache-2.0

//! Submissions, and what they do to memory.

use std::sync::atomic::Ordering::Release;

use super::{
    hw_queue, in_dispatch, started, started_unverified, submit, word, Commands, Ear, Scene, Space,
    CODE, DATA, PAGE,
};
use crate::ddi::class::Passive;
use crate::ddi::queue::{Fault, FaultKind, Submission};
use crate::ddi::types::Scheduling;
use crate::kmd::soft::Config;
use crate::platform::Shared;

#[test]
fn gpu_6_what_is_submitted_runs_in_order_on_every_node() {
    let port = started(Config::default());

    for node in 0..4 {
        let scene = Scene::new(&port, 1);
        let ear = Shared::new(Ear::default());
        let context = scene.space.packets(node, 7, &ear);
        let dwords = Commands::default()
            .write(DATA + 8, 0x1234_5678_9abc_def0)
            .release(DATA + 16, 5)
            .into(&scene.code);

        for number in 1..=100 {
            // As many at a time as it takes.
            ear.wait(|told| told.completed + 4 >= number);
            submit(&context, number, CODE, dwords);
        }
        ear.completed(100);
        assert_eq!(word(&scene.data, 1), 0x1234_5678_9abc_def0);
        assert_eq!(word(&scene.data, 2), 5);

        let told = ear.told().clone();

        assert_eq!(told.signaled, 100);
        assert!(told.faults.is_empty() && told.ran_ns > 0);

        let status = port
            .enter()
            .unwrap()
            .query_node_status(&Passive::here(), node);

        assert_eq!(
            (status.submissions, status.ready, status.blocked),
            (100, 0, 0)
        );
        assert!(status.running.is_none() && status.busy_ns >= told.ran_ns);
    }
}

#[test]
fn gpu_8_a_hw_queue_stores_its_progress_value() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene
        .space
        .context(1, 7, Scheduling::HwQueues, &ear)
        .unwrap();
    let first = hw_queue(&context, 8, DATA + 64, &ear);

    context
        .set_root_page_table(&Passive::here(), &scene.space.root())
        .unwrap();

    let other_ear = Shared::new(Ear::default());
    let second = hw_queue(&context, 9, DATA + 72, &other_ear);
    let dwords = Commands::default().write(DATA, 1).into(&scene.code);

    for (queue, ear, index, values) in [
        (&first, &ear, 8, [10, 11]),
        (&second, &other_ear, 9, [1, 1 << 40]),
    ] {
        for (number, value) in (1..).zip(values) {
            let submission = Submission {
                number,
                commands: CODE,
                length: dwords * 4,
                progress: Some(value),
            };

            in_dispatch(|class| queue.submit(class, &submission)).unwrap();
        }
        ear.completed(2);
        assert_eq!(word(&scene.data, index), values[1]);
    }
}

#[test]
fn gpu_67_a_page_fault_stops_its_queue_only() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let other = Scene::new(&port, 2);
    let (ear, other_ear) = (Shared::new(Ear::default()), Shared::new(Ear::default()));
    let faulty = scene.space.packets(0, 7, &ear);
    let good = other.space.packets(0, 8, &other_ear);
    let dwords = Commands::default()
        .write(DATA, 1)
        .write(DATA + PAGE, 2)
        .write(DATA + 8, 3)
        .into(&scene.code);

    submit(&faulty, 1, CODE, dwords);

    let told = ear.wait(|told| !told.faults.is_empty());
    let expected = Fault {
        kind: FaultKind::PageFault {
            address: DATA + PAGE,
            write: true,
            level: 0,
        },
        packet: CODE + 6 * 4,
        number: 1,
        flags: 1,
    };

    assert_eq!(told.faults, [expected]);
    assert_eq!((word(&scene.data, 0), word(&scene.data, 1)), (1, 0));

    // It takes more, and does nothing with it.
    submit(&faulty, 2, CODE, dwords);

    let more = Commands::default().write(DATA, 1).into(&other.code);

    submit(&good, 1, CODE, more);
    other_ear.completed(1);

    let told = ear.told();

    assert_eq!((told.completed, told.faults.len()), (0, 1));
}

#[test]
fn gpu_46_what_only_the_system_may_do_is_illegal_on_the_paging_node_too() {
    let port = started(Config::default());

    for (node, header, fields) in [
        (3, 0xc000_9800, vec![0]),
        (0, 0xc000_9800, vec![0]),
        (3, 0xc007_e500, vec![1, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let scene = Scene::new(&port, 1);
        let ear = Shared::new(Ear::default());
        let context = scene.space.packets(node, 7, &ear);
        let opcode = (header >> 8) & 0xff;
        let dwords = Commands::default()
            .packet(opcode, &fields)
            .into(&scene.code);

        submit(&context, 1, CODE, dwords);

        let told = ear.wait(|told| !told.faults.is_empty());

        assert_eq!(told.faults[0].kind, FaultKind::IllegalPacket { header });
        assert_eq!((told.faults[0].packet, told.faults[0].number), (CODE, 1));
    }
}

#[test]
fn gpu_2_there_are_as_many_engines_as_nodes() {
    let port = started_unverified(Config {
        nodes: 2,
        ..Config::default()
    });
    let space = Space::new(&port, 1);
    let ear = Shared::new(Ear::default());

    for (node, made) in [(0, true), (1, true), (2, false), (u32::MAX, false)] {
        let context = space.context(node, 7, Scheduling::Packets, &ear);

        assert_eq!(context.is_ok(), made, "node {node}");
    }
}

/// FEN-41: what has been read and is not done is told, once. What is done at once is not worth it.
#[test]
fn fen_41_a_buffer_that_has_been_read_is_told() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);
    let nothing = Commands::default().write(DATA + 8, 1).into(&scene.code);

    submit(&context, 1, CODE, nothing);
    ear.completed(1);
    assert_eq!(ear.told().fetched, 0);

    let wait = Commands::default().wait(DATA, 1).into(&scene.code);

    submit(&context, 2, CODE, wait);

    let told = ear.wait(|told| told.fetched == 2);

    assert_eq!(told.completed, 1);
    scene.data.words()[0].store(1, Release);
    ear.completed(2);
}
