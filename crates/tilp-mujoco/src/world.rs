//! One physical world in MuJoCo: loaded from MJCF, set to a state, stepped, read.
//!
//! Places and turns that are read belong to the beginning of the last step (MuJoCo integrates
//! last), as they do for every user of `mj_step`; [`World::settle`] brings them up to date.

use std::ffi::{CStr, c_char};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Once};

use mujoco_rs::mujoco_c::{mj_setConst, mj_versionString, mjtWarning, mju_user_warning};
use mujoco_rs::wrappers::mj_data::MjData;
use mujoco_rs::wrappers::mj_model::{MjModel, MjtGeom, MjtJoint, MjtObj};

use crate::Error;
use crate::linear::{Matrix, Vector};

/// The largest MJCF text that is read. LIBERO's are 30 KB; meshes are separate files.
pub const MJCF_LIMIT_BYTES: u64 = 4 << 20;
/// The working memory that a world gets, whatever it asks for: LIBERO's ask for 1.3 GB each, since
/// robosuite declares 5000 contacts, and use less than 2 MB.
const ARENA_BYTES: i64 = 64 << 20;

/// A body of the world that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Body(usize);

/// A shape that touches others, of the world that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geom(usize);

/// A marked place on a body, of the world that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site(usize);

/// A joint with one coordinate, of the world that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joint {
    position: usize,
    velocity: usize,
}

/// A motor, of the world that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actuator(usize);

/// Pose of a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Metres, in the world's frame.
    pub position_m: Vector,
    /// Unit quaternion: w, x, y, z.
    pub quaternion: [f64; 4],
}

/// A box-shaped part of a body, at its present pose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// The middle, in metres.
    pub centre_m: Vector,
    /// Columns are the directions of the three edges.
    pub rotation: Matrix<3, 3>,
    /// Half the length of each edge in metres.
    pub half_m: Vector,
}

/// A cylindrical part of a body, at its present pose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rod {
    /// The middle, in metres.
    pub centre_m: Vector,
    /// Columns are its axes; the third one is the axis of the cylinder.
    pub rotation: Matrix<3, 3>,
    /// In metres.
    pub radius_m: f64,
    /// Half its length in metres.
    pub half_m: f64,
}

/// The version of the library that is linked, such as 3.8.0.
pub fn version() -> String {
    // SAFETY: the library returns a text that lives as long as the process.
    unsafe { CStr::from_ptr(mj_versionString()) }.to_string_lossy().into_owned()
}

/// A loaded world and its state. Copies share only the description.
#[derive(Clone)]
pub struct World {
    data: MjData<Arc<MjModel>>,
    place: Arc<str>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World({}, {} s)", self.place, self.time_s())
    }
}

/// Loading.
impl World {
    /// Reads an MJCF file; meshes are found relative to it.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let bytes = fs::metadata(path).map_err(|source| Error::read(path, source))?.len();
        let place = path.display().to_string();
        check_size(&place, bytes)?;
        // MuJoCo reads the file itself; a path with a zero byte has not got past `metadata`.
        Self::new(MjModel::from_xml(path).map_err(|error| refused(&place, error))?, place)
    }

    /// Reads an MJCF text that needs no other file.
    pub fn from_mjcf(text: &str) -> Result<Self, Error> {
        let place = "MJCF text".to_owned();
        check_size(&place, text.len() as u64)?;
        Self::new(MjModel::from_xml_string(text).map_err(|error| refused(&place, error))?, place)
    }

    fn new(mut model: MjModel, place: String) -> Result<Self, Error> {
        hush();
        // SAFETY: the number is read only when memory for a state is allocated, from here on.
        unsafe { model.ffi_mut() }.narena = ARENA_BYTES;
        let data = MjData::try_new(Arc::new(model)).map_err(|error| refused(&place, error))?;
        let mut world = Self { data, place: place.into() };
        world.settle();
        Ok(world)
    }

    /// The same world with another mass in a body, its shape and balance unchanged.
    pub fn with_mass(&self, body: Body, mass_kg: f64) -> Result<Self, Error> {
        let before = self.mass_kg(body);
        if !(mass_kg.is_finite() && mass_kg > 0.0 && before > 0.0) {
            let expected = "a positive number of kilograms on a body that has mass";
            return Err(Error::value(&self.place, "mass_kg", mass_kg, expected));
        }
        let refused = |error| refused(&self.place, error);
        let mut model =
            self.data.model().try_clone().map_err(|error| refused(error.to_string()))?;
        model.body_mass_mut()[body.0] = mass_kg;
        for inertia in &mut model.body_inertia_mut()[body.0] {
            *inertia *= mass_kg / before;
        }
        let mut model = Box::new(model);
        let mut scratch =
            MjData::try_new(model.clone()).map_err(|error| refused(error.to_string()))?;
        // SAFETY: both are live and `scratch` was made for a copy of this model, of equal sizes.
        unsafe { mj_setConst(model.ffi_mut(), scratch.ffi_mut()) };
        Self::new(*model, self.place.to_string())
    }

    /// The world as loaded, with a body that has no joint standing elsewhere.
    pub fn with_fixture_at(&self, body: Body, position_m: Vector) -> Result<Self, Error> {
        let fixed = self.data.model().body_jntnum()[body.0] == 0;
        if !(fixed && position_m.iter().all(|value| value.is_finite())) {
            let expected = "finite metres and a body without a joint";
            return Err(Error::value(
                &self.place,
                "position_m",
                format!("{position_m:?}"),
                expected,
            ));
        }
        let copy = self.data.model().try_clone();
        let mut model = copy.map_err(|error| refused(&self.place, error))?;
        model.body_pos_mut()[body.0] = position_m;
        Self::new(model, self.place.to_string())
    }
}

