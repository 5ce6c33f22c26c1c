"""`python -m vpnrouter`: the command, for Pythons whose programs are not on the path."""

from vpnrouter.cli.app import main

if __name__ == "__main__":
    main()
