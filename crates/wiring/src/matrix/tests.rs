//! Matrices in the forms that tools write, and texts that are refused.

use super::*;

fn check(text: &str, expected: Result<&str, &str>) {
    let read = PairMatrix::from_csv(text);
    let read = read
        .map(|matrix| matrix.to_csv())
        .map_err(|e| e.to_string());
    match (read, expected) {
        (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{text:?}"),
        (Err(error), Err(expected)) => {
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        (read, expected) => panic!("{text:?}: {read:?} instead of {expected:?}"),
    }
}

#[test]
fn cpu_numbers_around_a_matrix_are_not_figures() {
    for from in [0, 1] {
        let text = format!(
            ",{from},{},{}\n{from},,9,26\n{},9,,26.5\n{},26,26.5,\n",
            from + 1,
            from + 2,
            from + 1,
            from + 2
        );
        let matrix = PairMatrix::from_csv(&text).unwrap();
        assert_eq!(
            (matrix.len(), matrix.at(1, 0), matrix.at(2, 1)),
            (3, 9.0, 26.5)
        );
    }
}

#[test]
fn cpu_numbers_as_pandas_writes_them_are_recognised() {
    let read = |numbers: [&str; 4], corner: &str| {
        let figures = [
            "0,26,9.5,26.5",
            "26,0,26,9.25",
            "9.5,26,0,26",
            "26.5,9.25,26,0",
        ];
        let rows = numbers.iter().zip(figures);
        let rows: String = rows.map(|(n, row)| format!("{n},{row}\n")).collect();
        let text = format!("{corner},{}\n{rows}", numbers.join(","));
        let matrix = PairMatrix::from_csv(&text).unwrap();
        assert_eq!((matrix.at(2, 0), matrix.at(3, 1)), (9.5, 9.25), "{text}");
        matrix.cpus().to_vec()
    };
    for corner in ["", "0", "Unnamed: 0", "\"\""] {
        assert_eq!(read(["0", "1", "2", "3"], corner), [0, 1, 2, 3]);
    }
    assert_eq!(read(["0.0", "1.0", "2.0", "3.0"], ""), [0, 1, 2, 3]);
    // The CPUs of a NUMA node are not numbered from 0.
    assert_eq!(read(["0", "2", "4", "6"], ""), [0, 2, 4, 6]);
    assert_eq!(read(["8", "9", "24", "25"], "0"), [8, 9, 24, 25]);
    // Figures that grow along the first row are figures.
    check(
        "0,5,6,7\n5,0,8,9\n6,8,0,4\n7,9,4,0\n",
        Ok(",,,\n5,,,\n6,8,,\n7,9,4,\n"),
    );
}

#[test]
fn zeros_fill_up_a_triangle() {
    check("0,0,0\n5,0,0\n6,7,0\n", Ok(",,\n5,,\n6,7,\n"));
    check("0,5,6\n0,0,7\n0,0,0\n", Ok(",,\n5,,\n6,7,\n"));
}

#[test]
fn zeros_are_not_measurements() {
    let read = PairMatrix::from_csv("0,0,0\n0,0,0\n0,0,0\n");
    assert_eq!(read.unwrap_err(), MatrixError::AllZero);
}

#[test]
fn squares_and_triangles_are_read() {
    let three = Ok(",,\n5,,\n6,7,\n");
    check(",,\n5,,\n6,7,\n", three);
    check("0,,\n5,0,\n6,7,0\n", three);
    check("0,5,6\n5,0,7\n6,7,0", three);
    check(",5,6\n,,7\n,,\n", three);
    check("1,9,6,\n5,1,8,\n6.5,7,1,\n", three);
    check("\n5\n6,7\n", three);
    check("5\n6,7\n", three);
    check("0\n5,0\n6,7,0\n", three);
    check("\n5,\n6,7,\n", three);
    check("\u{feff},,\r\n\"5\",,\r\n \"6\" , 7 ,\r\n\r\n", three);
    check(",\n36.6,\n", Ok(",\n36.6,\n"));
    check("5\n", Ok(",\n5,\n"));
}

#[test]
fn other_text_is_refused_with_its_place() {
    check("", Err("no figure"));
    check("\n,,\n", Err("no figure"));
    check("0\n", Err("line 1: a matrix of one CPU"));
    check("a,b\n1,2\n", Err("line 1, column 1: 'a' is not a number"));
    check(
        ",\n5 ns,\n",
        Err("line 2, column 1: '5 ns' is not a number"),
    );
    check(",\n-5,\n", Err("line 2, column 1: -5 is not a latency"));
    check(",\nNaN,\n", Err("line 2, column 1: NaN is not a latency"));
    check(",\ninf,\n", Err("line 2, column 1: inf is not a latency"));
    check(
        ",,\n5,,\n6,,\n",
        Err("line 3, column 2: the latency of CPUs 2 and 1"),
    );
    check(",,\n5,,\n6\n", Err("line 3, column 2: the row has 1 cells"));
    check(
        ",,\n5,,\n6,7,,\n",
        Err("line 3, column 4: the row has 4 cells"),
    );
    check(
        ",,,\n5,,,\n6,7,,\n",
        Err("line 3: the matrix ends after 3 rows of 4"),
    );
    check(",,\n\n5,,\n6,7,\n", Err("line 2 is empty"));
    check("1,2\n3,4\n5,6\n", Err("line 3, column 3"));
    let large = ",".repeat(PairMatrix::MAX_CPUS) + "\n";
    check(
        &large.repeat(1030),
        Err("line 1026: matrices of more than 1024"),
    );
}
