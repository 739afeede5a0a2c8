"""The methods of the papers: PEARL, DP-HP, DP-MERF, DP-MERF with an encoder and DP-NTK, and their networks."""
