"""``python -m equirecourse``: the command line."""

from equirecourse.cli import main

if __name__ == "__main__":
    main()
