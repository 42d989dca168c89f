//! The call-frame information of a file. It is found by program or section headers; the entry of an
//! address is executed up to the row of that instruction.
//!
//! No length in a file is trusted: each read part is limited, and parsing entries uses up a
//! [`ParseBudget`] that all files share.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, Encoding, Expression, LittleEndian, Register,
    RegisterRule, UnwindContext, UnwindExpression, UnwindSection, Vendor,
};
use object::Endianness;
use object::elf::{
    EM_AARCH64, EM_X86_64, FileHeader64, PT_GNU_EH_FRAME, PT_LOAD, ProgramHeader64, SectionHeader64,
};
use object::pod;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

use super::Bytes;
use crate::Arch;

/// Limits the bytes read of a call-frame table.
const MAX_PART_BYTES: u64 = 64 << 20;
/// Limits the bytes read of the names of sections.
const MAX_NAMES_BYTES: u64 = 1 << 16;
/// Limits the program or section headers.
const MAX_HEADERS: usize = 4096;
/// Limits the entries of an index that is built here.
const MAX_ENTRIES: usize = 4_000_000;
/// Limits the functions that are inspected for frame pointers.
const MAX_SAMPLED: usize = 500;
/// Limits the bytes of an entry: real ones have a few hundred.
const MAX_ENTRY_BYTES: usize = 64 << 10;

/// Reads this many bytes of a file at an offset; `None` if they do not exist.
pub type Read<'a> = &'a mut dyn FnMut(u64, usize) -> Option<Vec<u8>>;

/// Limits the bytes of entries that are parsed: the tables of a malicious file could take for ever.
#[derive(Debug)]
pub struct ParseBudget {
    bytes_left: usize,
    context: Box<UnwindContext<usize>>,
}

impl ParseBudget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes_left: bytes,
            context: Box::default(),
        }
    }

    /// Uses up some bytes; `None` if nothing is left.
    fn spend(&mut self, bytes: usize) -> Option<()> {
        self.bytes_left = self.bytes_left.saturating_sub(bytes.max(1));
        (self.bytes_left > 0).then_some(())
    }
}

/// How to find the caller of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    cfa: CfaRule<usize>,
    registers: Box<[(Register, RegisterRule<usize>)]>,
    return_register: Register,
    encoding: Encoding,
    is_signal: bool,
}

impl Rule {
    /// Has this function no caller?
    #[must_use]
    pub fn is_outermost(&self) -> bool {
        self.registers.iter().any(|(register, rule)| {
            *register == self.return_register && *rule == RegisterRule::Undefined
        })
    }

    pub(super) const fn cfa(&self) -> &CfaRule<usize> {
        &self.cfa
    }

    pub(super) const fn registers(&self) -> &[(Register, RegisterRule<usize>)] {
        &self.registers
    }

    pub(super) const fn return_register(&self) -> Register {
        self.return_register
    }

    pub(super) const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Was the caller interrupted by a signal?
    pub(super) const fn is_signal(&self) -> bool {
        self.is_signal
    }
}

/// Finds the entry of a function by the function's address.
#[derive(Debug)]
enum Index {
    /// The file's own index (`.eh_frame_hdr`): pairs of numbers relative to its address.
    File { address: u64, rows: Vec<u8> },
    /// Built here: pairs of address and offset.
    Built(Vec<(u64, usize)>),
}

/// A part of the file that is loaded into memory.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Offset in the file.
    offset: u64,
    /// Bytes in the file.
    length: u64,
    address: u64,
}

impl Segment {
    fn from_header(header: &Program) -> Self {
        Self {
            offset: header.p_offset(ENDIAN),
            length: header.p_filesz(ENDIAN),
            address: header.p_vaddr(ENDIAN),
        }
    }

    /// The distance of an offset or address from the segment's `start`; `None` if it is outside.
    fn distance(&self, start: u64, place: u64) -> Option<u64> {
        let distance = place.checked_sub(start)?;
        (distance < self.length).then_some(distance)
    }
}

