// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that do what they are told, one call at a time.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

use rustix::net::{RecvFlags, SendFlags};
use selftests::child::Child;
use selftests::fds::{receive, send, socket_pair};
use selftests::sharing::{Client, How, Shape, Target, What};
use selftests::{Failure, TestResult};

/// What a worker can do. Arguments and answers are numbers; descriptors travel beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Creates a kind: handle and first allocation; a weak reference follows.
    Create(Shape),
    /// Duplicates a handle.
    Dup(What, u32),
    /// The container of an allocation.
    Container(u32),
    /// Shares a handle of a kind under the name of this number: descriptor.
    Share(Shape, u32, usize),
    /// Opens the name of this number: descriptor, or 0 if there is none.
    OpenName(Shape, usize),
    /// Another description of an NT handle: descriptor.
    DupNt(u32),
    /// Sends a copy of an NT handle.
    Send(u32),
    /// Receives one: descriptor.
    Receive,
    /// Opens an NT handle of a kind: handle and first allocation.
    Open(Shape, u32),
    /// Destroys a handle.
    Destroy(What, u32),
    /// Closes an NT handle.
    Close(u32),
}

/// A worker, killed when dropped.
pub(crate) struct Worker {
    socket: OwnedFd,
    child: Child,
}

impl Worker {
    pub(crate) fn start() -> TestResult<Self> {
        let (socket, theirs) = socket_pair()?;
        // The orders are the parent's memory of the moment of the fork; new ones travel as bytes.
        let child = Child::spawn(|| serve(&theirs))?;
        Ok(Self { socket, child })
    }

    /// Gives an order; the two numbers of the answer.
    pub(crate) fn run(&self, order: Order) -> TestResult<(u32, u32)> {
        rustix::net::send(&self.socket, &encode(order), SendFlags::empty())?;
        if order == Order::Receive {
            return Err("use hand".into());
        }
        self.answer(order)
    }

    /// Gives the order to receive, and what there is to receive.
    pub(crate) fn hand(&self, fd: impl AsFd) -> TestResult<u32> {
        rustix::net::send(&self.socket, &encode(Order::Receive), SendFlags::empty())?;
        send(&self.socket, fd)?;
        Ok(self.answer(Order::Receive)?.0)
    }

    /// Takes the descriptor that follows an answer.
    pub(crate) fn take(&self) -> TestResult<OwnedFd> {
        receive(&self.socket)
    }

    pub(crate) fn kill(self) -> TestResult {
        self.child.kill()
    }

    fn answer(&self, order: Order) -> TestResult<(u32, u32)> {
        let mut answer = [0u8; 512];
        let (_, length) = rustix::net::recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        match answer[..length].split_first() {
            Some((0, numbers)) if numbers.len() == 8 => {
                let number = |at: usize| {
                    let bytes = [
                        numbers[at],
                        numbers[at + 1],
                        numbers[at + 2],
                        numbers[at + 3],
                    ];
                    u32::from_ne_bytes(bytes)
                };
                Ok((number(0), number(4)))
            }
            Some((_, text)) => {
                let text = String::from_utf8_lossy(text);
                Err(Failure::Failed(format!("{order:?}: {text}")))
            }
            None => Err(format!("{order:?}: the worker is gone").into()),
        }
    }
}

const SHAPES: [Shape; 6] = Shape::ALL;
const WHATS: [What; 4] = [
    What::Sync,
    What::Resource,
    What::Allocation,
    What::KeyedMutex,
];

fn place<T: PartialEq>(list: &[T], value: &T) -> u64 {
    list.iter().position(|other| other == value).unwrap_or(0) as u64
}

