//! Formats of several kernels, and texts that are not formats.

use proptest::prelude::*;

use super::*;

/// Linux 6.18, `x86_64`.
const SWITCH_6_18: &str = "name: sched_switch
ID: 372
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: \"prev_state=%s%s\", (REC->prev_state & ((((0x00000000 | 0x00000001) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & 0xff, \"|\", { 0x00000001, \"S\" }, { 0x00000002, \"D\" }, { 0x00000004, \"T\" }, { 0x00000008, \"t\" }, { 0x00000010, \"X\" }, { 0x00000020, \"Z\" }, { 0x00000040, \"P\" }, { 0x00000080, \"I\" }) : \"R\", REC->prev_state & 0x100 ? \"+\" : \"\"
";

/// Linux 3.10: the states have other bits, written in decimal.
const SWITCH_3_10: &str = "name: sched_switch
ID: 290
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:1;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:4;\tsigned:1;
\tfield:pid_t next_pid;\toffset:52;\tsize:4;\tsigned:1;

print fmt: \"%s%s\", REC->prev_state & (1024-1) ? __print_flags(REC->prev_state & (1024-1), \"|\", { 1, \"S\"} , { 2, \"D\" }, { 4, \"T\" }, { 8, \"t\" }, { 16, \"Z\" }, { 32, \"X\" }, { 64, \"x\" }, { 128, \"W\" }) : \"R\", REC->prev_state & 1024 ? \"+\" : \"\"
";

/// Linux 6.18: the name is a location, so the fields after it moved forward.
const WAKEUP_MOVED: &str = "name: sched_wakeup
ID: 368
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;
\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:20;\tsize:4;\tsigned:1;

print fmt: \"comm=%s\", __get_str(comm)
";

#[track_caller]
fn check(text: &str, name: &str, expected: Result<(usize, usize), &str>) {
    let found = Format::parse(text).and_then(|format| format.number(name));
    let found = found.map(|field| (field.offset, field.size));
    assert_eq!(
        found.map_err(|e| e.to_string()),
        expected.map_err(str::to_owned)
    );
}

#[test]
fn offsets_of_fields_are_read_for_each_kernel() {
    check(SWITCH_6_18, "prev_state", Ok((32, 8)));
    check(SWITCH_3_10, "prev_state", Ok((32, 4)));
    check(SWITCH_6_18, "next_pid", Ok((56, 4)));
    check(SWITCH_3_10, "next_pid", Ok((52, 4)));
    check(WAKEUP_MOVED, "pid", Ok((12, 4)));
    check(WAKEUP_MOVED, "common_type", Ok((0, 2)));
}

#[test]
fn errors_name_what_is_missing() {
    let without = SWITCH_6_18.replace("next_pid", "next_tgid");
    check(
        &without,
        "next_pid",
        Err(
            "has no field 'next_pid' (it has prev_comm, prev_pid, prev_prio, prev_state, next_comm, \
             next_tgid, next_prio)",
        ),
    );
    let wide = SWITCH_6_18.replace("offset:56;\tsize:4", "offset:56;\tsize:3");
    let error = "has field 'next_pid' of 3 bytes, which is not a number";
    check(&wide, "next_pid", Err(error));
    let nowhere = SWITCH_6_18.replace("offset:56", "offset:-1");
    let error = "has field 'next_pid' without offset: or size:";
    check(&nowhere, "next_pid", Err(error));
    check(
        WAKEUP_MOVED,
        "comm",
        Err("has field 'comm' of 4 bytes, which is not a number"),
    );
    check("", "pid", Err("has no name"));
    check("name: x\nID: x\n", "pid", Err("has no numeric ID"));
    assert_eq!(Format::parse(WAKEUP_MOVED).unwrap().states, None);
}

#[test]
fn states_are_read_from_the_description() {
    let states = |text| {
        let states = Format::parse(text).unwrap().states.unwrap();
        (states.not_runnable, states.ended)
    };
    assert_eq!(states(SWITCH_6_18), (0xff, 0x30));
    assert_eq!(states(SWITCH_3_10), (0xff, 0x70));
}

