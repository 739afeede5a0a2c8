"""DP-MERF on the codes of a public encoder."""
