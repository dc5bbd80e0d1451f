"""What a cell library says: Liberty files and their cells."""
