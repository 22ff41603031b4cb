"""`python -m observatory.cli`: the same terminal without the installed script."""

from observatory.cli import main

if __name__ == "__main__":
    main()
