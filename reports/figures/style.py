"""The style of figures (palette, markers, sizes, axis labels) and their output as SVG and PNG."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warehouse.declared.formats import quantity
from warehouse.declared.schema import Field

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

SAMPLE_MARK = "sample: generated text"
WIDTH_IN = 7.2  # the text width of A4, so that 8 points stay 8 points in print
PNG_DPI = 160
PLACE_DIGITS = 9  # of the figure's width: far below a pixel, far above the rounding error of a float
LINE_STYLES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
INK = "#222222"
_SETTINGS: dict[str, Any] = {
    "axes.edgecolor": "#555555",
    "axes.labelsize": 8,
    "axes.linewidth": 0.7,
    "axes.titlelocation": "left",
    "axes.titlesize": 8.5,
    "figure.constrained_layout.wspace": 0.06,
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
    "font.family": "sans-serif",
    # The font shipped with Matplotlib, so that the same tables give the same bytes on every machine.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 8,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.title_fontsize": 7.5,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "kappa",
    "xtick.bottom": True,
    "xtick.labelsize": 7.5,
    "xtick.major.size": 2.5,
    "xtick.major.width": 0.7,
    "ytick.labelsize": 7.5,
}


@contextmanager
def theme() -> Iterator[None]:
    """Draw in the style of the report; restore the process's settings afterwards."""
    import matplotlib as mpl  # noqa: PLC0415 - seconds to import
    import seaborn as sns  # noqa: PLC0415

    settings: Any = {**sns.axes_style("whitegrid"), **sns.plotting_context("paper"), **_SETTINGS}
    with mpl.rc_context(settings):
        yield


def colours(count: int) -> list[str]:
    """Return `count` colours that colour-blind people can distinguish (seaborn's `colorblind`), as #rrggbb."""
    import seaborn as sns  # noqa: PLC0415

    palette = sns.color_palette("colorblind").as_hex()
    # Its pale colours (pink, yellow) are left out: they have too little contrast on white paper.
    ordered = [palette[0], palette[3], palette[2], palette[4], palette[1], INK, palette[9], palette[5], palette[7]]
    return [ordered[i % len(ordered)] for i in range(count)]


def darker(colour: str) -> str:
    """Return the colour mixed with black, for text on white.

    >>> darker("#0173b2")
    '#01507d'
    """
    return "#" + "".join(f"{round(int(colour[i : i + 2], 16) * 0.7):02x}" for i in (1, 3, 5))


def new_figure(height_in: float, title: str, *, is_sample: bool) -> Figure:
    """Return an empty figure of the report's width with a title, marked if it shows the sample.

    It has no window, so it needs no display and no closing.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(WIDTH_IN, height_in), layout=_steady_layout())
    FigureCanvasAgg(figure)
    figure.suptitle(title + (f"\n{SAMPLE_MARK}" if is_sample else ""), x=0.012, ha="left", color=INK)
    return figure


def _steady_layout() -> ConstrainedLayoutEngine:
    """Return Matplotlib's constrained layout with positions that are equal in every process.

    Its solver sums in the order of memory addresses, so the last bits of a position differ between processes. The ids
    in an SVG are hashes of positions and would differ too.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415

    class Steady(ConstrainedLayoutEngine):
        def execute(self, fig: Figure) -> Any:  # noqa: ANN401 - Matplotlib's own
            margins = super().execute(fig)
            for axes in fig.axes:
                place = [round(edge, PLACE_DIGITS) for edge in axes.get_position(original=True).bounds]
                # `set_position` would exclude the axes from the next layout, which PNG needs at its own resolution.
                axes._set_position(place)  # type: ignore[attr-defined]  # noqa: SLF001
            return margins

    return Steady()


def svg_bytes(figure: Figure) -> bytes:
    """Return the figure as SVG with real text, without dates."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return buffer.getvalue()


def png_bytes(figure: Figure) -> bytes:
    """Return the figure as PNG at 160 dots per inch, without dates and versions."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return buffer.getvalue()


def axis_label(field: Field) -> str:
    """Return the field's label with its symbol or formula, which is the description up to the first colon.

    >>> from warehouse.declared.fields import CACHED_TOKENS, KAPPA_RATIO
    >>> axis_label(CACHED_TOKENS), axis_label(KAPPA_RATIO)
    ('cached tokens (K)', 'kappa ratio (K / T)')
    """
    return f"{field.label()} ({field.description.split(':')[0]})"


def power_of_ten(exponent: float) -> str:
    """Return 10 to the power `exponent`, written for a tick label.

    >>> [power_of_ten(e) for e in (-2, 0, 3, 5, 6)]
    ['0.01', '1', '1k', '100k', '1M']
    """
    return quantity(10.0**exponent, "").replace(" ", "")


def log_axis(axis: XAxis | YAxis, most: int = 10) -> None:
    """Label an axis of log10 values with the values themselves, at no more than `most` whole powers of ten."""
    from matplotlib.ticker import MultipleLocator  # noqa: PLC0415

    low, high = axis.get_view_interval()
    axis.set_major_locator(MultipleLocator(max(1, math.ceil((high - low) / most))))
    axis.set_major_formatter(lambda exponent, _: power_of_ten(round(exponent)))


def percent_axis(axes: Axes, label: str) -> None:
    """Set the y axis to a share from 0 to 100 %."""
    axes.set_ylim(0, 102)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.set_ylabel(label)
