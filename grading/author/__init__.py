"""From an assignment's master to what students and graders get."""
