"""From two configurations to a report: measurement, tables and plots."""
