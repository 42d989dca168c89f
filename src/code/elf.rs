//! ELF files as code: executable sections with their addresses, the functions
//! in them, and whose code it is.
//!
//! A file's own figures are not trusted: a section is a slice of the bytes at
//! hand, or an error; nothing is allocated by a length that a file states. Debug
//! information is not read.

use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, SHF_EXECINSTR, SHT_NOBITS};
use object::read::elf::{ElfFile64, FileHeader, Sym};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};

use super::{Arch, Code};

/// Functions that are kept at most.
const MOST_FUNCTIONS: usize = 4_000_000;

/// Why a file's code cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ElfError {
    /// It does not begin as an ELF file does.
    #[error("not an ELF file")]
    NotElf,
    /// It is empty.
    #[error("the file is empty")]
    Empty,
    /// ELF, but not of 64 bits.
    #[error("an ELF file of 32 bits; pinwise decodes x86-64 and arm64")]
    OtherWidth,
    /// ELF, but of another architecture.
    #[error("an ELF file for {0}; pinwise decodes x86-64 and arm64")]
    OtherArchitecture(String),
    /// Its tables lead out of the file or contradict each other.
    #[error("the ELF file is truncated or damaged: {0}")]
    Damaged(String),
    /// No section with instructions.
    #[error("the ELF file has no code")]
    NoCode,
}

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Address of its first instruction.
    pub start: u64,
    /// Bytes; 0 where the file does not say.
    pub size: u64,
    /// Its name, as the file has it.
    pub name: String,
}

/// A file's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// How it is decoded.
    pub arch: Arch,
    /// Executable sections by address.
    pub sections: Vec<Code>,
    /// Functions by address, one for each address.
    pub functions: Vec<Function>,
    /// The build id in hexadecimal digits, where there is one.
    pub build_id: Option<String>,
}

impl Binary {
    /// The function that holds an address.
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

    /// The section that holds an address.
    #[must_use]
    pub fn code_at(&self, address: u64) -> Option<&Code> {
        self.sections.iter().find(|code| code.holds(address))
    }
}

/// Reads a file's code.
///
/// # Errors
/// [`ElfError`] where the bytes are no ELF file that can be decoded.
pub fn read(bytes: &[u8]) -> Result<Binary, ElfError> {
    let arch = architecture(bytes)?;
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(|error| damaged(&error))?;
    let sections = sections(&file, arch)?;
    if sections.is_empty() {
        return Err(ElfError::NoCode);
    }
    Ok(Binary {
        arch,
        functions: functions(&file),
        build_id: file.build_id().ok().flatten().map(hexadecimal),
        sections,
    })
}

fn damaged(error: &object::read::Error) -> ElfError {
    ElfError::Damaged(error.to_string())
}

/// Whose code it is, from the head of the file.
fn architecture(bytes: &[u8]) -> Result<Arch, ElfError> {
    if bytes.is_empty() {
        return Err(ElfError::Empty);
    }
    if !bytes.starts_with(&object::elf::ELFMAG) {
        return Err(ElfError::NotElf);
    }
    match bytes.get(4) {
        Some(&class) if class == object::elf::ELFCLASS32.0 => return Err(ElfError::OtherWidth),
        Some(_) => {}
        None => return Err(ElfError::Damaged("its head is cut off".to_owned())),
    }
    let head = FileHeader64::<Endianness>::parse(bytes).map_err(|error| damaged(&error))?;
    let endian = head.endian().map_err(|error| damaged(&error))?;
    let machine = head.e_machine(endian);
    match machine {
        EM_X86_64 => Ok(Arch::X86_64),
        EM_AARCH64 if endian == Endianness::Little => Ok(Arch::Aarch64),
        _ => Err(ElfError::OtherArchitecture(named(machine.0))),
    }
}

/// Names of architectures by their number in ELF.
fn named(machine: u16) -> String {
    let name = match machine {
        3 => "x86 of 32 bits",
        8 => "MIPS",
        20 | 21 => "POWER",
        22 => "S/390",
        40 => "arm of 32 bits",
        183 => "arm64 with its bytes the other way round",
        243 => "RISC-V",
        247 => "BPF",
        258 => "LoongArch",
        _ => return format!("architecture {machine}"),
    };
    name.to_owned()
}

fn sections(file: &ElfFile64<'_, Endianness>, arch: Arch) -> Result<Vec<Code>, ElfError> {
    let mut found = Vec::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, sh_type } = section.flags() else {
            continue;
        };
        let is_code = sh_flags.0 & SHF_EXECINSTR.0 != 0 && sh_type != SHT_NOBITS;
        if is_code {
            let bytes = section.data().map_err(|error| damaged(&error))?;
            found.push(Code {
                arch,
                start: section.address(),
                bytes: bytes.to_vec(),
            });
        }
    }
    found.sort_by_key(|code| code.start);
    Ok(found)
}

/// Functions of both symbol tables.
fn functions(file: &ElfFile64<'_, Endianness>) -> Vec<Function> {
    let endian = file.endian();
    let all = file.symbols().chain(file.dynamic_symbols());
    let mut found: Vec<Function> = all
        .filter(|symbol| symbol.kind() == SymbolKind::Text && !symbol.is_undefined())
        .filter_map(|symbol| {
            Some(Function {
                start: symbol.address(),
                size: symbol.elf_symbol().st_size(endian),
                name: symbol
                    .name()
                    .ok()
                    .filter(|name| !name.is_empty())?
                    .to_owned(),
            })
        })
        .take(MOST_FUNCTIONS)
        .collect();
    found.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| b.size.cmp(&a.size)));
    found.dedup_by_key(|function| function.start);
    found
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
