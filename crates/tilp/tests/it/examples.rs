//! The examples produce what they announce.

#[allow(dead_code)]
#[path = "../../examples/compare_own_method.rs"]
mod compare_own_method;
use compare_own_method::own_method;

#[test]
fn a_method_of_ones_own_schedules_and_trains() {
    let rounds = own_method::rounds_of("tiny", 4).unwrap().0;
    let scheduled: Vec<&[usize]> = rounds.iter().map(|(who, _)| &who[..]).collect();
    assert_eq!(scheduled[0], [0, 1, 2]);
    assert_eq!(scheduled[1], [3, 4, 5]);
    assert!(rounds.iter().all(|(_, loss)| loss.is_some_and(f64::is_finite)));
    own_method::main().unwrap();
    let mut registry = tilp::scenario::Registry::builtin();
    registry.add(own_method::turns(2)).unwrap();
    assert_eq!(registry.method("turns-2").unwrap().about(), "all terminals in turn");
}

#[test]
fn a_method_of_ones_own_stands_in_a_table_beside_others() {
    let folder = std::env::temp_dir().join(format!("tilp-own-method-{}", std::process::id()));
    let table = compare_own_method::table(&folder).unwrap();
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for method in ["turns-3", "random", "deficit"] {
        let row = format!("| {method} | 2 |");
        assert!(table.contains(&row), "{table}");
        assert!(page.contains(method));
    }
}
