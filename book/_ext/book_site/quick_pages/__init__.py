"""Pages that open at once: they load what they use, and nothing waits for scripts."""
