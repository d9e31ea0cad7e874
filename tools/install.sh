#!/usr/bin/env bash
# Install packages into an environment: tools/install.sh PYTHON PACKAGE...
# uv does in seconds what takes pip more than a minute; where it is not to be had, pip does it.
set -euo pipefail
python=$1
shift
quiet=(--quiet --disable-pip-version-check --no-compile)
if "$python" -m pip install "${quiet[@]}" uv && "$python" -m uv pip install --quiet --python "$python" "$@"; then
    exit 0
fi
echo "uv could not install; trying pip" >&2
exec "$python" -m pip install "${quiet[@]}" "$@"