/// Keeps MuJoCo from writing warnings to `MUJOCO_LOG.TXT` in whatever folder this runs in;
/// [`World::check`] reports those that matter.
fn hush() {
    extern "C" fn ignore(_: *const c_char) {}
    static HUSHED: Once = Once::new();
    // SAFETY: written once, before this crate's first step; a handler may be any C function.
    HUSHED.call_once(|| unsafe { mju_user_warning = Some(ignore) });
}

fn check_size(place: &str, bytes: u64) -> Result<(), Error> {
    if bytes > MJCF_LIMIT_BYTES {
        return Err(Error::TooLarge { place: place.to_owned(), bytes, limit: MJCF_LIMIT_BYTES });
    }
    Ok(())
}

fn refused(place: &str, reason: impl ToString) -> Error {
    let reason = reason.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    Error::Mjcf { place: place.to_owned(), reason }
}

/// Names.
impl World {
    /// Source of this world, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    fn find(&self, kind: MjtObj, word: &'static str, name: &str) -> Result<usize, Error> {
        // A name with a zero byte would panic inside the wrapper, and no part has one.
        let found = (!name.contains('\0')).then(|| self.data.model().name_to_id(kind, name));
        found.flatten().ok_or_else(|| Error::Missing {
            place: self.place.to_string(),
            kind: word,
            name: name.escape_debug().to_string(),
        })
    }

    /// The body of this name.
    pub fn body(&self, name: &str) -> Result<Body, Error> {
        self.find(MjtObj::mjOBJ_BODY, "body", name).map(Body)
    }

    /// The shape of this name.
    pub fn geom(&self, name: &str) -> Result<Geom, Error> {
        self.find(MjtObj::mjOBJ_GEOM, "geom", name).map(Geom)
    }

    /// The site of this name.
    pub fn site(&self, name: &str) -> Result<Site, Error> {
        self.find(MjtObj::mjOBJ_SITE, "site", name).map(Site)
    }

    /// The motor of this name.
    pub fn actuator(&self, name: &str) -> Result<Actuator, Error> {
        self.find(MjtObj::mjOBJ_ACTUATOR, "actuator", name).map(Actuator)
    }

    /// The hinge or slide of this name.
    pub fn joint(&self, name: &str) -> Result<Joint, Error> {
        let id = self.find(MjtObj::mjOBJ_JOINT, "joint", name)?;
        let model = self.data.model();
        let [position, velocity] = [model.jnt_qposadr()[id], model.jnt_dofadr()[id]];
        Ok(Joint { position: position as usize, velocity: velocity as usize })
    }

    /// All bodies except the fixed ground.
    pub fn bodies(&self) -> impl Iterator<Item = (Body, &str)> {
        let model = self.data.model();
        let name = move |id| model.id_to_name(MjtObj::mjOBJ_BODY, id).unwrap_or_default();
        (1..model.body_mass().len()).map(move |id| (Body(id), name(id)))
    }
}

/// State and steps.
impl World {
    /// Number of coordinates and of velocities.
    pub fn sizes(&self) -> (usize, usize) {
        (self.data.qpos().len(), self.data.qvel().len())
    }

    /// Seconds since the state's origin.
    pub fn time_s(&self) -> f64 {
        self.data.ffi().time
    }

    /// Seconds per step.
    pub fn step_s(&self) -> f64 {
        self.data.model_opt().timestep
    }

    /// All coordinates, in MuJoCo's order.
    pub fn qpos(&self) -> &[f64] {
        self.data.qpos()
    }

