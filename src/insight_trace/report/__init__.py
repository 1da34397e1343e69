"""The page a person looks at: one file, no network."""
