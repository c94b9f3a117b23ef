"""The calculators by their names.

Each takes the values of its fields and the figures of cards and links, and returns what
its page shows. `book/_static/calculators.js` does the same in the browser, operation by
operation; a test compares them.
"""

from __future__ import annotations

from book_site.calculators.cards import cards
from book_site.calculators.memory import memory
from book_site.calculators.price import price
from book_site.calculators.roofline import roofline

CALCULATORS = {"memory": memory, "roofline": roofline, "cards": cards, "price": price}
