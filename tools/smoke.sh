#!/usr/bin/env bash
# The wheel in fresh environments: tools/smoke.sh PYTHON-VERSION...
# Each Python with the newest dependencies, and the first one with the lowest that pyproject.toml allows.
# Where uv finds no such Python, the version is named and left out; that none was found is an error.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v uv >/dev/null || { python3 -m venv "$work/uv" && "$work/uv/bin/pip" install --quiet uv && PATH="$work/uv/bin:$PATH"; }
# Of the Pythons that pyenv holds, only the chosen ones answer to their names.
command -v pyenv >/dev/null && export PYENV_VERSION=$(pyenv versions --bare | paste -sd:)
uv build --quiet --wheel --out-dir "$work/wheel" "$here"

smoke() {  # version, resolution
    echo "Python $1, $2 versions of what pyproject.toml names"
    uv venv --quiet --python "$1" "$work/$1-$2"
    # "Direct" is what the file names; seen from the wheel, its own dependencies would not be direct.
    uv pip install --quiet --python "$work/$1-$2" --resolution "$2" --requirements "$here/pyproject.toml"
    uv pip install --quiet --python "$work/$1-$2" --no-deps "$work"/wheel/*.whl
    "$work/$1-$2/bin/python" "$here/tools/smoke.py"
}

found=()
for version in "$@"; do
    if uv python find --quiet "$version" >/dev/null 2>&1; then found+=("$version"); else echo "Python $version: not found"; fi
done
[ ${#found[@]} -gt 0 ] || { echo "none of $* was found" >&2; exit 1; }
smoke "${found[0]}" lowest-direct
for version in "${found[@]}"; do smoke "$version" highest; done
