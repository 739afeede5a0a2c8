"""Images: their files, the method `moments`, and the scores of synthetic images."""
