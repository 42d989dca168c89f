//! Names the stubs by which a file calls functions of other files (its procedure linkage table).
//!
//! They have no symbols, so a symbol before them, such as `_init`, would get their time. Each stub
//! jumps to the address in a slot, and the file's relocations say whose address the loader puts
//! there.

use std::collections::BTreeMap;

use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, ReadRef, RelocationTarget};
use pinwise_code::demangle;
use pinwise_profile::Symbol;

/// Bytes of the longest stub; stubs begin at multiples of half of it.
const MAX_STUB_BYTES: u64 = 16;
/// Limits the bytes read of a section.
const MAX_BYTES: u64 = 1 << 20;

/// The stubs of a file.
#[derive(Debug, Default)]
pub(super) struct Stubs {
    /// Start and end addresses of the sections with stubs.
    sections: Vec<(u64, u64)>,
    /// Target names by stub address.
    names: BTreeMap<u64, String>,
}

impl Stubs {
    pub(super) fn from_file<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Self {
        let is_stubs = |name: &str| name == ".plt" || name.starts_with(".plt.");
        let sections: Vec<_> = file
            .sections()
            .filter(|section| section.name().is_ok_and(is_stubs))
            .collect();
        let mut stubs = Self::default();
        if sections.is_empty() {
            return stubs;
        }
        let slots = read_slots(file);
        for section in sections {
            let (start, size) = (section.address(), section.size());
            stubs.sections.push((start, start.saturating_add(size)));
            let bytes = section
                .data_range(start, size.min(MAX_BYTES))
                .ok()
                .flatten();
            for (from, slot) in find_jumps(start, bytes.unwrap_or_default()) {
                if let Some(name) = slots.get(&slot) {
                    stubs
                        .names
                        .insert(from - from % (MAX_STUB_BYTES / 2), name.clone());
                }
            }
        }
        stubs
    }

    /// The stub at an address of the file, named as in other tools: `memcpy@plt`.
    pub(super) fn symbol_at(&self, address: u64) -> Option<Symbol> {
        let mut sections = self.sections.iter();
        let &(first, _) = sections.find(|(start, end)| (*start..*end).contains(&address))?;
        let before = self.names.range(first..=address).next_back();
        let stub = before.filter(|(start, _)| address - **start < MAX_STUB_BYTES);
        let (start, name) = stub.map_or((first, "[plt]".to_owned()), |(start, name)| {
            (*start, format!("{name}@plt"))
        });
        Some(Symbol {
            name,
            offset: address - start,
            source: None,
            inlined: Vec::new(),
        })
    }
}

/// Reads the names of functions by the slots for their addresses.
fn read_slots<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> BTreeMap<u64, String> {
    let Some((relocations, symbols)) = file.dynamic_relocations().zip(file.dynamic_symbol_table())
    else {
        return BTreeMap::new();
    };
    let named = relocations.filter_map(|(slot, relocation)| {
        let RelocationTarget::Symbol(index) = relocation.target() else {
            return None;
        };
        let symbol = symbols.symbol_by_index(index).ok()?;
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        Some((slot, demangle(name)))
    });
    named.collect()
}

/// Finds the addresses of all `jmp [rip + distance]` in x86-64 code and their slots: the distance
/// counts from the end of the jump.
fn find_jumps(start: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let windows = (start..).zip(bytes.windows(6));
    windows.filter_map(|(from, jump)| {
        let [0xff, 0x25, distance @ ..] = jump else {
            return None;
        };
        let distance = i32::from_le_bytes(distance.try_into().ok()?);
        let slot = from
            .wrapping_add(6)
            .wrapping_add_signed(i64::from(distance));
        Some((from, slot))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_is_named_after_its_target() {
        let stub = [
            0xf3, 0x0f, 0x1e, 0xfa, // endbr64
            0xff, 0x25, 0xda, 0x2f, 0x00, 0x00, // jmp [rip + 0x2fda]
            0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00,
        ];
        let found: Vec<_> = find_jumps(0x1040, &stub).collect();
        assert_eq!(found, [(0x1044, 0x4024)]);
        let named = |start: u64, name: &str| (start, name.to_owned());
        let stubs = Stubs {
            sections: vec![(0x1020, 0x1060), (0x1060, 0x1070)],
            names: [
                named(0x1040, "memcpy"),
                named(0x1060, "read"),
                named(0x1068, "abs"),
            ]
            .into(),
        };
        let name = |address| stubs.symbol_at(address).map(|one| (one.name, one.offset));
        let check = |address, expected: &str, offset| {
            assert_eq!(name(address), Some((expected.to_owned(), offset)));
        };
        check(0x1044, "memcpy@plt", 4);
        check(0x1020, "[plt]", 0);
        check(0x1066, "read@plt", 6);
        check(0x1068, "abs@plt", 0);
        assert_eq!(name(0x1070), None);
    }
}
