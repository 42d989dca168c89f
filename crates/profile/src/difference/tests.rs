use super::*;
use crate::examples::Scene;
use crate::{Bounds, Profile};
use proptest::prelude::*;

fn make_profile(scene: Scene) -> Profile {
    Profile::from_samples(&[scene.samples], &Bounds::default())
}

fn new_side(profile: &Profile, units: f64) -> Side<'_> {
    Side {
        profile,
        units,
        program: "prog",
        pause_ns: None,
    }
}

fn find_change<'a>(difference: &'a Difference, name: &str) -> &'a FunctionChange {
    let mut functions = difference.functions.iter();
    functions.find(|c| c.function.name == name).unwrap()
}

#[test]
fn twice_the_work_in_twice_the_time_is_not_a_change() {
    let before = make_profile(Scene::new("/a/prog").stack(&["main", "f"], 400));
    let after = make_profile(Scene::new("/b/prog").stack(&["main", "f"], 800));
    let found = Difference::between(new_side(&before, 10.0), new_side(&after, 20.0));
    assert_eq!(found.functions.len(), 2, "{:?}", found.functions);
    assert!(found.total.delta_s().abs() < 1e-12 && found.total.is_noise());
    let per_run = Difference::between(new_side(&before, 1.0), new_side(&after, 1.0));
    assert!((find_change(&per_run, "f").own.delta_s() - 0.4).abs() < 1e-12);
    assert!(!find_change(&per_run, "f").own.is_noise());
}

#[test]
fn the_largest_change_comes_first_and_few_samples_are_noise() {
    let before = make_profile(
        Scene::new("/a/prog")
            .stack(&["main", "gone"], 500)
            .stack(&["main", "same"], 1000)
            .stack(&["main", "rare"], 2),
    );
    let after = make_profile(
        Scene::new("/a/prog")
            .stack(&["main", "came"], 900)
            .stack(&["main", "same"], 1010),
    );
    let found = Difference::between(new_side(&before, 1.0), new_side(&after, 1.0));
    let names: Vec<&str> = found
        .functions
        .iter()
        .map(|change| change.function.name.as_str())
        .collect();
    assert_eq!(names, ["came", "gone", "same", "rare", "main"]);
    assert!(find_change(&found, "same").own.is_noise());
    assert!(find_change(&found, "rare").own.is_noise());
    assert!(!find_change(&found, "gone").own.is_noise());
    assert_eq!(find_change(&found, "came").own.before, Amount::default());
    // √(1000 + 1010) samples of a millisecond.
    let error = find_change(&found, "same").own.error_s;
    assert!((error - 0.044_833).abs() < 1e-4, "{error}");
}

#[test]
fn builds_and_versions_of_a_program_are_the_same() {
    let mut before = Scene::new("/a/prog-1").stack(&["main"], 10);
    let mut after = Scene::new("/a/prog-2").stack(&["main"], 30);
    for (scene, version) in [(&mut before, "1"), (&mut after, "2")] {
        let module = crate::Module {
            path: format!("/usr/lib/libx.so.{version}"),
        };
        scene.samples.modules.push(module);
    }
    let mut before = before.stack(&["in_lib"], 10);
    let mut after = after.stack(&["in_lib"], 10);
    for scene in [&mut before, &mut after] {
        scene.samples.frames[1].module = Some(2);
    }
    let (before, after) = (make_profile(before), make_profile(after));
    let side_with = |profile, program| Side {
        program,
        ..new_side(profile, 1.0)
    };
    let found = Difference::between(
        side_with(&before, "./prog-1"),
        side_with(&after, "./prog-2"),
    );
    assert_eq!(found.functions.len(), 2, "{:?}", found.functions);
    assert_eq!(found.nodes.len(), 2);
    // If the program's name is unknown, the names of its functions decide.
    let found = Difference::between(side_with(&before, "sh"), side_with(&after, "sh"));
    assert_eq!(found.functions.len(), 2, "{:?}", found.functions);
}

#[test]
fn longer_pauses_explain_the_time_in_them() {
    let before = make_profile(Scene::new("prog").waiting(&["main", "spin"], 1000));
    let after = make_profile(Scene::new("prog").waiting(&["main", "spin"], 1770));
    let side_with = |profile, pause_ns| Side {
        pause_ns: Some(pause_ns),
        ..new_side(profile, 1.0)
    };
    let found = Difference::between(side_with(&before, 24.3), side_with(&after, 43.0));
    let sentence = found.pausing.unwrap().sentence();
    assert_eq!(
        sentence,
        "1.77× more time in PAUSE: 1.00× as many PAUSEs, each 1.77× as long"
    );
    assert!((find_change(&found, "spin").waits.delta_s() - 0.77).abs() < 1e-9);
}

fn make_profile_of_stacks(stacks: &[(Vec<u8>, u64)]) -> Profile {
    let mut scene = Scene::new("prog");
    for (stack, count) in stacks {
        let names: Vec<String> = stack.iter().map(|n| format!("f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        scene = scene.stack(&names, *count);
    }
    make_profile(scene)
}

fn any_stacks() -> impl Strategy<Value = Vec<(Vec<u8>, u64)>> {
    prop::collection::vec((prop::collection::vec(0u8..5, 1..5), 1u64..50), 0..12)
}

proptest! {
    #[test]
    fn differences_change_sign_when_sides_are_swapped(
        a in any_stacks(), b in any_stacks(), units_a in 0.1f64..100.0, units_b in 0.1f64..100.0,
    ) {
        let (a, b) = (make_profile_of_stacks(&a), make_profile_of_stacks(&b));
        let there = Difference::between(new_side(&a, units_a), new_side(&b, units_b));
        let back = Difference::between(new_side(&b, units_b), new_side(&a, units_a));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-15;
        prop_assert!(near(there.total.delta_s(), -back.total.delta_s()));
        prop_assert_eq!(there.functions.len(), back.functions.len());
        for (x, y) in there.functions.iter().zip(&back.functions) {
            prop_assert_eq!(&x.function, &y.function);
            prop_assert!(near(x.own.delta_s(), -y.own.delta_s()));
            prop_assert!(near(x.total.delta_s(), -y.total.delta_s()));
            prop_assert!(near(x.own.error_s, y.own.error_s));
        }
        let own: f64 = there.functions.iter().map(|change| change.own.delta_s()).sum();
        prop_assert!((own - there.total.delta_s()).abs() < 1e-9);
        let own: f64 = there.nodes.iter().map(|node| node.own.delta_s()).sum();
        prop_assert!((own - there.total.delta_s()).abs() < 1e-9);
    }
}
