// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the part of syzlang that `tools/abi/syzlang.py` writes.

use std::collections::HashMap;

use selftests::{Failure, TestResult};

/// The descriptions of all calls, which syzkaller can read, too.
const TEXT: &str = include_str!("../../../../../Documentation/abi/dxg.txt");

/// A kind of resource: a handle, a descriptor, a name.
pub(crate) type Kind = usize;

/// What a value is.
#[derive(Clone)]
pub(crate) enum Type {
    /// A number, in a range if it has one.
    Int(usize, Option<Range>),
    /// Always this.
    Const(u64, usize),
    /// Some of these bits, or one of these values.
    Flags(Vec<u64>, usize),
    /// What a call made before.
    Resource(Kind, usize),
    /// How many elements, or bytes, another member has.
    Len(String, usize, bool),
    /// The address of this, which the call may write to.
    Pointer(Box<Type>),
    /// So many, or any number behind a pointer.
    Array(Box<Type>, Option<usize>),
    /// A struct or a union.
    Body(usize),
}

/// The numbers from one to another, in steps.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) least: u64,
    pub(crate) most: u64,
    pub(crate) step: u64,
}

/// A member.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Type,
    /// Only the call writes it.
    pub(crate) is_out: bool,
    pub(crate) offset: usize,
}

/// A struct or a union.
pub(crate) struct Body {
    pub(crate) fields: Vec<Field>,
    pub(crate) is_union: bool,
    size: usize,
    align: usize,
}

/// A system call.
pub(crate) struct Call {
    /// Its name, without what is the same for all.
    pub(crate) name: String,
    pub(crate) system: System,
    /// The descriptor it is made on.
    pub(crate) on: Option<Kind>,
    /// What it returns.
    pub(crate) returns: Option<Kind>,
}

/// Which one.
pub(crate) enum System {
    /// `ioctl` with this code, and the struct that it points to.
    Ioctl(u32, Option<Type>),
    Read,
    Close,
    Eventfd,
}

/// Values of resources of which none was made.
pub(crate) struct Resource {
    pub(crate) parent: Option<Kind>,
    pub(crate) special: Vec<u64>,
    size: usize,
}

/// All descriptions.
pub(crate) struct Lang {
    pub(crate) calls: Vec<Call>,
    pub(crate) bodies: Vec<Body>,
    pub(crate) resources: Vec<Resource>,
    kinds: HashMap<String, Kind>,
}

/// What was read and not yet looked into.
#[derive(Default)]
struct Source<'text> {
    /// Whether one is a union, whether it is packed, and its members.
    bodies: HashMap<&'text str, (bool, bool, Vec<&'text str>)>,
    flags: HashMap<&'text str, Vec<u64>>,
    calls: Vec<&'text str>,
}

impl Lang {
    /// The descriptions. What they call a size has to be what the code of the call says.
    pub(crate) fn read() -> TestResult<Self> {
        let mut lang = Self {
            calls: Vec::new(),
            bodies: Vec::new(),
            resources: Vec::new(),
            kinds: HashMap::new(),
        };
        let source = lang.sort(TEXT)?;
        let mut known = HashMap::new();
        for line in &source.calls {
            if let Some(call) = lang.call(line, &source, &mut known)? {
                lang.calls.push(call);
            }
        }
        Ok(lang)
    }

    /// The kind with this name.
    pub(crate) fn kind(&self, name: &str) -> TestResult<Kind> {
        let kind = self.kinds.get(name).copied();
        kind.ok_or_else(|| format!("no resource {name}").into())
    }

    /// The number of the call with this name.
    pub(crate) fn call_named(&self, name: &str) -> TestResult<usize> {
        let call = self.calls.iter().position(|call| call.name == name);
        call.ok_or_else(|| format!("no call {name}").into())
    }

    /// Whether one kind can stand for another.
    pub(crate) fn is_a(&self, kind: Kind, wanted: Kind) -> bool {
        kind == wanted || self.resources[kind].parent == Some(wanted)
    }

