#!/usr/bin/env bash
# A Chromium for the tests of the report: the machine's own, else Debian's, else Playwright's.
set -euo pipefail
python=${1:?the Python of the virtual environment}
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
if "$python" -c "
from pathlib import Path
from playwright.sync_api import sync_playwright
with sync_playwright() as p:
    raise SystemExit(not Path(p.chromium.executable_path).exists())"; then exit 0; fi
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    if { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } >/dev/null 2>&1; then exit 0; fi
fi
"$python" -m playwright install chromium
