"""Matplotlib is imported when something is drawn, not when the package is."""

import subprocess
import sys


def test_importing_the_displays_does_not_import_matplotlib():
    code = "import sys, equirecourse.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
