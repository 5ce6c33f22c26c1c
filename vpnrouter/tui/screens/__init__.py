"""The screens of the terminal interface, one noun a file."""
