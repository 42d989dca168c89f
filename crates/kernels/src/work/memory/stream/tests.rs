//! Every loop computes the same, and wrong results are found.

use super::*;

fn walk(form: Form, array_bytes: usize, loops: Vec<(Stream, Variant)>) -> Walk {
    Walk {
        memory: Memory::new(form, array_bytes).unwrap(),
        form,
        loops,
        at: 0,
    }
}

#[test]
fn every_loop_leaves_the_same_in_every_array() {
    for form in [READING, WRITING, COPYING, TRIADS, IN_L1] {
        let stream = form.streams[0];
        for variant in variants(stream) {
            let form = Form {
                unit: 7 * BLOCK,
                ..form
            };
            let mut walk = walk(form, 3 * BLOCK, vec![(stream, variant)]);
            let digests: Vec<u64> = (0..3).map(|unit| walk.run_unit(unit).unwrap()).collect();
            let on = walk.memory.at(0, 3 * BLOCK);
            for at in 0..3 * NUMBERS {
                let expected = match stream {
                    Stream::Read => number_of_b(at % NUMBERS),
                    Stream::Write => SCALAR,
                    Stream::Copy => number_of_b(at % NUMBERS),
                    Stream::Triad => number_of_b(at % NUMBERS) + 3.0 * number_of_c(at % NUMBERS),
                };
                // SAFETY: within the array.
                let found = unsafe { on.a.add(at).read() };
                assert_eq!(found.to_bits(), expected.to_bits(), "{}", variant.name);
            }
            assert!(digests[0] != digests[1] && digests[1] != digests[2]);
        }
    }
}

#[test]
fn blocks_hold_every_number_once() {
    for number in [number_of_b, number_of_c] {
        let mut seen: Vec<f64> = (0..NUMBERS).map(number).collect();
        seen.sort_by(f64::total_cmp);
        let expected: Vec<f64> = (1..=NUMBERS).map(|n| n as f64).collect();
        assert_eq!(seen, expected);
    }
}

#[test]
fn a_number_changed_in_the_array_is_found() {
    let plain = variants(Stream::Read)[0];
    let form = Form {
        unit: 6 * BLOCK,
        ..READING
    };
    let mut walk = walk(form, 3 * BLOCK, vec![(Stream::Read, plain)]);
    walk.run_unit(0).unwrap();
    let on = walk.memory.at(0, BLOCK);
    // SAFETY: within the array.
    unsafe { on.a.add(77).write(0.0) };
    assert!(walk.run_unit(1).unwrap_err().contains("sum"));
}

#[test]
fn a_wrong_result_is_detected() {
    let fill = variants(Stream::Write)[0];
    let form = Form {
        unit: 2 * BLOCK,
        ..COPYING
    };
    let mut walk = walk(form, 3 * BLOCK, vec![(Stream::Copy, fill)]);
    assert!((0..3).any(|unit| walk.run_unit(unit).is_err()));
}

#[test]
fn an_instruction_set_bounds_the_loops_tried() {
    let mut walk = walk(READING, 3 * BLOCK, Vec::new());
    for stream in [Stream::Read, Stream::Write] {
        let (_, variant) = walk.find_fastest(stream, Isa::V1).unwrap();
        assert_eq!(variant.instructions, Instructions::Baseline);
        let (_, variant) = walk.find_fastest(stream, Isa::V3).unwrap();
        assert!(variant.instructions <= Instructions::Avx);
    }
}

#[test]
fn too_little_work_per_thread_is_refused() {
    let setup = Setup {
        size: 1 << 20,
        threads: 300,
        isa: Isa::V1,
        folder: std::path::PathBuf::new(),
    };
    let error = prepare(&setup, TRIADS).err().unwrap().to_string();
    assert!(
        error.contains("--size 1048576") && error.contains("3686400"),
        "{error}"
    );
    assert!(prepare(&setup, IN_L1).is_ok());
}
