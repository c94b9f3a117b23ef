import matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats

# Okabe and Ito's colours: told apart with every common form of colour blindness.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, RED, YELLOW, GREY = "#56B4E9", "#D55E00", "#F0E442", "#767676"
plt.rcParams.update(
    {
        "axes.prop_cycle": plt.cycler(color=[BLUE, ORANGE, GREEN, PINK, SKY, RED]),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.dpi": 110,
        "figure.figsize": (7, 3.6),
        "figure.constrained_layout.use": True,
        "font.size": 11,
    }
)
set_matplotlib_formats("retina")
