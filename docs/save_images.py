"""Draw the pictures of the guide from the examples: python docs/save_images.py writes docs/images/."""

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
# The example, and a name for each of its first figures.
FIGURES = {
    "plot_toy_boundaries": ["toy_tilted", "toy_ring"],
    "plot_credit_gap": ["credit_before_after", "credit_boxes"],
    "plot_frontier": ["frontier"],
}


def main() -> None:
    mpl.use("Agg")
    for example, names in FIGURES.items():
        plt.close("all")
        runpy.run_path(str(HERE.parent / "examples" / f"{example}.py"))
        for number, name in zip(plt.get_fignums(), names, strict=True):
            plt.figure(number).savefig(HERE / "images" / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
