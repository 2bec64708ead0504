// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs over several processes against the model (RES-84, RES-110).

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use selftests::leak::Watch;
use selftests::rounds::Dice;
use selftests::sharing::{Client, Shape, Target, What};
use selftests::stress::Figure;
use selftests::time::soon;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_lifetime::model::{Held, Model, Nt};
use crate::t_lifetime::worker::{Order, Worker};

const PROCESSES: usize = 3;
/// More handles than this are given back before new ones are made.
const CROWDED: usize = 60;
const SHAPES: [Shape; 3] = [Shape::Resource, Shape::MonitoredFence, Shape::Semaphore];

pub(crate) fn tests(suite: Suite) -> Suite {
    let limit = Duration::from_secs(200);
    (1..=2).fold(suite, |suite, seed| {
        suite.stress(
            format!("RES-84 RES-110 a random program against a model, seed {seed}"),
            limit,
            Figure::new(2_000, 10_000),
            move |figure| random(seed, figure.rounds()),
        )
    })
}

/// The world: workers, the model, and a weak reference to every object.
struct World {
    workers: Vec<Worker>,
    model: Model,
    weak: Vec<OwnedFd>,
    client: Client,
    dice: Dice,
    done: [u32; 12],
}

impl World {
    /// Some entry of a list.
    fn pick<T: Copy>(dice: &mut Dice, list: &[T]) -> Option<(usize, T)> {
        let at = dice.below(list.len() as u32) as usize;
        list.get(at).map(|entry| (at, *entry))
    }

    /// One random operation; the object it was about.
    fn step(&mut self) -> TestResult<Option<usize>> {
        let crowded = self.model.held.len() + self.model.nts.len() > CROWDED;
        let operation = match self.dice.below(100) {
            0..=9 if !crowded => 0,
            10..=19 if !crowded => 1,
            20..=24 if !crowded => 2,
            25..=34 if !crowded => 3,
            35..=41 if !crowded => 4,
            42..=46 if !crowded => 5,
            47..=54 if !crowded => 6,
            55..=64 if !crowded => 7,
            65..=84 => 8,
            99 if self.dice.below(3) == 0 => 10,
            _ => 9,
        };
        self.done[operation] += 1;
        let process = self.dice.below(PROCESSES as u32) as usize;
        let held = Self::pick(&mut self.dice, &self.model.held);
        let nt = Self::pick(&mut self.dice, &self.model.nts);
        match operation {
            0 => self.create(process).map(Some),
            10 => self.kill(process).map(|()| None),
            1 | 2 | 3 | 8 => match held {
                Some((at, held)) => self.with_held(operation, at, held).map(Some),
                None => Ok(None),
            },
            _ => match nt {
                Some((at, nt)) => self.with_nt(operation, process, at, nt).map(Some),
                None => Ok(None),
            },
        }
    }

    fn create(&mut self, process: usize) -> TestResult<usize> {
        let shape = SHAPES[self.dice.below(3) as usize];
        let (handle, part) = self.workers[process].run(Order::Create(shape))?;
        self.weak.push(self.workers[process].take()?);
        let object = self.model.objects.len();
        self.model.objects.push(shape);
        let what = shape.what();
        self.model.held.push(Held {
            process,
            object,
            what,
            handle,
            part,
        });
        Ok(object)
    }

    fn kill(&mut self, process: usize) -> TestResult {
        let worker = core::mem::replace(&mut self.workers[process], Worker::start()?);
        worker.kill()?;
        self.model.killed(process);
        Ok(())
    }

