"""`python -m observatory.cli`: the `observatory` command without the installed script."""

from observatory.cli import main

if __name__ == "__main__":
    main()
