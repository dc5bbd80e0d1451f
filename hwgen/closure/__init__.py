"""What changes a design to meet a clock."""
