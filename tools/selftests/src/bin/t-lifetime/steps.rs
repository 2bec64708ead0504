// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sequence of RES-84, step by step, and its variants.

use std::os::fd::AsFd;

use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use selftests::child::{Child, Gate};
use selftests::fds::{receive, send, socket_pair};
use selftests::leak::Watch;
use selftests::sharing::{key, Client, How, Local, Target, What};
use selftests::time::soon;
use selftests::trace::traced;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;

pub(crate) fn tests(suite: Suite) -> Suite {
    let suite = STEPS
        .iter()
        .enumerate()
        .fold(suite, |suite, (at, (name, _))| {
            suite.test(
                format!("RES-84 RES-111 step {}: {name}", at + 1),
                move || walk(at + 1),
            )
        });
    suite
        .test(
            "RES-84 the storage goes last first, then the resource",
            order,
        )
        .test(
            "RES-84 variant: the surface is released before the texture",
            surface_first,
        )
        .test(
            "RES-84 variant: referenced through one, released through the other",
            crosswise,
        )
        .test("RES-84 variant: the creator exits at step 3", creator_exits)
        .test(
            "RES-84 variant: the creator is killed at step 3",
            creator_killed,
        )
}

/// What the steps work on.
struct Scene {
    client: Client,
    texture: Option<Local>,
    allocations: Vec<u32>,
    surface: Option<Local>,
    container: Option<Local>,
    id: u64,
    event: EventFd,
    watch: std::os::fd::OwnedFd,
}

type Step = fn(&mut Scene) -> TestResult;

/// The rows of the table after the first, which makes the scene.
const STEPS: [(&str, Step); 6] = [
    (
        "create: one count for the container and its parts",
        |scene| scene.counts(1),
    ),
    (
        "a level is duplicated: the same number from everywhere",
        |scene| {
            let level = scene.allocations[1];
            scene.surface = Some(scene.client.dup_local(What::Allocation, level)?);
            scene.counts(2)
        },
    ),
    (
        "the texture is released: its handles die, the surface works",
        |scene| {
            let texture = scene.texture.take().ok_or("no texture")?;
            let handle = texture.handle();
            texture.destroy()?;
            let client = &scene.client;
            for dead in scene.allocations.iter().copied().chain([handle]) {
                fails_with(client.query(Target::Local(dead)).map(|_| ()), REFUSE)?;
            }
            for dead in &scene.allocations {
                fails_with(client.peek(*dead), REFUSE)?;
                fails_with(client.destroy(What::Allocation, *dead), REFUSE)?;
            }
            fails_with(client.destroy(What::Resource, handle), REFUSE)?;
            scene.works(11)?;
            scene.counts(1)
        },
    ),
    ("the container of the surface is the texture", |scene| {
        let surface = scene.surface.as_ref().ok_or("no surface")?;
        let container = scene.client.container(surface.handle())?;
        let client = &scene.client;
        ensure_eq!(client.id(container.target())?, scene.id);
        ensure_eq!(
            client.get(container.target(), key(1), 0)?.bytes,
            b"description"
        );
        ensure_eq!(client.get(container.target(), [0; 16], 0)?.bytes, b"blob");
        ensure_eq!(client.query(container.target())?.object.allocation_count, 3);
        for index in 0..3 {
            let part = client.dup_part(What::Allocation, container.handle(), index)?;
            let expected = if index == 1 { 11 } else { index as u8 };
            ensure_eq!(client.peek(part.handle())?, expected, "allocation {index}");
        }
        scene.container = Some(container);
        scene.counts(2)
    }),
    (
        "the container is released: the surface still works",
        |scene| {
            scene.container.take().ok_or("no container")?.destroy()?;
            scene.works(12)?;
            scene.counts(1)
        },
    ),
    (
        "the surface is released: one notice, nothing left",
        |scene| {
            ensure_eq!(scene.event.take()?, 0, "a notice before the end");
            scene.surface.take().ok_or("no surface")?.destroy()?;
            ensure_eq!(scene.event.wait(Some(soon()))?, Some(1));
            let state = scene.client.watch_state(&scene.watch)?;
            ensure_eq!(
                (state.object_id, state.events),
                (scene.id, OPENDXG_WATCH_DESTROY)
            );
            selftests::time::a_while();
            ensure_eq!(scene.event.take()?, 0, "a second notice");
            Ok(())
        },
    ),
];

