"""DP-NTK: the neural tangent kernel."""