/// A file's call-frame information.
#[derive(Debug)]
pub struct CallFrames {
    arch: Arch,
    segments: Vec<Segment>,
    eh_frame: Vec<u8>,
    eh_frame_address: u64,
    bases: BaseAddresses,
    index: Index,
}

impl CallFrames {
    /// Reads the call frames of an ELF file; `None` if it has none, or is damaged.
    #[must_use]
    pub fn read(read: Read<'_>, budget: &mut ParseBudget) -> Option<Self> {
        let headers = Headers::read(read)?;
        let mut found = match headers.index {
            Some(index) => headers.read_with_index(index, read)?,
            None => headers.read_without_index(read)?,
        };
        if let Index::Built(_) = found.index {
            found.index = Index::Built(found.read_entries(budget)?);
        }
        Some(found)
    }

    /// Memory used for the file's tables, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.eh_frame.len()
            + match &self.index {
                Index::File { rows, .. } => rows.len(),
                Index::Built(rows) => rows.len() * 16,
            }
    }

    /// Converts an offset in the file to an address as the tables have it.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let distance = segment.distance(segment.offset, offset)?;
            segment.address.checked_add(distance)
        })
    }

    /// The rule for an address as the tables have it.
    #[must_use]
    pub fn find_rule(&self, address: u64, budget: &mut ParseBudget) -> Option<Rule> {
        let section = self.section();
        let offset = self.find_entry(address)?;
        budget.spend(1)?;
        let fde = section.fde_from_offset(
            &self.bases,
            gimli::EhFrameOffset(offset),
            EhFrame::cie_from_offset,
        );
        let fde = fde.ok()?;
        let bytes = fde.entry_len().max(fde.cie().entry_len());
        budget.spend(bytes)?;
        if bytes > MAX_ENTRY_BYTES {
            return None;
        }
        let row = fde.unwind_info_for_address(&section, &self.bases, &mut budget.context, address);
        let row = row.ok()?;
        Some(Rule {
            cfa: row.cfa().clone(),
            registers: row.registers().cloned().collect(),
            return_register: fde.cie().return_address_register(),
            encoding: fde.cie().encoding(),
            is_signal: fde.is_signal_trampoline(),
        })
    }

    /// The share of functions that keep a frame pointer, in a sample of at most `MAX_SAMPLED`; `None`
    /// if there are no functions.
    #[must_use]
    pub fn share_with_frame_pointer(&self, budget: &mut ParseBudget) -> Option<f64> {
        let entries = match &self.index {
            Index::Built(rows) => rows.len(),
            Index::File { rows, .. } => rows.len() / 8,
        };
        let (mut all, mut with) = (0u32, 0u32);
        for at in (0..entries).step_by(entries.div_ceil(MAX_SAMPLED).max(1)) {
            let keeps = self
                .find_rule_within(at, budget)
                .and_then(|rule| self.keeps_frame_pointer(&rule));
            all += u32::from(keeps.is_some());
            with += u32::from(keeps == Some(true));
        }
        (all > 0).then(|| f64::from(with) / f64::from(all))
    }

    /// The rule at three quarters of a function's code, where its frame has been set up.
    fn find_rule_within(&self, at: usize, budget: &mut ParseBudget) -> Option<Rule> {
        let start = match &self.index {
            Index::Built(rows) => rows.get(at)?.0,
            Index::File { address, rows } => {
                let (rows, _) = rows.as_chunks::<8>();
                read_row_number(*address, rows.get(at)?, 0)
            }
        };
        let offset = self.find_entry(start)?;
        let section = self.section();
        let offset = gimli::EhFrameOffset(offset);
        let fde = section.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset);
        let length = fde.ok()?.len();
        self.find_rule(start.checked_add(length - length / 4)?, budget)
    }

    /// Does the frame pointer lead to the caller? `None` if the rule does not show it: in the linker's
    /// code, the program's entry function, and functions that use no stack.
    #[must_use]
    pub fn keeps_frame_pointer(&self, rule: &Rule) -> Option<bool> {
        let saved = |number| {
            let mut rules = rule.registers().iter();
            rules.any(|(r, rule)| r.0 == number && matches!(rule, RegisterRule::Offset(_)))
        };
        match (self.arch, rule.cfa()) {
            _ if rule.is_outermost() => None,
            (Arch::X86_64, CfaRule::RegisterAndOffset { register, offset }) => {
                let is_bare = *register == gimli::X86_64::RSP && *offset == 8;
                (!is_bare).then_some(*register == gimli::X86_64::RBP)
            }
            (Arch::X86_64, CfaRule::Expression(_)) => None,
            (Arch::Aarch64, _) => {
                saved(gimli::AArch64::X30.0).then(|| saved(gimli::AArch64::X29.0))
            }
        }
    }

    pub(super) fn expression(
        &self,
        expression: UnwindExpression<usize>,
    ) -> Option<Expression<Bytes<'_>>> {
        expression.get(&self.section()).ok()
    }

    fn section(&self) -> EhFrame<Bytes<'_>> {
        let mut section = EhFrame::new(&self.eh_frame, LittleEndian);
        section.set_address_size(8);
        if self.arch == Arch::Aarch64 {
            section.set_vendor(Vendor::AArch64);
        }
        section
    }

    /// The offset in `.eh_frame` of the entry for an address.
    fn find_entry(&self, address: u64) -> Option<usize> {
        match &self.index {
            Index::Built(rows) => {
                let after = rows.partition_point(|(start, _)| *start <= address);
                Some(rows.get(after.checked_sub(1)?)?.1)
            }
            Index::File {
                address: table,
                rows,
            } => {
                let (rows, _) = rows.as_chunks::<8>();
                let after = rows.partition_point(|row| read_row_number(*table, row, 0) <= address);
                let row = rows.get(after.checked_sub(1)?)?;
                let entry = read_row_number(*table, row, 4);
                usize::try_from(entry.checked_sub(self.eh_frame_address)?).ok()
            }
        }
    }

    /// Reads the address and offset of all entries, by address.
    fn read_entries(&self, budget: &mut ParseBudget) -> Option<Vec<(u64, usize)>> {
        let section = self.section();
        let mut found = Vec::new();
        let mut entries = section.entries(&self.bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                budget.spend(1)?;
                continue;
            };
            let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else {
                budget.spend(1)?;
                continue;
            };
            budget.spend(fde.cie().entry_len().saturating_add(16))?;
            if found.len() >= MAX_ENTRIES {
                return None;
            }
            found.push((fde.initial_address(), fde.offset()));
        }
        found.sort_unstable();
        Some(found)
    }
}

