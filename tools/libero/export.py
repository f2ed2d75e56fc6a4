"""Exports LIBERO tasks for crates/tilp-mujoco: physics-only MJCF, initial states, fingerprint.

    python export.py OUT [--object butter ...] [--digits 17]

writes OUT/<object>/phys.xml, OUT/<object>/init_states.npy, OUT/meshes/ and OUT/fingerprint.json.
See README.md for the set-up and for what this script works around.
"""

import argparse
import ctypes
import glob
import hashlib
import importlib.metadata
import io
import json
import logging
import os
import pickle
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

SUITE = "libero_object"
TASK = "pick_up_the_{}_and_place_it_in_the_basket"
PACKAGES = ("mujoco", "robosuite", "hf-libero", "numpy")


def main():
    options = parse()
    package = prepare_package()
    objects = options.object or all_objects(package)
    options.out.mkdir(parents=True, exist_ok=True)
    set_digits(options.digits)
    tasks = {name: export(package, name, options.out) for name in objects}
    write_fingerprint(options, package, tasks)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("--object", action="append", help="one object; default: all of the suite")
    parser.add_argument("--digits", type=int, default=17, choices=range(6, 18), metavar="6..17",
                        help="significant digits in the MJCF; MuJoCo's own default is 6")
    return parser.parse_args()


def prepare_package():
    """Finds the package without importing it: its first import asks a question on stdin."""
    logging.disable(logging.WARNING)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    package = Path(importlib.metadata.distribution("hf-libero").locate_file("libero/libero"))
    if not (package / "assets").is_dir():
        sys.exit(f"{package / 'assets'} is missing, expected LIBERO's assets there: see README.md")
    config = Path(tempfile.mkdtemp(prefix="libero-config-"))
    folders = {"benchmark_root": package, "bddl_files": package / "bddl_files",
               "init_states": package / "init_files", "assets": package / "assets",
               "datasets": config}
    lines = [f"{key}: {folder}" for key, folder in folders.items()]
    (config / "config.yaml").write_text("\n".join(lines) + "\n")
    os.environ["LIBERO_CONFIG_PATH"] = str(config)
    return package


def all_objects(package):
    start, end = TASK.split("{}")
    files = sorted(Path(f).stem for f in glob.glob(str(package / "bddl_files" / SUITE / "*.bddl")))
    return [name.removeprefix(start).removesuffix(end) for name in files]


def set_digits(digits):
    """MuJoCo writes six digits by default, and has no public setting for more.

    Six move a replay off its recording by 1e-7 rad, and by 1e-3 after a bump.
    """
    import mujoco

    folder = Path(mujoco.__file__).parent
    library = ctypes.CDLL(str(next(folder.glob("libmujoco.so.*"))))
    library._mjPRIVATE__set_xml_precision(ctypes.c_int(digits))


def export(package, name, out):
    from libero.libero.envs.env_wrapper import ControlEnv
    import numpy as np

    task = TASK.format(name)
    bddl = package / "bddl_files" / SUITE / f"{task}.bddl"
    if not bddl.is_file():
        sys.exit(f"object = {name}, expected one of {', '.join(all_objects(package))}")
    env = ControlEnv(bddl_file_name=str(bddl), use_camera_obs=False, has_renderer=False,
                     has_offscreen_renderer=False, control_freq=20, horizon=1000, hard_reset=False)
    env.reset()
    problem = env.env.parsed_problem
    goal = supported_goal(problem["goal_state"], name)
    folder = out / name
    folder.mkdir(exist_ok=True)
    model = env.sim.model
    (folder / "phys.xml").write_text(physics_only(model.get_xml(), out / "meshes"))
    check(folder / "phys.xml", model._model)
    states = read_states(package / "init_files" / SUITE / f"{task}.pruned_init")
    expected = 1 + model._model.nq + model._model.nv
    if states.ndim != 2 or states.shape[1] != expected:
        sys.exit(f"{task}: initial states of shape {states.shape}, expected (n, {expected})")
    np.save(folder / "init_states.npy", states.astype("<f8"))
    env.close()
    print(f"{name}: {len(states)} initial states", flush=True)
    return {"language": " ".join(problem["language_instruction"]), "goal": goal}