#[test]
fn numbers_are_read_with_their_sign() {
    let read = |size, is_signed, raw: &[u8]| {
        let field = Field {
            offset: 1,
            size,
            is_signed,
            location: Location::Inline,
        };
        field.number(raw, false)
    };
    let bytes = [9, 0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    assert_eq!(read(4, true, &bytes), Some(-2));
    assert_eq!(read(4, false, &bytes), Some(0xffff_fffe));
    assert_eq!(read(8, true, &bytes), Some(0xffff_fffe));
    assert_eq!(read(1, true, &bytes), Some(-2));
    assert_eq!(read(8, true, &bytes[..8]), None);
    assert_eq!(read(4, true, &[]), None);
    let thread = Field {
        offset: 0,
        size: 4,
        is_signed: false,
        location: Location::Inline,
    };
    assert_eq!(thread.small(&[0xff, 0xff, 0xff, 0xf9], true), Some(-7));
}

#[test]
fn names_are_read_at_the_offsets_in_the_record() {
    let format = Format::parse(WAKEUP_MOVED).unwrap();
    let mut raw = vec![0; 16];
    raw[8..12].copy_from_slice(&((5u32 << 16) | 16).to_le_bytes());
    raw[12..16].copy_from_slice(&(-7i32).to_le_bytes());
    raw.extend(b"a=\x1b\n\0");
    let comm = format.field("comm").unwrap();
    assert_eq!(comm.text(&raw, false), Some(&b"a=\x1b\n\0"[..]));
    assert_eq!(format.number("pid").unwrap().small(&raw, false), Some(-7));
    raw.truncate(18);
    assert_eq!(comm.text(&raw, false), None);
    assert_eq!(comm.text(&raw[..10], false), None);
}

#[test]
fn only_complete_fields_are_read() {
    let check = |line: &str, name: &str, at: Option<(usize, usize)>| {
        let read = DeclaredField::parse(line);
        let place = read.field.map(|field| (field.offset, field.size));
        assert_eq!((read.name.as_str(), place), (name, at));
    };
    let long = "char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;";
    check(long, "prev_comm", Some((8, 16)));
    check("const char *name; size:8; offset:2;", "name", Some((2, 8)));
    check("int x; offset:-1; size:4;", "x", None);
    check("", "", None);
}

#[test]
fn leave_reasons_depend_on_the_recording_kernel() {
    let parse_states = |text| Format::parse(text).unwrap().states;
    let (modern, old) = (parse_states(SWITCH_6_18), parse_states(SWITCH_3_10));
    assert_eq!(modern, Some(States::USUAL));
    for (states, state, left) in [
        (modern, 0, LeaveReason::Preempted),
        (modern, 0x100, LeaveReason::Preempted),
        (modern, 0x1, LeaveReason::Blocked),
        (modern, 0x80, LeaveReason::Blocked),
        (modern, 0x20, LeaveReason::Ended),
        (old, 0x400, LeaveReason::Preempted),
        (old, 0x80, LeaveReason::Blocked),
        (old, 0x40, LeaveReason::Ended),
    ] {
        assert_eq!(states.unwrap().find_leave_reason(state), left, "{state:#x}");
    }
}

#[test]
fn states_without_a_pair_are_ignored() {
    let without_state = "\"%s\", { x, \"S\" }, { 1, S }, { 2, \"D\"";
    assert_eq!(States::parse(without_state), None);
    let some = States::parse("{ 0x1, \"S\" }, { 16, \"X\" }, { 0x40, \"R\" }").unwrap();
    assert_eq!((some.not_runnable, some.ended), (0x11, 0x10));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        text in "(ID: ?[0-9]{0,6}\n|field:(__data_loc )?\\PC{0,9};offset:[0-9]{1,20};size:[0-9]{1,3};\n|print fmt: (\\{ ?(0x)?[0-9]{0,20}, \"[A-Z]?\" ?\\}?,? ?){0,3}\n|\\PC{0,20}\n){0,6}",
        raw in prop::collection::vec(any::<u8>(), 0..40),
        is_big_endian: bool,
    ) {
        if let Ok(format) = Format::parse(&format!("name: x\n{text}")) {
            for field in format.fields.iter().filter_map(|declared| declared.field) {
                let number = field.number(&raw, is_big_endian);
                prop_assert!(number.is_none() || field.offset < raw.len());
                let _ = field.text(&raw, is_big_endian);
            }
        }
    }
}
