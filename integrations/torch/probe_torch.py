"""Prints what a build of a torch extension needs to know, one NAME=VALUE a line; fails without torch."""
import pathlib
import sysconfig

import torch
from torch.utils import cpp_extension

HERE = pathlib.Path(torch.__file__).parent
includes = [*cpp_extension.include_paths(), sysconfig.get_paths()["include"]]
print("version=" + torch.__version__)
print("includes=" + ";".join(path for path in includes if pathlib.Path(path).is_dir()))
print(f"libraries={HERE / 'lib'}")
print("suffix=" + sysconfig.get_config_var("EXT_SUFFIX"))
print(f"cxx11_abi={int(torch._C._GLIBCXX_USE_CXX11_ABI)}")
# Must be the same in all extensions that share types.
for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
    value = getattr(torch._C, "_PYBIND11_" + name, None)
    print(f"pybind11_{name.lower()}={value or ''}")
