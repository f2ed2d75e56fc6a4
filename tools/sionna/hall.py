"""Our own factory hall as Mitsuba XML: all numbers are here, nothing is drawn."""

LENGTH_M, WIDTH_M, HEIGHT_M = 60.0, 30.0, 8.0

# Machines stand in lanes along the hall, x from the first number on, every PITCH_M metres.
PITCH_M = 6.0
LANES_Y_M = (-10.5, -3.5, 3.5, 10.5)
FIRST_X_M, LAST_X_M = -24.0, 0.0
# (length, width, height) of the machines, taken in turn; all are taller than a terminal's antenna.
MACHINES_M = ((3.0, 1.8, 1.6), (2.2, 2.2, 2.4), (3.6, 1.4, 1.4), (1.6, 2.4, 2.9), (2.8, 2.0, 2.0))

# Storage racks at the east end, twice a man's height, with aisles along the hall and a wide one in the middle.
RACKS_X_M = (13.0, 24.0)
RACKS_Y_M = (-12.0, -8.0, -4.0, 4.0, 8.0, 12.0)
RACK_M = (9.0, 1.2, 4.0)

MATERIALS = ("concrete", "metal")
MATERIAL_THICKNESS_M = 0.1


def xml():
    """The whole hall."""
    shapes = [*_shell(), *_machines(), *_racks()]
    return "\n".join(['<scene version="2.1.0">', *map(_material, MATERIALS), *shapes, "</scene>", ""])


def _material(name):
    return (f'<bsdf type="itu-radio-material" id="{name}"><string name="type" value="{name}"/>'
            f'<float name="thickness" value="{MATERIAL_THICKNESS_M}"/></bsdf>')


def _shell():
    """Six flat sheets: the tracer gives a sheet its material's thickness, a solid wall would count twice."""
    x, y, z = LENGTH_M / 2, WIDTH_M / 2, HEIGHT_M / 2
    yield _sheet("floor", (x, y), (0, 0, 0))
    yield _sheet("ceiling", (x, y), (0, 0, HEIGHT_M), '<rotate x="1" angle="180"/>')
    yield _sheet("wall_west", (z, y), (-x, 0, z), '<rotate y="1" angle="90"/>')
    yield _sheet("wall_east", (z, y), (x, 0, z), '<rotate y="1" angle="-90"/>')
    yield _sheet("wall_south", (x, z), (0, -y, z), '<rotate x="1" angle="-90"/>')
    yield _sheet("wall_north", (x, z), (0, y, z), '<rotate x="1" angle="90"/>')


def _machines():
    count = int((LAST_X_M - FIRST_X_M) / PITCH_M) + 1
    places = [(FIRST_X_M + PITCH_M * column, y) for column in range(count) for y in LANES_Y_M]
    for index, (x, y) in enumerate(places):
        yield _block(f"machine_{index}", (x, y), MACHINES_M[index % len(MACHINES_M)])


def _racks():
    places = [(x, y) for x in RACKS_X_M for y in RACKS_Y_M]
    for index, place in enumerate(places):
        yield _block(f"rack_{index}", place, RACK_M)


def _sheet(name, half, centre, turn=""):
    """A rectangle, drawn flat around the origin, turned, then moved to its centre."""
    return _shape("rectangle", name, (*half, 1), turn, centre, "concrete")


def _block(name, place, size):
    """A metal box on the floor."""
    half = tuple(length / 2 for length in size)
    return _shape("cube", name, half, "", (*place, half[2]), "metal")


def _shape(kind, name, scale, turn, centre, material):
    return (f'<shape type="{kind}" id="mesh-{name}" name="mesh-{name}"><transform name="to_world">'
            f'<scale x="{scale[0]}" y="{scale[1]}" z="{scale[2]}"/>{turn}'
            f'<translate x="{centre[0]}" y="{centre[1]}" z="{centre[2]}"/></transform>'
            f'<ref id="{material}" name="bsdf"/></shape>')
