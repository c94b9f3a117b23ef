"""Claims x versions: which claim held with which versions of Keras and the engines."""
