"""From stored codes and block scales to what the lanes multiply."""
