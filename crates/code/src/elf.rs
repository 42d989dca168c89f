//! Reads the code of ELF files: executable sections with their addresses, and functions with names.
//!
//! Sizes and offsets in a file are not trusted: a section is a slice of the given bytes, or an
//! error, and nothing is allocated by a length in the file. Debug information is not read.

use std::collections::HashMap;

use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, SHF_EXECINSTR, SHT_NOBITS};
use object::read::elf::{ElfFile64, FileHeader, Sym};
use object::{
    Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind,
};

use super::{Arch, Code};

type Elf<'data> = ElfFile64<'data, Endianness>;

/// Limits the functions that are kept.
const MAX_FUNCTIONS: usize = 4_000_000;
/// Limits the bytes of names, as a multiple of the file's size. Names may overlap, and both symbol
/// tables may have the same ones, so the names of a real file may exceed its size a little.
const MAX_NAME_BYTES_PER_BYTE: usize = 4;

/// Why a file's code cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ElfError {
    /// It does not begin with the magic number of ELF.
    #[error("not an ELF file")]
    NotElf,
    /// It is empty.
    #[error("the file is empty")]
    Empty,
    /// ELF, but not 64-bit.
    #[error("a 32-bit ELF file; pinwise decodes x86-64 and arm64")]
    OtherWidth,
    /// ELF, but for another architecture.
    #[error("an ELF file for {0}; pinwise decodes x86-64 and arm64")]
    OtherArchitecture(String),
    /// Its tables point outside the file or contradict each other.
    #[error("the ELF file is truncated or damaged: {0}")]
    Damaged(String),
    /// Sections or names overlap so much that together they would take far more memory than the
    /// file has bytes.
    #[error("the ELF file declares more {0} than it has bytes")]
    Repeated(&'static str),
    /// No section with instructions.
    #[error("the ELF file has no code")]
    NoCode,
}

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Address of its first instruction.
    pub start: u64,
    /// Bytes; 0 if the file does not say.
    pub size: u64,
    /// Its name in the file.
    pub name: String,
}

/// A file's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// Its architecture.
    pub arch: Arch,
    /// Executable sections by address.
    pub sections: Vec<Code>,
    /// Functions by address, one for each address.
    pub functions: Vec<Function>,
    /// The build id in hexadecimal digits, if there is one.
    pub build_id: Option<String>,
}

impl Binary {
    /// The function that contains an address.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        let after = self.functions.partition_point(|one| one.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        let is_within = function.size == 0 || address - function.start < function.size;
        is_within.then_some(function)
    }

    /// The function of that name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|one| one.name == name)
    }

    /// The section that contains an address.
    #[must_use]
    pub fn code_at(&self, address: u64) -> Option<&Code> {
        self.sections.iter().find(|code| code.holds(address))
    }
}

/// Reads a file's code.
///
/// # Errors
/// [`ElfError`] if the bytes are not a decodable ELF file.
pub fn read(bytes: &[u8]) -> Result<Binary, ElfError> {
    let arch = read_architecture(bytes)?;
    let file = Elf::parse(bytes).map_err(|error| to_damaged(&error))?;
    let (sections, layout) = read_sections(&file, arch)?;
    if sections.is_empty() {
        return Err(ElfError::NoCode);
    }
    Ok(Binary {
        arch,
        functions: read_functions(&file, &layout)?,
        build_id: file.build_id().ok().flatten().map(to_hexadecimal),
        sections,
    })
}

fn to_damaged(error: &object::read::Error) -> ElfError {
    ElfError::Damaged(error.to_string())
}

