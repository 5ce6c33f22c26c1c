"""What the screens are made of: lines, tables, and figures that are drawn."""
