"""The fixtures of the tests that look at the built site."""

from site_browser import base, browser, reader

__all__ = ["base", "browser", "reader"]
