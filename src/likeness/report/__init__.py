"""What a person looks at: pages, figures, statement."""