    /// Bytes of a value. A pointer's array has none of its own.
    pub(crate) fn size(&self, kind: &Type) -> usize {
        match kind {
            Type::Int(size, _)
            | Type::Const(_, size)
            | Type::Flags(_, size)
            | Type::Resource(_, size)
            | Type::Len(_, size, _) => *size,
            Type::Pointer(_) => 8,
            Type::Array(of, count) => self.size(of) * count.unwrap_or(0),
            Type::Body(body) => self.bodies[*body].size,
        }
    }

    fn align(&self, kind: &Type) -> usize {
        match kind {
            Type::Array(of, _) => self.align(of),
            Type::Body(body) => self.bodies[*body].align,
            other => self.size(other),
        }
    }

    /// Sorts the lines. Resources are complete afterwards.
    fn sort<'text>(&mut self, text: &'text str) -> TestResult<Source<'text>> {
        let mut source = Source::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(rest) = line.strip_prefix("resource ") {
                self.resource(rest)?;
            } else if let Some(name) = line.strip_suffix(" {").or(line.strip_suffix(" [")) {
                let (mut members, mut is_packed) = (Vec::new(), false);
                for member in lines.by_ref() {
                    is_packed = member.ends_with("[packed]");
                    if !member.starts_with('\t') {
                        break;
                    }
                    members.push(member.trim());
                }
                source
                    .bodies
                    .insert(name, (line.ends_with('['), is_packed, members));
            } else if let Some((name, values)) = line.split_once(" = ") {
                let values = values.split(", ").map(number).collect::<TestResult<_>>()?;
                source.flags.insert(name, values);
            } else {
                source.calls.push(line);
            }
        }
        Ok(source)
    }

    /// `NAME[BASE]`, and special values.
    fn resource(&mut self, text: &str) -> TestResult {
        let (name, rest) = text.split_once('[').ok_or("a resource without a base")?;
        let (base, special) = rest.split_once(']').ok_or("a resource without an end")?;
        let parent = self.kinds.get(base).copied();
        let size = match (parent, base) {
            (Some(parent), _) => self.resources[parent].size,
            (None, "int64") => 8,
            _ => 4,
        };
        let special = special
            .trim_start_matches(": ")
            .split(", ")
            .filter(|value| !value.is_empty())
            .map(number)
            .collect::<TestResult<_>>()?;
        self.kinds.insert(name.into(), self.resources.len());
        self.resources.push(Resource {
            parent,
            special,
            size,
        });
        Ok(())
    }

    /// `NAME(ARGUMENTS) RESULT`. There is nothing to do for `openat`: each program has the node.
    fn call<'text>(
        &mut self,
        line: &'text str,
        source: &Source<'text>,
        known: &mut HashMap<&'text str, usize>,
    ) -> TestResult<Option<Call>> {
        let (name, rest) = line.split_once('(').ok_or("a call without arguments")?;
        let (arguments, result) = rest.rsplit_once(')').ok_or("a call without an end")?;
        let returns = match result.trim() {
            "" => None,
            kind => Some(self.kind(kind)?),
        };
        let arguments: Vec<_> = split(arguments)
            .into_iter()
            .filter_map(|argument| argument.split_once(' '))
            .collect();
        let on = match arguments.first() {
            Some(("fd", kind)) if !kind.starts_with("const") => Some(self.kind(kind)?),
            _ => None,
        };
        let (system, short) = name.split_once('$').ok_or("a call without a variant")?;
        let system = match system {
            "openat" => return Ok(None),
            "read" => System::Read,
            "close" => System::Close,
            "eventfd2" => System::Eventfd,
            "ioctl" => {
                let code = number(inside(arguments[1].1).ok_or("an ioctl without a code")?)? as u32;
                let argument = match inside(arguments[2].1).and_then(|text| text.split_once(", ")) {
                    Some((_, name)) => Some(self.parse(name, source, known)?),
                    None => None,
                };
                let size = argument.as_ref().map_or(0, |kind| self.size(kind));
                if size != ((code >> 16) & 0x3fff) as usize {
                    return Err(format!("{name} has {size} bytes").into());
                }
                System::Ioctl(code, argument)
            }
            other => return Err(format!("{other} is not known").into()),
        };
        Ok(Some(Call {
            name: short.trim_start_matches("DXG_").into(),
            system,
            on,
            returns,
        }))
    }

    /// A type. Bodies are looked into the first time that they are named.
    fn parse<'text>(
        &mut self,
        text: &'text str,
        source: &Source<'text>,
        known: &mut HashMap<&'text str, usize>,
    ) -> TestResult<Type> {
        let options = inside(text).map(split).unwrap_or_default();
        let word = text.split('[').next().unwrap_or(text);
        let last = |options: &[&str]| options.last().map_or(Ok(0), |text| bytes(text));
        Ok(match word {
            "const" => Type::Const(number(options[0])?, last(&options)?),
            "flags" => {
                let values = source.flags.get(options[0]);
                let values = values.ok_or_else(|| format!("no flags {}", options[0]))?;
                Type::Flags(values.clone(), last(&options)?)
            }
            "len" | "bytesize" => Type::Len(options[0].into(), last(&options)?, word == "bytesize"),
            "ptr64" => Type::Pointer(Box::new(self.parse(options[1], source, known)?)),
            "array" => {
                let count = options.get(1).map(|text| number(text)).transpose()?;
                let of = self.parse(options[0], source, known)?;
                Type::Array(Box::new(of), count.map(|count| count as usize))
            }
            _ if word.starts_with("int") => {
                let range = options.first().and_then(|text| text.split_once(':'));
                let range = match range {
                    Some((least, most)) => Some(Range {
                        least: number(least)?,
                        most: number(most)?,
                        step: options.get(1).map_or(Ok(1), |text| number(text))?,
                    }),
                    None => None,
                };
                Type::Int(bytes(word)?, range)
            }
            _ => match self.kinds.get(word) {
                Some(&kind) => Type::Resource(kind, self.resources[kind].size),
                None => Type::Body(self.body(word, source, known)?),
            },
        })
    }

    /// The struct or union with this name.
    fn body<'text>(
        &mut self,
        name: &'text str,
        source: &Source<'text>,
        known: &mut HashMap<&'text str, usize>,
    ) -> TestResult<usize> {
        if let Some(&body) = known.get(name) {
            return Ok(body);
        }
        let (is_union, is_packed, members) = source
            .bodies
            .get(name)
            .ok_or_else(|| format!("no type {name}"))?;
        let (mut fields, mut end, mut align) = (Vec::new(), 0usize, 1usize);
        for member in members {
            let (name, rest) = member
                .split_once(['\t', ' '])
                .ok_or("a member without type")?;
            let (text, way) = match rest.trim().split_once(" (") {
                Some((text, way)) => (text, way),
                None => (rest.trim(), ""),
            };
            let kind = self.parse(text, source, known)?;
            let each = if *is_packed {
                1
            } else {
                self.align(&kind).max(1)
            };
            let offset = if *is_union {
                0
            } else {
                end.next_multiple_of(each)
            };
            end = end.max(offset + self.size(&kind));
            align = align.max(each);
            fields.push(Field {
                name: name.into(),
                kind,
                is_out: way.starts_with("out"),
                offset,
            });
        }
        self.bodies.push(Body {
            fields,
            is_union: *is_union,
            size: end.next_multiple_of(align),
            align,
        });
        known.insert(name, self.bodies.len() - 1);
        Ok(self.bodies.len() - 1)
    }
}

/// What is between the outer brackets.
fn inside(text: &str) -> Option<&str> {
    text.strip_suffix(']')?
        .split_once('[')
        .map(|(_, inner)| inner)
}

/// The parts between commas that are in no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (place, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// How many bytes `intN` has.
fn bytes(word: &str) -> TestResult<usize> {
    let bits = word
        .strip_prefix("int")
        .and_then(|bits| bits.parse::<usize>().ok());
    Ok(bits.ok_or_else(|| Failure::from(format!("{word} is no integer")))? / 8)
}

fn number(text: &str) -> TestResult<u64> {
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    value.map_err(|_| format!("{text} is no number").into())
}
