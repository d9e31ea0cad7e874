"""``python -m equirecourse.cli``."""

from equirecourse.cli import main

if __name__ == "__main__":
    main()