/// Reads the architecture from the file's header.
fn read_architecture(bytes: &[u8]) -> Result<Arch, ElfError> {
    if bytes.is_empty() {
        return Err(ElfError::Empty);
    }
    if !bytes.starts_with(&object::elf::ELFMAG) {
        return Err(ElfError::NotElf);
    }
    match bytes.get(4) {
        Some(&class) if class == object::elf::ELFCLASS32.0 => return Err(ElfError::OtherWidth),
        Some(_) => {}
        None => return Err(ElfError::Damaged("its header is cut off".to_owned())),
    }
    let header = FileHeader64::<Endianness>::parse(bytes).map_err(|error| to_damaged(&error))?;
    let endian = header.endian().map_err(|error| to_damaged(&error))?;
    let machine = header.e_machine(endian);
    match machine {
        EM_X86_64 => Ok(Arch::X86_64),
        EM_AARCH64 if endian == Endianness::Little => Ok(Arch::Aarch64),
        _ => Err(ElfError::OtherArchitecture(name_machine(machine.0))),
    }
}

/// Names an architecture by its number in ELF.
fn name_machine(machine: u16) -> String {
    let name = match machine {
        3 => "32-bit x86",
        8 => "MIPS",
        20 | 21 => "POWER",
        22 => "S/390",
        40 => "32-bit arm",
        183 => "big-endian arm64",
        243 => "RISC-V",
        247 => "BPF",
        258 => "LoongArch",
        _ => return format!("architecture {machine}"),
    };
    name.to_owned()
}

/// Gives sections their addresses: those in the file or, in object files, where all sections begin at
/// 0, consecutive ones.
struct Layout {
    is_object: bool,
    /// Start of each section by its index, for object files.
    starts: HashMap<usize, u64>,
    next: u64,
}

impl Layout {
    fn place(&mut self, index: usize, address: u64, size: u64) -> u64 {
        if !self.is_object {
            return address;
        }
        let start = self.next;
        self.starts.insert(index, start);
        // The gap keeps code that runs off the end from reaching the next section.
        self.next = start.saturating_add(size).saturating_add(0x1_0000) & !0xfff;
        start
    }

    /// Converts an address in the file; `None` if its section was not placed.
    fn place_address(&self, index: Option<usize>, address: u64) -> Option<u64> {
        if !self.is_object {
            return Some(address);
        }
        let start = self.starts.get(&index?)?;
        Some(start.saturating_add(address))
    }
}

fn read_sections(file: &Elf<'_>, arch: Arch) -> Result<(Vec<Code>, Layout), ElfError> {
    let mut layout = Layout {
        is_object: file.kind() == ObjectKind::Relocatable,
        starts: HashMap::new(),
        next: 0,
    };
    let mut found = Vec::new();
    let mut bytes_left = file.data().len();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, sh_type } = section.flags() else {
            continue;
        };
        let is_code = sh_flags.0 & SHF_EXECINSTR.0 != 0 && sh_type != SHT_NOBITS;
        if is_code {
            let bytes = section.data().map_err(|error| to_damaged(&error))?;
            bytes_left = bytes_left
                .checked_sub(bytes.len())
                .ok_or(ElfError::Repeated("code"))?;
            let size = bytes.len() as u64;
            found.push(Code {
                arch,
                start: layout.place(section.index().0, section.address(), size),
                bytes: bytes.to_vec(),
            });
        }
    }
    found.sort_by_key(|code| code.start);
    Ok((found, layout))
}

/// Reads the functions of both symbol tables.
fn read_functions(file: &Elf<'_>, layout: &Layout) -> Result<Vec<Function>, ElfError> {
    let endian = file.endian();
    let all = file.symbols().chain(file.dynamic_symbols());
    let mut bytes_left = MAX_NAME_BYTES_PER_BYTE * file.data().len();
    let mut found: Vec<Function> = all
        .filter(|symbol| symbol.kind() == SymbolKind::Text && !symbol.is_undefined())
        .filter_map(|symbol| {
            let section = symbol.section_index().map(|index| index.0);
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            let start = layout.place_address(section, symbol.address())?;
            Some((start, symbol.elf_symbol().st_size(endian), name))
        })
        .take(MAX_FUNCTIONS)
        .map(|(start, size, name)| {
            bytes_left = bytes_left
                .checked_sub(name.len())
                .ok_or(ElfError::Repeated("names"))?;
            let name = name.to_owned();
            Ok(Function { start, size, name })
        })
        .collect::<Result<_, ElfError>>()?;
    found.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| b.size.cmp(&a.size)));
    found.dedup_by_key(|function| function.start);
    Ok(found)
}

