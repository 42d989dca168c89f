//! Call-frame information of one file: found by its program or section headers, looked up by
//! address, executed up to the row of an instruction.
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

/// Limits the bytes read of a part of a file: its call-frame tables, and names of sections.
const MAX_PART_BYTES: u64 = 64 << 20;
const LONGEST_NAMES: u64 = 1 << 16;
/// Limits the program and section headers.
const MAX_HEADERS: usize = 4096;
/// Limits the entries of an index made here.
const MAX_ENTRIES: usize = 4_000_000;
/// Functions inspected for frame pointers.
const MAX_SAMPLED: usize = 500;
/// Longer entries are not used, bytes: real ones have a few hundred.
const LONGEST_ENTRY: usize = 64 << 10;

/// Reads this many bytes of a file at an offset; `None` if they do not exist.
pub type Read<'a> = &'a mut dyn FnMut(u64, usize) -> Option<Vec<u8>>;

/// Bytes of entries that may still be parsed. A malicious file's tables could take for ever.
#[derive(Debug)]
pub struct ParseBudget {
    left: usize,
    context: Box<UnwindContext<usize>>,
}

impl ParseBudget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            left: bytes,
            context: Box::default(),
        }
    }

    /// `None` if nothing is left.
    fn spend(&mut self, bytes: usize) -> Option<()> {
        self.left = self.left.saturating_sub(bytes.max(1));
        (self.left > 0).then_some(())
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

/// The places of entries, by the address of their function.
#[derive(Debug)]
enum Index {
    /// The file's own (`.eh_frame_hdr`): pairs of numbers relative to the table's address.
    File { address: u64, rows: Vec<u8> },
    /// Made here: addresses and offsets.
    Made(Vec<(u64, usize)>),
}

/// A file's call-frame information.
#[derive(Debug)]
pub struct CallFrames {
    arch: Arch,
    /// Offset in the file, length there, and address of each loaded segment.
    segments: Vec<(u64, u64, u64)>,
    eh_frame: Vec<u8>,
    eh_frame_address: u64,
    bases: BaseAddresses,
    index: Index,
}

impl CallFrames {
    /// Reads the call frames of an ELF file; `None` if it has none, or is damaged.
    #[must_use]
    pub fn read(read: Read<'_>, work: &mut ParseBudget) -> Option<Self> {
        let headers = Headers::read(read)?;
        let mut found = match headers.index {
            Some(index) => headers.read_with_index(index, read)?,
            None => headers.read_without_index(read)?,
        };
        if let Index::Made(_) = found.index {
            found.index = Index::Made(found.entries(work)?);
        }
        Some(found)
    }

    /// Bytes kept of the file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.eh_frame.len()
            + match &self.index {
                Index::File { rows, .. } => rows.len(),
                Index::Made(rows) => rows.len() * 16,
            }
    }

    /// The table address of an offset in the file.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let (start, _, address) = self.segments.iter().find(|(start, length, _)| {
            offset
                .checked_sub(*start)
                .is_some_and(|within| within < *length)
        })?;
        (offset - start).checked_add(*address)
    }

    /// The rule for an address of the tables.
    #[must_use]
    pub fn rule(&self, address: u64, work: &mut ParseBudget) -> Option<Rule> {
        let section = self.section();
        let offset = self.entry_of(address)?;
        work.spend(1)?;
        let fde = section.fde_from_offset(
            &self.bases,
            gimli::EhFrameOffset(offset),
            EhFrame::cie_from_offset,
        );
        let fde = fde.ok()?;
        let bytes = fde.entry_len().max(fde.cie().entry_len());
        work.spend(bytes)?;
        if bytes > LONGEST_ENTRY {
            return None;
        }
        let row = fde.unwind_info_for_address(&section, &self.bases, &mut work.context, address);
        let row = row.ok()?;
        Some(Rule {
            cfa: row.cfa().clone(),
            registers: row.registers().cloned().collect(),
            return_register: fde.cie().return_address_register(),
            encoding: fde.cie().encoding(),
            is_signal: fde.is_signal_trampoline(),
        })
    }

    /// The share of functions that keep a frame pointer, from a sample of `MAX_SAMPLED`; `None` if
    /// there are none.
    #[must_use]
    pub fn share_with_frame_pointer(&self, work: &mut ParseBudget) -> Option<f64> {
        let many = match &self.index {
            Index::Made(rows) => rows.len(),
            Index::File { rows, .. } => rows.len() / 8,
        };
        let (mut all, mut with) = (0u32, 0u32);
        for at in (0..many).step_by(many.div_ceil(MAX_SAMPLED).max(1)) {
            let keeps = self
                .rule_within(at, work)
                .and_then(|rule| self.keeps_frame_pointer(&rule));
            all += u32::from(keeps.is_some());
            with += u32::from(keeps == Some(true));
        }
        (all > 0).then(|| f64::from(with) / f64::from(all))
    }

    /// The rule far inside an entry, after functions have set up their frame.
    fn rule_within(&self, at: usize, work: &mut ParseBudget) -> Option<Rule> {
        let start = match &self.index {
            Index::Made(rows) => rows.get(at)?.0,
            Index::File { address, rows } => {
                let (rows, _) = rows.as_chunks::<8>();
                from_table(*address, rows.get(at)?, 0)
            }
        };
        let offset = self.entry_of(start)?;
        let section = self.section();
        let offset = gimli::EhFrameOffset(offset);
        let fde = section.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset);
        let length = fde.ok()?.len();
        self.rule(start.checked_add(length - length / 4)?, work)
    }

    /// Does the frame pointer lead from here to the caller? `None` if the rule does not say: in the
    /// linker's code, the program's entry function, and functions that use no stack.
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

    /// The place of the last entry that begins at or before an address.
    fn entry_of(&self, address: u64) -> Option<usize> {
        match &self.index {
            Index::Made(rows) => {
                let after = rows.partition_point(|(start, _)| *start <= address);
                Some(rows.get(after.checked_sub(1)?)?.1)
            }
            Index::File {
                address: table,
                rows,
            } => {
                let (rows, _) = rows.as_chunks::<8>();
                let after = rows.partition_point(|row| from_table(*table, row, 0) <= address);
                let row = rows.get(after.checked_sub(1)?)?;
                let entry = from_table(*table, row, 4);
                usize::try_from(entry.checked_sub(self.eh_frame_address)?).ok()
            }
        }
    }

    /// Reads all entries.
    fn entries(&self, work: &mut ParseBudget) -> Option<Vec<(u64, usize)>> {
        let section = self.section();
        let mut found = Vec::new();
        let mut entries = section.entries(&self.bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                work.spend(1)?;
                continue;
            };
            let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else {
                work.spend(1)?;
                continue;
            };
            work.spend(fde.cie().entry_len().saturating_add(16))?;
            if found.len() >= MAX_ENTRIES {
                return None;
            }
            found.push((fde.initial_address(), fde.offset()));
        }
        found.sort_unstable();
        Some(found)
    }
}

