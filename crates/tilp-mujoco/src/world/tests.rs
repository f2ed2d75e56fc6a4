use super::*;

const BALLS: &str = r#"<mujoco><worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="low" pos="0 0 0.1"><freejoint/><geom size="0.1" mass="0.5"/></body>
    <body name="high" pos="0 0 0.5"><freejoint/><geom size="0.1" mass="0.5"/></body>
    <body name="bar" pos="1 0 0.5"><joint name="hinge" axis="0 1 0"/>
        <geom type="box" size="0.1 0.2 0.3" mass="2"/></body>
</worldbody></mujoco>"#;

#[test]
fn what_rests_touches_and_what_hangs_in_the_air_does_not() {
    let mut world = World::from_mjcf(BALLS).expect("a world");
    let [low, high] = ["low", "high"].map(|name| world.body(name).expect("a ball"));
    assert!(!world.touch(low, high));
    for _ in 0..200 {
        world.begin_step();
        world.finish_step();
    }
    world.check().expect("finite motion");
    assert!(world.touch(low, high) && world.touch(high, low));
    assert!(world.pose(high).position_m[2] < 0.35);
}

#[test]
fn a_body_gets_another_mass_and_keeps_its_shape() {
    let world = World::from_mjcf(BALLS).expect("a world");
    let bar = world.body("bar").expect("a bar");
    let heavy = world.with_mass(bar, 6.0).expect("a mass");
    assert_eq!([world.mass_kg(bar), heavy.mass_kg(bar)], [2.0, 6.0]);
    let hinge = [world.joint("hinge").expect("a hinge")];
    let ratio = heavy.inertia(&hinge)[0][0] / world.inertia(&hinge)[0][0];
    assert!((ratio - 3.0).abs() < 1e-12, "{ratio}");
    let block = heavy.blocks(bar).next().expect("a box");
    assert_eq!(block.half_m, [0.1, 0.2, 0.3]);
    for kg in [0.0, -1.0, f64::NAN] {
        assert!(world.with_mass(bar, kg).is_err());
    }
}

#[test]
fn what_floats_and_what_is_fixed_stands_where_it_is_put() {
    let text = r#"<mujoco><worldbody>
        <body name="shelf" pos="0 0 1" quat="0 0 0 1"><geom type="cylinder" size="0.1 0.2"/></body>
        <body name="ball"><freejoint/><geom name="ball" size="0.1"/></body>
    </worldbody></mujoco>"#;
    let loaded = World::from_mjcf(text).expect("a world");
    let [shelf, ball] = ["shelf", "ball"].map(|name| loaded.body(name).expect("a body"));
    assert!(loaded.is_free(ball) && !loaded.is_free(shelf));
    let mut world = loaded.with_fixture_at(shelf, [1.0, 2.0, 3.0]).expect("a place");
    world.place_free(ball, [4.0, 5.0, 6.0]).expect("it floats");
    world.settle();
    assert_eq!(world.pose(shelf).position_m, [1.0, 2.0, 3.0]);
    assert_eq!(world.pose(shelf).quaternion, [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(world.pose(ball).position_m, [4.0, 5.0, 6.0]);
    let rod = world.rods(shelf).next().expect("a cylinder");
    assert_eq!((rod.centre_m, rod.radius_m, rod.half_m), ([1.0, 2.0, 3.0], 0.1, 0.2));
    assert!(world.place_free(shelf, [0.0; 3]).is_err());
    assert!(loaded.with_fixture_at(ball, [0.0; 3]).is_err());
    assert!(loaded.with_fixture_at(shelf, [f64::NAN; 3]).is_err());
}

#[test]
fn what_falls_is_as_fast_as_gravity_says() {
    let mut world = World::from_mjcf(BALLS).expect("a world");
    let [low, high] = ["low", "high"].map(|name| world.body(name).expect("a ball"));
    for _ in 0..10 {
        world.begin_step();
        world.finish_step();
    }
    world.settle();
    let fallen = -9.81 * world.time_s();
    assert!((world.velocity(high)[2] - fallen).abs() < 1e-9, "{:?}", world.velocity(high));
    assert!(world.velocity(low)[2].abs() < 0.1);
    assert_eq!(version(), "3.8.0");
}

#[test]
fn a_state_of_another_size_or_without_numbers_is_refused() {
    let mut world = World::from_mjcf(BALLS).expect("a world");
    let (qpos, qvel) = (world.qpos().to_vec(), world.qvel().to_vec());
    let short = world.reset(0.0, &qpos[1..], &qvel).expect_err("too short").to_string();
    assert_eq!(short, "MJCF text: qpos.len() = 14, expected 15");
    let mut none = qvel.clone();
    none[3] = f64::INFINITY;
    let none = world.reset(0.0, &qpos, &none).expect_err("no number").to_string();
    assert_eq!(none, "MJCF text: qvel[3] = inf, expected a finite number");
    world.reset(1.0, &qpos, &qvel).expect("a good state");
    assert_eq!(world.time_s(), 1.0);
}

#[test]
fn motion_that_blows_up_is_an_error_and_not_a_silent_reset() {
    let mut world = World::from_mjcf(BALLS).expect("a world");
    let (qpos, mut qvel) = (world.qpos().to_vec(), world.qvel().to_vec());
    qvel[0] = 1e12;
    world.reset(0.0, &qpos, &qvel).expect("finite numbers");
    world.begin_step();
    world.finish_step();
    let error = world.check().expect_err("such a speed").to_string();
    assert!(error.contains("became unstable"), "{error}");
}

#[test]
fn a_text_that_is_too_large_or_no_world_is_refused_in_one_line() {
    let large = World::from_mjcf(&" ".repeat(MJCF_LIMIT_BYTES as usize + 1));
    assert!(large.expect_err("too large").to_string().starts_with("MJCF text: 4194305 bytes"));
    let error = World::from_mjcf("<mujoco><nothing/></mujoco>").expect_err("no world");
    assert!(error.to_string().starts_with("MJCF text: not a world for MuJoCo: "), "{error}");
    assert_eq!(error.to_string().lines().count(), 1);
    assert!(World::from_mjcf("<mujoco/>").expect("an empty world").body("a\0b").is_err());
}