    /// All velocities, in MuJoCo's order.
    pub fn qvel(&self) -> &[f64] {
        self.data.qvel()
    }

    /// Resets the world to this state, with all motors off.
    pub fn reset(&mut self, time_s: f64, qpos: &[f64], qvel: &[f64]) -> Result<(), Error> {
        for (field, values, expected) in [
            ("time", &[time_s][..], 1),
            ("qpos", qpos, self.sizes().0),
            ("qvel", qvel, self.sizes().1),
        ] {
            if values.len() != expected {
                let length = format!("{field}.len()");
                return Err(Error::value(&self.place, length, values.len(), expected));
            }
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                let field = format!("{field}[{at}]");
                return Err(Error::value(&self.place, field, values[at], "a finite number"));
            }
        }
        self.data.reset();
        // SAFETY: `time` is a plain number that no pointer or size depends on.
        unsafe { self.data.ffi_mut() }.time = time_s;
        self.data.qpos_mut().copy_from_slice(qpos);
        self.data.qvel_mut().copy_from_slice(qvel);
        self.settle();
        Ok(())
    }

    /// Brings everything that is read up to date with coordinates and velocities.
    pub fn settle(&mut self) {
        self.data.forward();
    }

    /// The half of a step that depends on the state alone; motors are set after it.
    pub fn begin_step(&mut self) {
        self.data.step1();
    }

    /// The other half: forces, contacts, motion.
    pub fn finish_step(&mut self) {
        self.data.step2();
    }

    /// Fails if the motion has become no number since the last reset.
    pub fn check(&self) -> Result<(), Error> {
        let bad =
            [mjtWarning::mjWARN_BADQPOS, mjtWarning::mjWARN_BADQVEL, mjtWarning::mjWARN_BADQACC];
        if bad.iter().any(|&kind| self.data.ffi().warning[kind as usize].number > 0) {
            return Err(Error::Unstable { place: self.place.to_string(), time_s: self.time_s() });
        }
        Ok(())
    }

    /// Sets a motor.
    pub fn drive(&mut self, actuator: Actuator, control: f64) {
        self.data.ctrl_mut()[actuator.0] = control;
    }

    /// The range of controls a motor takes.
    pub fn drive_range(&self, actuator: Actuator) -> [f64; 2] {
        self.data.model().actuator_ctrlrange()[actuator.0]
    }

    /// Sets the position of a joint; [`World::settle`] applies it.
    pub fn place_joint(&mut self, joint: Joint, coordinate: f64) {
        self.data.qpos_mut()[joint.position] = coordinate;
    }

    /// Sets the position of a floating body, with unchanged rotation; [`World::settle`] applies it.
    pub fn place_free(&mut self, body: Body, position_m: Vector) -> Result<(), Error> {
        let joint = self.free_joint(body).ok_or_else(|| Error::Missing {
            place: self.place.to_string(),
            kind: "freejoint on the body",
            name: format!("{body:?}"),
        })?;
        self.data.qpos_mut()[joint..joint + 3].copy_from_slice(&position_m);
        Ok(())
    }

    /// Whether a body is free.
    pub fn is_free(&self, body: Body) -> bool {
        self.free_joint(body).is_some()
    }

    /// Where the coordinates of a body begin that nothing holds.
    fn free_joint(&self, body: Body) -> Option<usize> {
        let model = self.data.model();
        let joint = usize::try_from(model.body_jntadr()[body.0]).ok()?;
        let free = model.jnt_type()[joint] == MjtJoint::mjJNT_FREE;
        free.then(|| model.jnt_qposadr()[joint] as usize)
    }
}

/// Readings.
impl World {
    /// Position of a body.
    pub fn pose(&self, body: Body) -> Pose {
        Pose { position_m: self.data.xpos()[body.0], quaternion: self.data.xquat()[body.0] }
    }

    /// How fast the middle of a body's mass moves, in metres per second.
    pub fn velocity(&self, body: Body) -> Vector {
        let [_, _, _, x, y, z] = self.data.object_velocity(MjtObj::mjOBJ_BODY, body.0, false);
        [x, y, z]
    }

    /// Mass of a body without those that hang on it.
    pub fn mass_kg(&self, body: Body) -> f64 {
        self.data.model().body_mass()[body.0]
    }

    /// Position of a site, in metres.
    pub fn site_position_m(&self, site: Site) -> Vector {
        self.data.site_xpos()[site.0]
    }

    /// Rotation of a site; columns are its axes.
    pub fn site_rotation(&self, site: Site) -> Matrix<3, 3> {
        rows(&self.data.site_xmat()[site.0])
    }

