"""The course around an assignment: who is who, what counts, where the points go."""