fn encode(order: Order) -> [u8; 32] {
    let shape = |shape: Shape| place(&SHAPES, &shape);
    let what = |what: What| place(&WHATS, &what);
    let words: [u64; 4] = match order {
        Order::Create(kind) => [0, shape(kind), 0, 0],
        Order::Dup(kind, handle) => [1, what(kind), handle.into(), 0],
        Order::Container(handle) => [2, 0, handle.into(), 0],
        Order::Share(kind, handle, name) => [3, shape(kind), handle.into(), name as u64],
        Order::OpenName(kind, name) => [4, shape(kind), 0, name as u64],
        Order::DupNt(fd) => [5, 0, fd.into(), 0],
        Order::Send(fd) => [6, 0, fd.into(), 0],
        Order::Receive => [7, 0, 0, 0],
        Order::Open(kind, fd) => [8, shape(kind), fd.into(), 0],
        Order::Destroy(kind, handle) => [9, what(kind), handle.into(), 0],
        Order::Close(fd) => [10, 0, fd.into(), 0],
    };
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// The name of a number.
fn name(number: u64) -> String {
    format!(r"\BaseNamedObjects\random {number}")
}

fn serve(socket: &OwnedFd) -> TestResult {
    let client = Client::new()?;
    loop {
        let mut bytes = [0u8; 32];
        let (_, length) = rustix::net::recv(socket, &mut bytes[..], RecvFlags::empty())?;
        if length == 0 {
            return Ok(());
        }
        let mut words = [0u64; 4];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().map_err(|_| "size")?);
        }
        let mut follows = None;
        let mut answer = Vec::new();
        match obey(&client, socket, words, &mut follows) {
            Ok((first, second)) => {
                answer.push(0);
                answer.extend(first.to_ne_bytes());
                answer.extend(second.to_ne_bytes());
            }
            Err(error) => {
                answer.push(1);
                answer.extend(error.to_string().bytes().take(500));
            }
        }
        rustix::net::send(socket, &answer, SendFlags::empty())?;
        if let Some(fd) = follows {
            send(socket, fd)?;
        }
    }
}

fn obey(
    client: &Client,
    socket: &OwnedFd,
    [number, kind, value, name_number]: [u64; 4],
    follows: &mut Option<OwnedFd>,
) -> TestResult<(u32, u32)> {
    let shape = SHAPES[kind as usize % SHAPES.len()];
    let what = WHATS[kind as usize % WHATS.len()];
    let value = value as u32;
    // SAFETY: a descriptor of this process, which the coordinator keeps track of.
    let borrowed = || unsafe { BorrowedFd::borrow_raw(value as i32) };
    let handles = |local: selftests::sharing::Local| {
        let part = local.allocations().first().copied().unwrap_or(0);
        (local.into_raw(), part)
    };
    Ok(match number {
        0 => {
            let object = client.create(shape, How::Nt)?;
            *follows = Some(client.open_weak(object.target())?);
            handles(object)
        }
        1 => (client.dup_local(what, value)?.into_raw(), 0),
        2 => (client.container(value)?.into_raw(), 0),
        3 => {
            let mut attributes = selftests::sharing::Attributes::named(&name(name_number));
            let access = shape.all_access();
            let (fd, _) = client.share_with(&[value], Some(&mut attributes), access)?;
            (fd.into_raw_fd() as u32, 0)
        }
        4 => match client.open_name(shape.what(), &name(name_number), shape.all_access()) {
            Ok(fd) => (fd.into_raw_fd() as u32, 0),
            Err(error) if error.status() == opendxg::Status::OBJECT_NAME_NOT_FOUND => (0, 0),
            Err(error) => return Err(error.into()),
        },
        5 => {
            let same = opendxg::uapi::OPENDXG_DUP_SAME_ACCESS;
            let fd = client.dup_nt(Target::Nt(borrowed()), 0, same)?;
            (fd.into_raw_fd() as u32, 0)
        }
        6 => {
            *follows = Some(borrowed().try_clone_to_owned()?);
            (0, 0)
        }
        7 => (receive(socket)?.into_raw_fd() as u32, 0),
        8 => handles(client.open(shape, borrowed())?),
        9 => {
            client.destroy(what, value)?;
            (0, 0)
        }
        _ => {
            // SAFETY: as above; it is not used any more.
            drop(unsafe { OwnedFd::from_raw_fd(value as i32) });
            (0, 0)
        }
    })
}