    /// A site's size in its own frame; for a box half its edges, in metres.
    pub fn site_size_m(&self, site: Site) -> Vector {
        self.data.model().site_size()[site.0]
    }

    /// A joint's coordinate: radians or metres.
    pub fn coordinate(&self, joint: Joint) -> f64 {
        self.data.qpos()[joint.position]
    }

    /// A joint's speed: radians or metres per second.
    pub fn speed(&self, joint: Joint) -> f64 {
        self.data.qvel()[joint.velocity]
    }

    /// The force that gravity and rotation put on a joint, in newtons or newton metres.
    pub fn bias_force(&self, joint: Joint) -> f64 {
        self.data.qfrc_bias()[joint.velocity]
    }

    /// How a site moves and turns with each of these joints: three rows of metres, three of radians.
    pub fn jacobian<const N: usize>(&self, site: Site, joints: &[Joint; N]) -> Matrix<6, N> {
        let (moves, turns) = self.data.jac_site(true, true, site.0);
        let columns = self.data.qvel().len();
        std::array::from_fn(|row| {
            let from = if row < 3 { &moves } else { &turns };
            joints.map(|joint| from[row % 3 * columns + joint.velocity])
        })
    }

    /// The inertia that these joints feel, each against each.
    pub fn inertia<const N: usize>(&self, joints: &[Joint; N]) -> Matrix<N, N> {
        let model = self.data.model();
        let entry = |row: usize, column: usize| {
            // MuJoCo keeps each row up to its diagonal, without the joints of other branches.
            let (row, column) = (row.max(column), row.min(column));
            let start = model.m_rowadr()[row] as usize;
            let stored = start..start + model.m_rownnz()[row] as usize;
            let columns = &model.m_colind()[stored.clone()];
            let found = columns.iter().position(|&c| c as usize == column);
            found.map_or(0.0, |at| self.data.m()[stored.start + at])
        };
        joints.map(|row| joints.map(|column| entry(row.velocity, column.velocity)))
    }

    /// The pairs of bodies whose shapes touch.
    pub fn contacts(&self) -> impl Iterator<Item = (Body, Body)> {
        let bodies = self.data.model().geom_bodyid();
        self.data.contact().iter().filter_map(|contact| {
            let [first, second] = contact.geom.map(|geom| usize::try_from(geom).ok());
            Some((Body(bodies[first?] as usize), Body(bodies[second?] as usize)))
        })
    }

    /// Whether two bodies touch.
    pub fn touch(&self, first: Body, second: Body) -> bool {
        self.contacts().any(|pair| pair == (first, second) || pair == (second, first))
    }

    /// Whether two shapes touch.
    pub fn geoms_touch(&self, first: Geom, second: Geom) -> bool {
        let asked = [first.0, second.0].map(|geom| geom as i32);
        let is_asked = |pair: [i32; 2]| pair == asked || pair == [asked[1], asked[0]];
        self.data.contact().iter().any(|contact| is_asked(contact.geom))
    }

    /// The boxes that a body is made of; what touches nothing does not count.
    pub fn blocks(&self, body: Body) -> impl Iterator<Item = Block> {
        self.shapes(body, MjtGeom::mjGEOM_BOX).map(|geom| Block {
            centre_m: self.data.geom_xpos()[geom],
            rotation: rows(&self.data.geom_xmat()[geom]),
            half_m: self.data.model().geom_size()[geom],
        })
    }

    /// The cylinders that a body is made of; what touches nothing does not count.
    pub fn rods(&self, body: Body) -> impl Iterator<Item = Rod> {
        self.shapes(body, MjtGeom::mjGEOM_CYLINDER).map(|geom| Rod {
            centre_m: self.data.geom_xpos()[geom],
            rotation: rows(&self.data.geom_xmat()[geom]),
            radius_m: self.data.model().geom_size()[geom][0],
            half_m: self.data.model().geom_size()[geom][1],
        })
    }

    fn shapes(&self, body: Body, kind: MjtGeom) -> impl Iterator<Item = usize> {
        let model = self.data.model();
        let wanted = move |&geom: &usize| {
            let seen_only = model.geom_contype()[geom] == 0 && model.geom_conaffinity()[geom] == 0;
            let own = model.geom_bodyid()[geom] as usize == body.0;
            own && !seen_only && model.geom_type()[geom] == kind
        };
        (0..model.geom_bodyid().len()).filter(wanted)
    }
}

fn rows(flat: &[f64; 9]) -> Matrix<3, 3> {
    std::array::from_fn(|row| std::array::from_fn(|column| flat[3 * row + column]))
}

#[cfg(test)]
mod tests;
