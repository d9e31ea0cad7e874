"""Run the benchmarks: ``python -m benchmarks [NAME ...] [--quick]``; all of them by default."""

from __future__ import annotations

import argparse
import platform

import numpy
import scipy
import sklearn

import equirecourse
from benchmarks import equalizers, recourse, scale, scaling, speed, startup, streaming, surrogates

BENCHMARKS = {
    "startup": startup.main,
    "speed": speed.main,
    "recourse": recourse.main,
    "surrogates": surrogates.main,
    "equalizers": equalizers.main,
    "scale": scale.main,
    "scaling": scaling.main,
    "streaming": streaming.main,
}

parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which ones; all by default")
parser.add_argument("--quick", action="store_true", help="small sizes, to see that they run")
arguments = parser.parse_args()
print(
    f"equirecourse {equirecourse.__version__}, Python {platform.python_version()}, NumPy {numpy.__version__}, "
    f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}\n"
)
for name in arguments.names or BENCHMARKS:
    BENCHMARKS[name](quick=arguments.quick)
    print()
