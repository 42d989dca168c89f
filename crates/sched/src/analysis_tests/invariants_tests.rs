//! Properties that hold for any events.

use proptest::prelude::*;

use super::*;

fn any_event_kind() -> impl Strategy<Value = EventKind> {
    let tid = || 0i32..6;
    let left = prop_oneof![
        Just(LeaveReason::Blocked),
        Just(LeaveReason::Preempted),
        Just(LeaveReason::Ended),
        Just(LeaveReason::Unreported)
    ];
    prop_oneof![
        8 => (tid(), left.clone(), tid()).prop_map(|(prev, left, next)| EventKind::Switch { prev, left, next }),
        2 => tid().prop_map(|thread| EventKind::In { thread }),
        2 => (tid(), left).prop_map(|(thread, left)| EventKind::Out { thread, left }),
        4 => (tid(), 0u32..9).prop_map(|(thread, target)| EventKind::Wake { thread, target }),
        1 => (tid(), tid(), tid()).prop_map(|(parent, child, process)| EventKind::Fork { parent, child, process }),
        1 => tid().prop_map(|thread| EventKind::Exit { thread }),
        1 => tid().prop_map(|thread| EventKind::Follow { thread }),
        1 => (tid(), 1u64..256).prop_map(|(thread, bits)| EventKind::Mask {
            thread,
            cpus: Box::new(CpuSet::from_words(vec![bits]))
        }),
        1 => (0u64..9).prop_map(|records| EventKind::Lost { records }),
    ]
}

proptest! {
    #[test]
    fn no_time_is_counted_twice_for_any_events(
        whats in prop::collection::vec((0u64..3, 0u32..9, any_event_kind()), 0..300),
        tier in 0usize..5,
    ) {
        let mut time_ns = 0;
        let mut events = Vec::new();
        for (step, cpu, what) in whats {
            time_ns += step * MS;
            events.push(Event { time_ns, cpu, what });
        }
        let scope = Tier::ALL[tier].scope();
        let result = analyse(SMT, scope, &events, time_ns / MS + 5);
        let elapsed = result.to_ns - result.from_ns;
        for cpu in &result.by_cpu {
            let known = cpu.own_ns + cpu.foreign_ns.unwrap_or(0) + cpu.idle_ns.unwrap_or(0);
            prop_assert!(known <= elapsed, "CPU {} {known} of {elapsed}", cpu.cpu);
        }
        let by_cpu: u64 = result.by_cpu.iter().map(|cpu| cpu.own_ns).sum();
        prop_assert_eq!(by_cpu, result.cpu_ns);
        if let Some(causes) = result.waits.causes {
            let behind = causes.others + causes.own;
            let sum = causes.scheduler + causes.mask + behind + causes.starting + causes.class;
            prop_assert_eq!(Some(sum), result.waits.total_ns);
            let idle: u64 = result.by_cpu.iter().filter_map(|cpu| cpu.idle_ns).sum();
            let beside_idle = causes.scheduler + causes.mask;
            let is_whole = result.unknown.contradictions == 0 && result.unknown.windows == 0;
            prop_assert!(!is_whole || beside_idle <= idle, "{beside_idle} of {idle}");
            let episodes = result.idle_waiting.unwrap();
            prop_assert!(episodes.scheduler <= causes.scheduler && episodes.mask <= causes.mask);
            prop_assert!(episodes.longest <= episodes.scheduler + episodes.mask);
            prop_assert!(Some(episodes.longest) <= result.waits.longest_ns);
        }
        if let Some(sharing) = result.sharing {
            let avoidable = sharing.avoidable.map_or(0, |a| a.total());
            prop_assert!(avoidable <= sharing.shared);
            prop_assert!(sharing.shared <= result.cpu_ns);
        }
        check_timeline(&result);
    }
}
