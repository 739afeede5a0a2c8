"""DP-MERF: random Fourier features."""