def supported_goal(goal, name):
    """The crate knows one predicate: a thing in the basket's region."""
    expected = [["in", f"{name}_1", "basket_1_contain_region"]]
    if goal != expected:
        sys.exit(f"{name}: goal = {goal}, expected {expected}: no other predicate is supported")
    return goal


def physics_only(text, meshes):
    """Drops what is only seen.

    A must, not a saving: saved XML lacks `inertiagrouprange`, so that visual shapes would gain
    mass on reading it back, and every object would weigh twice what it should.
    """
    root = ET.fromstring(text)
    drop_unseen(root)
    for tag in ("geom", "site"):
        for part in root.iter(tag):
            part.attrib.pop("material", None)
    used = {geom.get("mesh") for geom in root.iter("geom")}
    meshes.mkdir(exist_ok=True)
    for asset in root.findall("asset"):
        for part in list(asset):
            if part.tag != "mesh" or part.get("name") not in used:
                asset.remove(part)
                continue
            source = Path(part.get("file"))
            target = meshes / (part.get("name").replace("/", "_") + source.suffix)
            shutil.copyfile(source, target)
            part.set("file", f"../{meshes.name}/{target.name}")
    for key in ("meshdir", "texturedir", "assetdir"):
        root.find("compiler").attrib.pop(key, None)
    return ET.tostring(root, encoding="unicode")


def drop_unseen(parent):
    for child in list(parent):
        untouchable = child.get("contype") == "0" and child.get("conaffinity") == "0"
        lit = child.tag in ("light", "camera") and parent.tag in ("body", "worldbody")
        if (child.tag == "geom" and untouchable) or lit:
            parent.remove(child)
        else:
            drop_unseen(child)


def check(path, live):
    """Reads the export back and compares it with the model it came from."""
    import mujoco
    import numpy as np

    read = mujoco.MjModel.from_xml_path(str(path))
    for field in ("nq", "nv", "nu", "nbody"):
        if getattr(read, field) != getattr(live, field):
            sys.exit(f"{path}: {field} = {getattr(read, field)}, expected {getattr(live, field)}")
    for field in ("body_mass", "body_inertia", "dof_armature", "body_pos", "body_quat"):
        error = np.abs(getattr(read, field) - getattr(live, field)).max()
        if error > 1e-5:
            sys.exit(f"{path}: {field} is off by {error}, expected the live environment's")


class NumpyOnly(pickle.Unpickler):
    """LIBERO stores arrays as pickles: this one builds arrays and refuses anything else."""

    ALLOWED = {("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
               ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}

    def find_class(self, module, name):
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} in a file of initial states")
        return super().find_class(module, name)


def read_states(path):
    """torch.save writes a zip with one pickle in it; no torch is needed for an array."""
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        return NumpyOnly(io.BytesIO(archive.read(name))).load()


def write_fingerprint(options, package, tasks):
    """The sources and the contents of the export."""
    files = sorted(path for path in options.out.rglob("*") if path.is_file())
    files = [path for path in files if path.name != "fingerprint.json"]
    fingerprint = {
        "suite": SUITE,
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "digits": options.digits,
        "assets_sha256": tree_sha256(package / "assets"),
        "tasks": tasks,
        "files_sha256": {str(path.relative_to(options.out)): sha256(path) for path in files},
    }
    (options.out / "fingerprint.json").write_text(json.dumps(fingerprint, indent=2) + "\n")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tree_sha256(folder):
    """One hash over names and contents, the same wherever the folder lies."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()} {sha256(path)}\n".encode())
    return digest.hexdigest()


if __name__ == "__main__":
    main()