impl Scene {
    /// A texture of three levels, with a description and a watch on its end.
    fn new() -> TestResult<Self> {
        let client = Client::new()?;
        let texture = client.create_resource(How::Private, 3, b"blob")?;
        client.set(texture.target(), key(1), 0, b"description")?;
        let allocations = texture.allocations().to_vec();
        for (index, allocation) in allocations.iter().enumerate() {
            client.poke(*allocation, index as u8)?;
        }
        let event = EventFd::new()?;
        let watch = client.watch(texture.target(), OPENDXG_WATCH_DESTROY, 0, &event)?;
        let id = client.id(texture.target())?;
        Ok(Self {
            client,
            texture: Some(texture),
            allocations,
            surface: None,
            container: None,
            id,
            event,
            watch,
        })
    }

    /// Demands this number from every live handle, and the same object.
    fn counts(&self, expected: u32) -> TestResult {
        let live = [&self.texture, &self.surface, &self.container];
        let mut handles: Vec<u32> = live.into_iter().flatten().map(Local::handle).collect();
        if self.texture.is_some() {
            handles.extend(&self.allocations);
        }
        ensure!(!handles.is_empty());
        for handle in handles {
            let object = self.client.query(Target::Local(handle))?.object;
            ensure_eq!(object.references, expected, "{handle:#x}");
            ensure_eq!(object.local_references, expected, "{handle:#x}");
            ensure_eq!(object.object_id, self.id);
        }
        Ok(())
    }

    /// Writes and reads through the surface.
    fn works(&self, value: u8) -> TestResult {
        let surface = self.surface.as_ref().ok_or("no surface")?.handle();
        self.client.poke(surface, value)?;
        ensure_eq!(self.client.peek(surface)?, value);
        Ok(())
    }
}

/// The first steps, each with what must hold.
fn walk(count: usize) -> TestResult {
    let watch = Watch::start()?;
    let mut scene = Scene::new()?;
    for (_, step) in &STEPS[..count] {
        step(&mut scene)?;
    }
    drop(scene);
    watch.ends_clean()
}

fn order() -> TestResult {
    let client = Client::new()?;
    let resource = client.create_resource(How::Private, 3, b"")?;
    let surface = client.dup_local(What::Allocation, resource.allocations()[1])?;
    resource.destroy()?;
    let events = traced(|| Ok(surface.destroy()?))?;
    let ours = [OPENDXG_KIND_RESOURCE, OPENDXG_KIND_ALLOCATION].map(u64::from);
    // What else ends at the same time is not by this thread.
    let thread = selftests::task::me();
    let ended: Vec<(u64, u64)> = events
        .iter()
        .filter(|event| event.thread == thread)
        .filter(|event| event.name == "destroy" && ours.contains(&event.get("kind")))
        .map(|event| (event.get("kind"), event.get("object")))
        .collect();
    ensure_eq!(ended.len(), 4, "{ended:?}");
    let (allocations, resource) = ended.split_at(3);
    ensure_eq!(resource[0].0, ours[0], "the resource goes last: {ended:?}");
    ensure!(allocations.iter().all(|(kind, _)| *kind == ours[1]));
    // Ids grow with creation.
    ensure!(
        allocations.windows(2).all(|pair| pair[0].1 > pair[1].1),
        "{ended:?}"
    );
    Ok(())
}

