import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb


class Drawing:
    """A picture of boxes, arrows and lanes. y counts downwards, as lines of text do.

    Args:
        width, height: how many units there are; a line of text takes about half of one.
        scale: inches of a unit. A phone shows about five inches.
    """

    def __init__(self, width=12, height=6, scale=0.48):
        size = width * scale, height * scale
        _, self.axes = plt.subplots(figsize=size, layout="none")
        self.axes.set_position([0, 0, 1, 1])
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        self.axes.axis("off")

    def text(self, x, y, text, **style):
        """Write a text whose middle is at x, y; `ha="left"` starts it there."""
        style = {"ha": "center", "va": "center", "fontsize": 11, **style}
        self.axes.text(x, y, text, linespacing=1.25, **style)

    def box(self, x, y, width, height, text="", color=GREY, tint=0.2, **style):
        """Draw a box from its upper left corner. tint: 0 is white, 1 the whole colour.

        The style is the text's, as Matplotlib names it.
        """
        fill = [1 - tint * (1 - part) for part in to_rgb(color)]
        sides = {"facecolor": fill, "edgecolor": color, "linewidth": 1.4}
        self.axes.add_patch(plt.Rectangle((x, y), width, height, zorder=2, **sides))
        self.text(x + width / 2, y + height / 2, text, zorder=4, **style)

    def arrow(self, start, end, text="", color="black", bend=0.0, **style):
        """Draw an arrow between two points (x, y), its text above its middle."""
        curve = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}"}
        look = {"color": color, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
        self.axes.annotate("", end, start, arrowprops={**curve, **look}, zorder=3)
        x, y = ((a + b) / 2 for a, b in zip(start, end))
        self.text(x, y - 0.3, text, **{"color": color, "fontsize": 10, **style})

    def lane(self, y, name, *bars, height=0.7, left=2.4):
        """Draw a line of time, and on it bars (start, end, text, colour)."""
        self.text(left - 0.2, y, name, ha="right")
        self.axes.plot([left, self.axes.get_xlim()[1]], [y, y], color=GREY, lw=0.8)
        for start, end, text, color in bars:
            top = y - height / 2
            self.box(left + start, top, end - start, height, text, color, fontsize=10)
