use super::*;
use crate::examples::{AFTER_PAUSE, Scene};

fn make_profile(scene: Scene) -> Profile {
    Profile::from_samples(&[scene.samples], &Bounds::default())
}

fn find_time<'a>(profile: &'a Profile, name: &str) -> &'a FunctionTime {
    let mut functions = profile.functions.iter();
    functions.find(|time| time.function.name == name).unwrap()
}

#[test]
fn recursion_is_counted_once() {
    let scene = Scene::new("/bin/prog")
        .stack(&["main", "walk", "walk", "walk"], 30)
        .stack(&["main", "walk", "visit"], 10)
        .stack(&["main"], 2);
    let profile = make_profile(scene);
    assert_eq!(profile.total.samples, 42);
    let walk = find_time(&profile, "walk");
    assert_eq!((walk.own.samples, walk.total.samples), (30, 40));
    let main = find_time(&profile, "main");
    assert_eq!((main.own.samples, main.total.samples), (2, 42));
    assert_eq!(profile.functions[0].function.name, "walk");
    assert!((walk.total.cpu_s() - 0.04).abs() < 1e-12);
}

#[test]
fn kernel_time_is_separate() {
    let scene = Scene::new("/bin/prog")
        .stack(&["main", "k:do_read"], 5)
        .stack(&["main"], 5);
    let profile = make_profile(scene);
    assert_eq!(profile.kernel.unwrap().samples, 5);
    assert_eq!(find_time(&profile, "do_read").function.kind, Kind::Kernel);
    assert_eq!(find_time(&profile, "main").total.samples, 10);
}

#[test]
fn code_without_symbols_is_named_by_its_place() {
    let scene = Scene::new("/bin/prog")
        .stack(&["main", "0x1104"], 3)
        .stack(&["main", "0x113c"], 4)
        .stack(&["main", "0x1140"], 1);
    let profile = make_profile(scene);
    assert_eq!(find_time(&profile, "0x1100+").own.samples, 7);
    assert_eq!(find_time(&profile, "0x1140+").own.samples, 1);
    assert_eq!(find_time(&profile, "0x1100+").function.file_name(), "prog");
}

#[test]
fn time_after_a_pause_belongs_to_it() {
    let scene = Scene::new("/bin/prog")
        .waiting(&["main", "spin"], 90)
        .stack(&["main", "work"], 10);
    let profile = make_profile(scene);
    assert_eq!(profile.waits.samples, 90);
    assert_eq!(find_time(&profile, "spin").waits.samples, 90);
    assert_eq!(find_time(&profile, "work").waits.samples, 0);
    let leaf = profile.tree.nodes().iter().find(|n| n.own.samples == 90);
    assert_eq!(leaf.unwrap().function, Function::pause());
    let spot = &profile.spots[0];
    assert_eq!((spot.address, spot.own.samples), (AFTER_PAUSE, 90));
    let texts: Vec<&str> = spot.lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts.len(), 6, "{texts:?}");
    assert!(texts[3].contains("pause"), "{texts:?}");
    assert!(spot.lines[4].waits && spot.lines[4].own.samples == 90);
    assert!(texts[4].contains("2000"), "the file's address: {texts:?}");
}

#[test]
fn threads_are_reported_one_by_one_in_one_run_and_by_name_in_several() {
    let scene = || Scene::new("/bin/prog").stack(&["main"], 5).samples;
    let one = Profile::from_samples(&[scene()], &Bounds::default());
    assert_eq!(one.threads[0].tid, Some(7));
    let two = Profile::from_samples(&[scene(), scene()], &Bounds::default());
    assert_eq!((two.threads.len(), two.threads[0].threads), (1, 2));
    assert_eq!(two.threads[0].tid, None);
    assert_eq!(two.threads[0].cpu_s, Some(1.0));
    assert_eq!(two.total.samples, 10);
}

#[test]
fn samples_from_proc_have_only_cpu_time() {
    let mut samples = Scene::new("/bin/prog").samples;
    samples.event = Event::Proc;
    let profile = Profile::from_samples(&[samples], &Bounds::default());
    assert_eq!(profile.total.samples, 0);
    assert!((profile.total.cpu_s() - 0.5).abs() < 1e-9);
    assert!(profile.functions.is_empty());
}

#[test]
fn left_out_amounts_are_reported() {
    let scene = Scene::new("/bin/prog")
        .stack(&["a"], 5)
        .stack(&["b"], 3)
        .stack(&["c"], 1);
    let bounds = Bounds {
        functions: 1,
        threads: 0,
        spots: 1,
        nodes: 1,
    };
    let profile = Profile::from_samples(&[scene.samples], &bounds);
    assert_eq!(profile.functions.len(), 1);
    let (many, amount) = profile.functions_left_out;
    assert_eq!((many, amount.samples), (2, 4));
    assert_eq!(profile.threads_left_out.0, 1);
    assert_eq!(profile.spots_left_out.samples, 4);
    assert_eq!(profile.tree_left_out.samples, 4);
    assert_eq!(profile.tree.total().samples, 9);
}

#[test]
fn missing_frames_are_tolerated() {
    let mut samples = Scene::new("/bin/prog").stack(&["a"], 5).samples;
    samples.stacks[0].frames = vec![99];
    samples.stacks[0].thread = 99;
    let profile = Profile::from_samples(&[samples], &Bounds::default());
    assert_eq!(profile.total.samples, 5);
    assert_eq!(profile.tree.total().samples, 5);
}
