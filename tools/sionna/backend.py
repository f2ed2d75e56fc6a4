"""The ray tracer, loaded so that it runs alike everywhere: on the CPU, compiled by LLVM."""

import ctypes
import os
import sys
from pathlib import Path

from settings import InputError

# Names under which the dynamic linker knows an LLVM that the tracer accepts (14 to 16 fail).
LLVM_NAMES = ("libLLVM.so.19.1", "libLLVM.so.20.1", "libLLVM.so.21.1", "libLLVM.so.22.1")


def find_llvm():
    """The LLVM library to use: the user's choice, else the first known one that loads."""
    chosen = os.environ.get("DRJIT_LIBLLVM_PATH")
    found = next(filter(_loads, [chosen] if chosen else LLVM_NAMES), None)
    if found is None:
        raise InputError(f"DRJIT_LIBLLVM_PATH = {chosen or ''!r}, expected a libLLVM of version 19 or newer that loads, "
                         "or nothing and one installed: apt-get install libllvm19")
    return found


def load():
    """Modules mitsuba and sionna.rt, on LLVM and with the kernel cache in this folder."""
    llvm = find_llvm()
    os.environ["DRJIT_LIBLLVM_PATH"] = llvm
    # Left alone, the compiler would keep its kernels in the user's home.
    os.environ.setdefault("DRJIT_CACHE_DIR", str(Path(__file__).resolve().parent / ".cache"))
    try:
        import mitsuba
        # Named, since sionna.rt would take a GPU where there is one, and other last digits with it.
        mitsuba.set_variant("llvm_ad_mono_polarized")
        import sionna.rt
    except ModuleNotFoundError as error:
        raise InputError(f"python package {error.name!r} missing, expected the pinned ones: run setup") from error
    except ImportError as error:
        raise InputError(f"DRJIT_LIBLLVM_PATH = {llvm!r}, expected LLVM 19 or newer: the tracer refuses it") from error
    return mitsuba, sionna.rt


def _loads(name):
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    try:
        print(find_llvm())
    except InputError as problem:
        sys.exit(f"backend.py: {problem}")