fn to_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ElfError, read};

    /// The header of a 64-bit ELF file without sections.
    fn elf_header(class: u8, machine: u16) -> Vec<u8> {
        let mut head = vec![0x7f, b'E', b'L', b'F', class, 1, 1, 0];
        head.resize(16, 0);
        head.extend(2u16.to_le_bytes());
        head.extend(machine.to_le_bytes());
        head.extend(1u32.to_le_bytes());
        head.resize(52, 0);
        head.extend(64u16.to_le_bytes());
        head.resize(64, 0);
        head
    }

    #[test]
    fn undecodable_files_are_reported() {
        let cases = [
            (Vec::new(), "the file is empty"),
            (b"#!/bin/sh\n".to_vec(), "not an ELF file"),
            (b"\x7fELF".to_vec(), "truncated or damaged"),
            (elf_header(1, 3), "a 32-bit ELF file"),
            (elf_header(2, 243), "an ELF file for RISC-V"),
            (elf_header(2, 62)[..40].to_vec(), "truncated or damaged"),
            (elf_header(2, 62), "no code"),
        ];
        for (bytes, words) in cases {
            let error = read(&bytes).unwrap_err().to_string();
            assert!(error.contains(words), "{error} for {words}");
        }
        assert_eq!(read(&elf_header(2, 183)), Err(ElfError::NoCode));
    }

    /// A short file may claim any amount of code by naming the same bytes repeatedly.
    #[test]
    fn sections_that_share_their_bytes_are_refused() {
        let mut bytes = elf_header(2, 62);
        let (sections, code) = (200usize, 1usize << 16);
        bytes[40..48].copy_from_slice(&64u64.to_le_bytes());
        bytes[58..60].copy_from_slice(&64u16.to_le_bytes());
        bytes[60..62].copy_from_slice(&u16::try_from(sections).unwrap().to_le_bytes());
        // The second section has the names.
        bytes[62] = 1;
        let at = (64 + 64 * sections) as u64;
        for index in 0..sections {
            let mut section = [0u8; 64];
            if index > 0 {
                let kind = if index == 1 { 3u32 } else { 1 };
                section[4..8].copy_from_slice(&kind.to_le_bytes());
                section[8..16].copy_from_slice(&6u64.to_le_bytes());
                section[24..32].copy_from_slice(&at.to_le_bytes());
                section[32..40].copy_from_slice(&(code as u64).to_le_bytes());
            }
            bytes.extend(section);
        }
        bytes.resize(bytes.len() + code, 0x90);
        assert_eq!(read(&bytes), Err(ElfError::Repeated("code")));
    }

    proptest! {
        /// A file with one executable section, damaged anywhere.
        #[test]
        fn damaged_files_are_errors_or_code(
            damage in proptest::collection::vec((0usize..512, any::<u8>()), 0..8),
            length in 0usize..2048,
        ) {
            let mut bytes = elf_header(2, 62);
            bytes.resize(2048, 0x90);
            // Three sections: none, an executable one, and names.
            let figures = [
                (40, 128), (58, 64), (60, 3), (62, 2),
                (192 + 4, 1), (192 + 8, 6), (192 + 25, 2), (192 + 32, 16),
                (256 + 4, 3), (256 + 24, 9), (256 + 32, 1),
            ];
            bytes[128..320].fill(0);
            for (at, value) in figures {
                bytes[at] = value;
            }
            let code: Vec<usize> = read(&bytes)
                .unwrap()
                .sections
                .iter()
                .map(|code| code.bytes.len())
                .collect();
            prop_assert_eq!(code, [16]);
            for (at, value) in damage {
                bytes[at] = value;
            }
            bytes.truncate(length);
            if let Ok(binary) = read(&bytes) {
                let held: usize = binary.sections.iter().map(|code| code.bytes.len()).sum();
                prop_assert!(held <= bytes.len() * binary.sections.len());
            }
        }
    }
}