fn surface_first() -> TestResult {
    let watch = Watch::start()?;
    let mut scene = Scene::new()?;
    STEPS[1].1(&mut scene)?;
    scene.surface.take().ok_or("no surface")?.destroy()?;
    scene.counts(1)?;
    ensure_eq!(scene.event.take()?, 0);
    scene.texture.take().ok_or("no texture")?.destroy()?;
    ensure_eq!(scene.event.wait(Some(soon()))?, Some(1));
    drop(scene);
    watch.ends_clean()
}

fn crosswise() -> TestResult {
    let client = Client::new()?;
    // Taken through the resource, released through the part, and the reverse.
    for through_resource in [true, false] {
        let texture = client.create_resource(How::Private, 3, b"")?;
        let id = client.id(texture.target())?;
        let event = EventFd::new()?;
        let _watch = client.watch(texture.target(), OPENDXG_WATCH_DESTROY, 0, &event)?;
        let (first, second) = match through_resource {
            true => {
                let whole = client.dup_local(What::Resource, texture.handle())?;
                let part = client.dup_part(What::Allocation, whole.handle(), 2)?;
                (whole, part)
            }
            false => {
                let part = client.dup_local(What::Allocation, texture.allocations()[0])?;
                let whole = client.container(part.handle())?;
                (part, whole)
            }
        };
        ensure_eq!(client.references(first.target())?, 3);
        texture.destroy()?;
        first.destroy()?;
        ensure_eq!(client.id(second.target())?, id);
        ensure_eq!(client.references(second.target())?, 1);
        ensure_eq!(event.take()?, 0);
        second.destroy()?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
    }
    Ok(())
}

/// Step 3 by the end of the creating process, with the surface in this one.
fn without_creator(end: impl FnOnce(Child, Gate) -> TestResult) -> TestResult {
    let (left, right) = socket_pair()?;
    let (ready, go) = (Gate::new()?, Gate::new()?);
    let creator = Child::spawn(|| {
        let client = Client::new()?;
        let texture = client.create_resource(How::Nt, 3, b"blob")?;
        client.set(texture.target(), key(1), 0, b"description")?;
        for (index, allocation) in texture.allocations().iter().enumerate() {
            client.poke(*allocation, index as u8)?;
        }
        send(
            &left,
            client.share(&texture, selftests::sharing::access::ALL_RESOURCE)?,
        )?;
        ready.open()?;
        go.wait()?;
        texture.into_raw();
        Ok(())
    })?;
    ready.wait()?;
    let client = Client::new()?;
    let (surface, event, _watch) = {
        let fd = receive(&right)?;
        let opened = client.open_resource(&fd)?.resource;
        let surface = client.dup_local(What::Allocation, opened.allocations()[1])?;
        let event = EventFd::new()?;
        let watch = client.watch(Target::Nt(fd.as_fd()), OPENDXG_WATCH_DESTROY, 0, &event)?;
        (surface, event, watch)
    };
    // The creator's open resource and the surface.
    ensure_eq!(client.references(surface.target())?, 2);
    ensure_eq!(client.query(surface.target())?.object.local_references, 1);
    end(creator, go)?;
    let alone = || client.references(surface.target()) == Ok(1);
    selftests::time::eventually("the creator's reference goes", alone)?;
    ensure_eq!(client.peek(surface.handle())?, 1);
    let container = client.container(surface.handle())?;
    ensure_eq!(
        client.get(container.target(), key(1), 0)?.bytes,
        b"description"
    );
    ensure_eq!(client.get(container.target(), [0; 16], 0)?.bytes, b"blob");
    surface.destroy()?;
    ensure_eq!(event.take()?, 0);
    container.destroy()?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    Ok(())
}

fn creator_exits() -> TestResult {
    without_creator(|creator, go| {
        go.open()?;
        creator.join()
    })
}

fn creator_killed() -> TestResult {
    without_creator(|creator, _| creator.kill())
}
