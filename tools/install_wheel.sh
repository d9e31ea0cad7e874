#!/usr/bin/env bash
# Build the wheel of this checkout and put it in place of whatever equirecourse an environment holds:
# tools/install_wheel.sh PYTHON. The environment has hatchling and the dependencies already.
set -euo pipefail
python=$1
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
"$python" -m hatchling build --target wheel --directory "$wheels"
quiet=(--quiet --disable-pip-version-check)
"$python" -m pip uninstall "${quiet[@]}" --yes equirecourse
# Numba notices that the file of a compiled function has changed, but not that the file of a function it calls has:
# what was compiled from the sources before goes with them.
rm -rf "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/equirecourse"
"$python" -m pip install "${quiet[@]}" --no-deps "$wheels"/*.whl
