"""`python -m besag`: the `besag` command where it is not installed."""

from besag.cli import main

main()
