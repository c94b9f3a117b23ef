"""What is written for students and teachers."""