    /// Duplicates, containers, shares, releases.
    fn with_held(&mut self, operation: usize, at: usize, held: Held) -> TestResult<usize> {
        let worker = &self.workers[held.process];
        match operation {
            1 => {
                // Of the object itself, or of a part.
                let (what, from) = match held.part {
                    part if part != 0 && self.dice.below(2) == 0 => (What::Allocation, part),
                    _ => (held.what, held.handle),
                };
                let (handle, _) = worker.run(Order::Dup(what, from))?;
                self.model.held.push(Held {
                    what,
                    handle,
                    part: 0,
                    ..held
                });
            }
            2 => {
                let allocation = match held.what {
                    What::Allocation => held.handle,
                    _ => held.part,
                };
                if allocation != 0 {
                    let (handle, _) = worker.run(Order::Container(allocation))?;
                    let what = What::Resource;
                    self.model.held.push(Held {
                        what,
                        handle,
                        part: 0,
                        ..held
                    });
                }
            }
            3 if held.what != What::Allocation => {
                let (share, shape) = (self.model.shares.len(), self.model.objects[held.object]);
                let (fd, _) = worker.run(Order::Share(shape, held.handle, share))?;
                self.model.shares.push(held.object);
                self.model.nts.push(Nt {
                    process: held.process,
                    share,
                    fd,
                });
            }
            8 => {
                worker.run(Order::Destroy(held.what, held.handle))?;
                self.model.held.swap_remove(at);
            }
            _ => {}
        }
        Ok(held.object)
    }

    /// Openings, names, copies, closes.
    fn with_nt(
        &mut self,
        operation: usize,
        process: usize,
        at: usize,
        nt: Nt,
    ) -> TestResult<usize> {
        let object = self.model.shares[nt.share];
        let shape = self.model.objects[object];
        let worker = &self.workers[nt.process];
        match operation {
            4 => {
                let (fd, _) = worker.run(Order::DupNt(nt.fd))?;
                self.model.nts.push(Nt { fd, ..nt });
            }
            5 => {
                // By any name that ever was: found exactly if its share is open.
                let share = self.dice.below(self.model.shares.len() as u32) as usize;
                let shape = self.model.objects[self.model.shares[share]];
                let (fd, _) = self.workers[process].run(Order::OpenName(shape, share))?;
                ensure_eq!(fd != 0, self.model.is_open(share), "name {share}");
                if fd != 0 {
                    self.model.nts.push(Nt { process, share, fd });
                }
            }
            6 => {
                worker.run(Order::Send(nt.fd))?;
                let copy = worker.take()?;
                let fd = self.workers[process].hand(copy)?;
                self.model.nts.push(Nt { process, fd, ..nt });
            }
            7 => {
                let (handle, part) = worker.run(Order::Open(shape, nt.fd))?;
                let (process, what) = (nt.process, shape.what());
                self.model.held.push(Held {
                    process,
                    object,
                    what,
                    handle,
                    part,
                });
            }
            _ => {
                worker.run(Order::Close(nt.fd))?;
                self.model.nts.swap_remove(at);
            }
        }
        Ok(object)
    }

    /// Demands that the driver counts what the model counts.
    fn agrees(&self, object: usize) -> TestResult {
        let expected = self.model.references(object);
        let end = Instant::now() + soon();
        loop {
            let seen = self
                .client
                .query(Target::Weak(self.weak[object].as_fd()))?
                .object;
            if (seen.references, seen.alive) == (expected, u32::from(expected > 0)) {
                return Ok(());
            }
            // Only what a killed process held may take a moment.
            ensure!(
                Instant::now() < end,
                "object {object} ({:?}): {} references, expected {expected}",
                self.model.objects[object],
                seen.references
            );
            std::thread::yield_now();
        }
    }
}

fn random(seed: u64, operations: u32) -> TestResult {
    let watch = Watch::start()?;
    {
        let workers = (0..PROCESSES)
            .map(|_| Worker::start())
            .collect::<TestResult<_>>()?;
        let mut world = World {
            workers,
            model: Model::default(),
            weak: Vec::new(),
            client: Client::new()?,
            dice: Dice::new(seed),
            done: [0; 12],
        };
        for number in 0..operations {
            let touched = world
                .step()
                .map_err(|error| format!("operation {number}: {error}"))?;
            let all = || 0..world.model.objects.len();
            match touched {
                Some(object) => world.agrees(object),
                None => all().try_for_each(|object| world.agrees(object)),
            }
            .map_err(|error| format!("operation {number}: {error}"))?;
        }
        println!(
            "# {} objects, {} shares",
            world.model.objects.len(),
            world.model.shares.len()
        );
        println!("# operations by kind: {:?}", world.done);
        while let Some(worker) = world.workers.pop() {
            worker.kill()?;
            world.model.killed(world.workers.len());
        }
        (0..world.model.objects.len()).try_for_each(|object| world.agrees(object))?;
    }
    // Zero objects and zero bytes beyond the start.
    watch.ends_clean()
}
