"""Grades the class's notebooks: students' code runs in a sandbox, the tests do not."""