/// Reads a number of a row, which is relative to the table.
fn read_row_number(table: u64, row: &[u8; 8], at: usize) -> u64 {
    let mut number = [0; 4];
    number.copy_from_slice(&row[at..at + 4]);
    table.wrapping_add_signed(i32::from_le_bytes(number).into())
}

type Program = ProgramHeader64<Endianness>;
type Section = SectionHeader64<Endianness>;
const ENDIAN: Endianness = Endianness::Little;

/// The headers of a file, which lead to its tables.
struct Headers {
    arch: Arch,
    segments: Vec<Segment>,
    /// `.eh_frame_hdr`.
    index: Option<Segment>,
    header: FileHeader64<Endianness>,
}

impl Headers {
    fn read(read: Read<'_>) -> Option<Self> {
        let bytes = read(0, size_of::<FileHeader64<Endianness>>())?;
        let header = *FileHeader64::<Endianness>::parse(bytes.as_slice()).ok()?;
        if header.endian().ok()? != ENDIAN {
            return None;
        }
        let arch = match header.e_machine(ENDIAN) {
            EM_X86_64 => Arch::X86_64,
            EM_AARCH64 => Arch::Aarch64,
            _ => return None,
        };
        let count = usize::from(header.e_phnum.get(ENDIAN));
        let programs: Vec<Program> = read_headers(read, header.e_phoff(ENDIAN), count)?;
        let of_type = |kind| programs.iter().filter(move |p| p.p_type(ENDIAN) == kind);
        Some(Self {
            arch,
            segments: of_type(PT_LOAD).map(Segment::from_header).collect(),
            index: of_type(PT_GNU_EH_FRAME).map(Segment::from_header).next(),
            header,
        })
    }

