"""What the book is made of: chapters, claims, questions, exercises, outcomes, errors.

The ground floor: it imports nothing of the repository, and every other room imports it.
"""
