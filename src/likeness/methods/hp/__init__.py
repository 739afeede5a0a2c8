"""DP-HP: Hermite features."""