    /// Uses `.eh_frame_hdr`, as the program's own unwinder does. If it has no table, one is built
    /// later.
    fn read_with_index(self, hdr: Segment, read: Read<'_>) -> Option<CallFrames> {
        /// Encodings written by all linkers: relative to the field itself, four bytes, and to the
        /// table.
        const ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let address = hdr.address;
        let header = read_bounded(read, hdr.offset, hdr.length)?;
        if header.get(..2) != ENCODINGS.get(..2) {
            return self.read_without_index(read);
        }
        let number = |at: usize| {
            let bytes = header.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let eh_frame = number(4)?.cast_signed();
        let eh_frame = address
            .checked_add(4)?
            .checked_add_signed(eh_frame.into())?;
        let has_table = header.get(2..4) == ENCODINGS.get(2..4);
        let index = if has_table {
            let bytes = usize::try_from(number(8)?).ok()?.checked_mul(8)?;
            Index::File {
                address,
                rows: header.get(12..12usize.checked_add(bytes)?)?.to_vec(),
            }
        } else {
            Index::Built(Vec::new())
        };
        // The size is not recorded: the rest of the segment is read. An entry of length 0 ends the
        // table.
        let (segment, within) = self.segments.iter().find_map(|segment| {
            let within = segment.distance(segment.address, eh_frame)?;
            Some((segment, within))
        })?;
        let bytes = read_bounded(
            read,
            segment.offset.checked_add(within)?,
            (segment.length - within).min(MAX_PART_BYTES),
        )?;
        Some(self.into_call_frames(bytes, eh_frame, address, index))
    }

    /// Finds `.eh_frame` by the names of sections.
    fn read_without_index(self, read: Read<'_>) -> Option<CallFrames> {
        let count = usize::from(self.header.e_shnum.get(ENDIAN));
        let sections: Vec<Section> = read_headers(read, self.header.e_shoff(ENDIAN), count)?;
        let names = sections.get(usize::from(self.header.e_shstrndx.get(ENDIAN).0))?;
        let length = names.sh_size(ENDIAN).min(MAX_NAMES_BYTES);
        let names = read_bounded(read, names.sh_offset(ENDIAN), length)?;
        let is_eh_frame = |section: &&Section| {
            let at = usize::try_from(section.sh_name(ENDIAN)).ok();
            let name = at.and_then(|at| names.get(at..));
            name.is_some_and(|name| name.starts_with(b".eh_frame\0"))
        };
        let section = sections.iter().find(is_eh_frame)?;
        let bytes = read_bounded(read, section.sh_offset(ENDIAN), section.sh_size(ENDIAN))?;
        let address = section.sh_addr(ENDIAN);
        Some(self.into_call_frames(bytes, address, 0, Index::Built(Vec::new())))
    }

    fn into_call_frames(
        self,
        eh_frame: Vec<u8>,
        eh_frame_address: u64,
        header_address: u64,
        index: Index,
    ) -> CallFrames {
        CallFrames {
            arch: self.arch,
            segments: self.segments,
            eh_frame,
            eh_frame_address,
            bases: BaseAddresses::default()
                .set_eh_frame(eh_frame_address)
                .set_eh_frame_hdr(header_address),
            index,
        }
    }
}

/// Reads `count` headers at an offset of the file.
fn read_headers<T: pod::Pod>(read: Read<'_>, offset: u64, count: usize) -> Option<Vec<T>> {
    if count > MAX_HEADERS {
        return None;
    }
    let bytes = read(offset, count * size_of::<T>())?;
    let (headers, _) = pod::slice_from_bytes::<T>(&bytes, count).ok()?;
    Some(headers.to_vec())
}

/// Reads `length` bytes at `offset`; `None` if that is too many.
fn read_bounded(read: Read<'_>, offset: u64, length: u64) -> Option<Vec<u8>> {
    if length > MAX_PART_BYTES {
        return None;
    }
    read(offset, usize::try_from(length).ok()?)
}