/// A number of a row, which is relative to the table.
fn from_table(table: u64, row: &[u8; 8], at: usize) -> u64 {
    let mut number = [0; 4];
    number.copy_from_slice(&row[at..at + 4]);
    table.wrapping_add_signed(i32::from_le_bytes(number).into())
}

type Program = ProgramHeader64<Endianness>;
type Section = SectionHeader64<Endianness>;
const ENDIAN: Endianness = Endianness::Little;

/// The places of the tables.
struct Headers {
    arch: Arch,
    segments: Vec<(u64, u64, u64)>,
    /// Offset, bytes and address of `.eh_frame_hdr`.
    index: Option<(u64, u64, u64)>,
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
        let place = |p: &Program| (p.p_offset(ENDIAN), p.p_filesz(ENDIAN), p.p_vaddr(ENDIAN));
        Some(Self {
            arch,
            segments: of_type(PT_LOAD).map(place).collect(),
            index: of_type(PT_GNU_EH_FRAME).map(place).next(),
            header,
        })
    }

    /// Uses `.eh_frame_hdr`, like the program's own unwinder; without a table there, one is made.
    fn read_with_index(self, place: (u64, u64, u64), read: Read<'_>) -> Option<CallFrames> {
        /// Encodings written by all linkers: relative to the field itself, four bytes, and to the
        /// table.
        const ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let (offset, length, address) = place;
        let header = read_bounded(read, offset, length)?;
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
            Index::Made(Vec::new())
        };
        // To the end of the loaded segment: an entry of length 0 ends it.
        let segment = self.segments.iter().find(|(_, length, start)| {
            eh_frame
                .checked_sub(*start)
                .is_some_and(|within| within < *length)
        });
        let (offset, length, start) = *segment?;
        let within = eh_frame - start;
        let bytes = read_bounded(
            read,
            offset.checked_add(within)?,
            (length - within).min(MAX_PART_BYTES),
        )?;
        Some(self.into_call_frames(bytes, eh_frame, address, index))
    }

    /// Uses the section's name.
    fn read_without_index(self, read: Read<'_>) -> Option<CallFrames> {
        let count = usize::from(self.header.e_shnum.get(ENDIAN));
        let sections: Vec<Section> = read_headers(read, self.header.e_shoff(ENDIAN), count)?;
        let names = sections.get(usize::from(self.header.e_shstrndx.get(ENDIAN).0))?;
        let names = names.sh_size(ENDIAN).min(LONGEST_NAMES);
        let at = sections
            .get(usize::from(self.header.e_shstrndx.get(ENDIAN).0))?
            .sh_offset(ENDIAN);
        let names = read_bounded(read, at, names)?;
        let is_eh_frame = |section: &&Section| {
            let at = usize::try_from(section.sh_name(ENDIAN)).ok();
            let name = at.and_then(|at| names.get(at..));
            name.is_some_and(|name| name.starts_with(b".eh_frame\0"))
        };
        let section = sections.iter().find(is_eh_frame)?;
        let bytes = read_bounded(read, section.sh_offset(ENDIAN), section.sh_size(ENDIAN))?;
        let address = section.sh_addr(ENDIAN);
        Some(self.into_call_frames(bytes, address, 0, Index::Made(Vec::new())))
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

/// Reads `length` bytes at `offset`, up to a limit.
fn read_bounded(read: Read<'_>, offset: u64, length: u64) -> Option<Vec<u8>> {
    if length > MAX_PART_BYTES {
        return None;
    }
    read(offset, usize::try_from(length).ok()?)
}
