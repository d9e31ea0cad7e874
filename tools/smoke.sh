#!/usr/bin/env bash
# The wheel in fresh environments: tools/smoke.sh PYTHON-VERSION...
# Each Python with the newest dependencies, and the oldest one also with the lowest that pyproject.toml allows.
# Where uv finds no such Python, the version is named and left out; that none was found is an error.
set -euo pipefail
oldest=3.11  # requires-python; the lowest dependencies have no builds for later ones
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v uv >/dev/null; then
    python3 -m venv "$work/uv"
    "$work/uv/bin/python" -m pip install --quiet uv
    PATH="$work/uv/bin:$PATH"
fi
# Of the Pythons that pyenv holds, only the chosen ones answer to their names.
if command -v pyenv >/dev/null; then export PYENV_VERSION=$(pyenv versions --bare | paste -sd: -); fi
uv build --quiet --wheel --out-dir "$work/wheel" "$here"

smoke() {  # version, resolution
    local environment="$work/$1-$2"
    echo "Python $1, $2 versions of what pyproject.toml names"
    uv venv --quiet --python "$1" "$environment"
    # "Direct" is what the file names; seen from the wheel, nothing but itself would be direct.
    uv pip install --quiet --python "$environment" --resolution "$2" --requirements "$here/pyproject.toml"
    uv pip install --quiet --python "$environment" --no-deps "$work"/wheel/*.whl
    "$environment/bin/python" "$here/tools/smoke.py"
}

found=0
for version in "$@"; do
    if ! uv python find --quiet "$version" >/dev/null 2>&1; then
        echo "Python $version: not found"
        continue
    fi
    found=1
    if [ "$version" = "$oldest" ]; then smoke "$version" lowest-direct; fi
    smoke "$version" highest
done
[ "$found" = 1 ] || { echo "none of $* was found" >&2; exit 1; }
