//! Names of models by the list of PCI ids (<https://pci-ids.ucw.cz>).
//!
//! ```text
//! 10de  NVIDIA Corporation
//! \t20b0  GA100 [A100 SXM4 40GB]
//! \t\t10de 144e  a board with it
//! ```
//!
//! The list is sorted by vendor and has 1.4 MB: vendors are found by binary search, and only the
//! lines below them are read.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::Device;

/// Size below which the list is read linearly, bytes.
const LINEAR_BYTES: u64 = 8 << 10;

/// Gives devices without a model the name from the list, if it has one.
pub(in super::super) fn name_models<R: Read + Seek>(
    devices: &mut [Device],
    ids: R,
) -> io::Result<()> {
    let mut by_vendor: BTreeMap<u16, Vec<(u16, &mut Device)>> = BTreeMap::new();
    for device in devices.iter_mut().filter(|device| device.model.is_none()) {
        if let (Some(vendor), Some(id)) = (device.vendor, device.device) {
            by_vendor.entry(vendor).or_default().push((id, device));
        }
    }
    let mut list = List {
        reader: BufReader::new(ids),
        line: Vec::new(),
    };
    for (vendor, mut devices) in by_vendor {
        if !list.seek_below(vendor)? {
            continue;
        }
        while list.next_line()? && !list.is_heading() {
            let Some((id, model)) = list.parse_model() else {
                continue;
            };
            for (_, device) in devices.iter_mut().filter(|(wanted, _)| *wanted == id) {
                device.model.get_or_insert_with(|| model.clone());
            }
        }
    }
    Ok(())
}

struct List<R> {
    reader: BufReader<R>,
    /// The line read last.
    line: Vec<u8>,
}

impl<R: Read + Seek> List<R> {
    /// Goes to the line after a vendor's own; false if there is none.
    fn seek_below(&mut self, vendor: u16) -> io::Result<bool> {
        let (mut low, mut high) = (0, self.reader.seek(SeekFrom::End(0))?);
        while high - low > LINEAR_BYTES {
            let middle = low + (high - low) / 2;
            match self.find_first_vendor(middle, high)? {
                // The vendor is here or further down.
                Some((start, found)) if found <= vendor => low = start,
                _ => high = middle,
            }
        }
        self.reader.seek(SeekFrom::Start(low))?;
        // From here on the first vendor, or a later one, follows.
        while self.next_line()? {
            match self.parse_vendor() {
                Some(found) if found == vendor => return Ok(true),
                Some(found) if found > vendor => break,
                _ => {}
            }
        }
        Ok(false)
    }

    /// The first vendor whose line begins after `from` and before `until`, and the start of that
    /// line.
    fn find_first_vendor(&mut self, from: u64, until: u64) -> io::Result<Option<(u64, u16)>> {
        self.reader.seek(SeekFrom::Start(from))?;
        // Skips the rest of a partial line.
        self.next_line()?;
        let mut start = from + self.line.len() as u64;
        while start < until && self.next_line()? {
            if let Some(vendor) = self.parse_vendor() {
                return Ok(Some((start, vendor)));
            }
            // Classes follow the vendors.
            if self.is_heading() {
                break;
            }
            start += self.line.len() as u64;
        }
        Ok(None)
    }

    fn next_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line)?;
        Ok(!self.line.is_empty())
    }

    /// Is it neither indented nor a comment?
    fn is_heading(&self) -> bool {
        let first = self.line.first();
        first.is_some_and(|first| !first.is_ascii_whitespace() && *first != b'#')
    }

    fn parse_vendor(&self) -> Option<u16> {
        parse_entry(&self.line).map(|(vendor, _)| vendor)
    }

    /// A model's number and name.
    fn parse_model(&self) -> Option<(u16, String)> {
        let (id, name) = parse_entry(self.line.strip_prefix(b"\t")?)?;
        let name = String::from_utf8_lossy(name.trim_ascii());
        (!name.is_empty()).then(|| (id, name.into_owned()))
    }
}

/// Parses four hexadecimal digits, two spaces and a name.
fn parse_entry(line: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, name) = line.split_at_checked(4)?;
    let name = name.strip_prefix(b"  ")?;
    let is_number = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    Some((u16::from_str_radix(digits, 16).ok()?, name))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::io::Cursor;

    use super::*;

    fn find_name(list: &str, vendor: u16, id: u16) -> Option<String> {
        let device = Device::new("0000:01:00.0", 0x0302, Some(vendor), Some(id));
        let mut devices = [device.unwrap()];
        name_models(&mut devices, Cursor::new(list)).unwrap();
        devices[0].model.clone()
    }

    #[test]
    fn models_are_listed_below_their_vendor() {
        let list = "# list\n1002  AMD\n\t20b0  Wrong\n10de  NVIDIA Corporation\n\t20af  Other\n\
                    \t20b0  GA100 [A100 SXM4 40GB]\n\t\t10de 144e  Subsystem\nffff  End\n";
        let model = find_name(list, 0x10de, 0x20b0);
        assert_eq!(model.as_deref(), Some("GA100 [A100 SXM4 40GB]"));
        assert_eq!(find_name(list, 0x10de, 0x144e), None);
        assert_eq!(find_name(list, 0x10df, 0x20b0), None);
        assert_eq!(find_name("", 0x10de, 0x20b0), None);
    }

    /// Some vendors have more lines than one read covers, most have none.
    #[test]
    fn every_vendor_of_a_long_list_is_found() {
        let mut list = String::from("# a list\n");
        let count = |vendor: u16| {
            if vendor.is_multiple_of(7) {
                usize::from(vendor)
            } else {
                0
            }
        };
        let vendors = || (0..600_u16).map(|number| number * 3);
        for vendor in vendors() {
            writeln!(list, "{vendor:04x}  Vendor").unwrap();
            for id in 0..count(vendor) {
                writeln!(list, "\t{id:04x}  {vendor} {id}\n\t\t0003 0001  Board").unwrap();
            }
        }
        list.push_str("# Classes\nC 00  Unclassified device\n\t00  Non-VGA\n");
        for vendor in vendors() {
            let last = count(vendor).checked_sub(1);
            let last = last.and_then(|last| u16::try_from(last).ok());
            let model = last.map(|last| format!("{vendor} {last}"));
            assert_eq!(find_name(&list, vendor, last.unwrap_or(0)), model);
            assert_eq!(find_name(&list, vendor + 1, 0), None);
        }
    }
}
