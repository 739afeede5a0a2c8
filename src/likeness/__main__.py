"""``python -m likeness`` is the command line."""

from likeness.cli.app import main

if __name__ == "__main__":
    main()
